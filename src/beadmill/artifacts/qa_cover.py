"""A model's checklist becomes Beadmill's: ids, lines of items over rounds, coverage of the criteria. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beadmill.artifacts.prd import Prd
from beadmill.artifacts.qa import CoverageState, Covered, NotByHand, QaChecklist, QaItem, QaItemText


def criteria(prd: Prd) -> Mapping[str, str]:
    """``EPIC-1/US-1-1/AC-1`` → the criterion's words, in the order of the PRD."""
    return {
        f"{epic.id}/{story.id}/AC-{n}": text
        for epic in prd.epics
        for story in epic.user_stories
        for n, text in enumerate(story.acceptance_criteria, 1)
    }


def numbered(
    summary: str,
    items: Sequence[QaItemText],
    by_machine: Sequence[NotByHand],
    *,
    version: int,
    known: Mapping[str, str],
    lines: Mapping[str, str],
) -> QaChecklist:
    """``known`` are the criteria, ``lines`` earlier item id → its line."""
    made = tuple(_item(text, f"qa-v{version}-{n:03}", lines) for n, text in enumerate(items, 1))
    coverage = tuple(_covered(ref, text, made, by_machine) for ref, text in known.items())
    return QaChecklist(version=version, summary=summary, items=made, coverage=coverage)


def _item(text: QaItemText, name: str, lines: Mapping[str, str]) -> QaItem:
    line = text.lineage_id or next((lines[one] for one in text.prior_item_ids if one in lines), name)
    return QaItem(**text.model_dump() | {"id": name, "lineage_id": line})


def _covered(ref: str, text: str, items: Sequence[QaItem], by_machine: Sequence[NotByHand]) -> Covered:
    degrees = {item.id: one.coverage for item in items for one in item.prd_refs if one.ref == ref}
    reason = next((one.reason for one in by_machine if one.ref == ref), None)
    state: CoverageState = "not_applicable" if reason is not None else "uncovered"
    if degrees:
        state = "covered" if "full" in degrees.values() else "partially_covered"
    return Covered(ref=ref, text=text, state=state, items=tuple(degrees), reason=reason or "")
