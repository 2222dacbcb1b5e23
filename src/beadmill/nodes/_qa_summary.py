"""What a person sent, read; what a round came to; the tickets its improvements become. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from beadmill.artifacts.qa import (
    DriftReceipt,
    Evidence,
    Improvement,
    ItemResult,
    QaChecklist,
    QaFixBeads,
    QaItem,
    QaResults,
    QaRound,
    RoundOutcome,
    Waived,
    begun,
)
from beadmill.domain.values import GateAnswer, Json
from beadmill.engine.port import Visit
from beadmill.store.journal.qa import Wish

TITLE = 200  # characters of a ticket's title


def read(checklist: QaChecklist, answer: GateAnswer, evidence: Sequence[Evidence]) -> tuple[QaResults, tuple[str, ...]]:
    """The results with the files of each item, and what cannot be read of them."""
    payload: Mapping[str, Json] = answer.payload if isinstance(answer.payload, dict) else {}
    given: dict[str, ItemResult] = {}
    wrong: list[str] = []
    for row in payload.get("results") or ():
        try:
            one = ItemResult.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(row.get("item", "?")) if isinstance(row, dict) else "?"
            wrong.append(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
        else:
            given[one.item] = one
    wrong += [f"{name}: there is no such item" for name in given if checklist.item(name) is None]
    files = {item.id: tuple(one.id for one in evidence if one.item == item.id) for item in checklist.items}
    whole = [given.get(one.item, one) for one in begun(checklist)]
    results = tuple(one.model_copy(update={"evidence": files[one.item]}) for one in whole)
    skipped = answer.choice == "skip"
    document = QaResults(
        version=checklist.version, checklist=checklist.sha256, results=results, evidence=tuple(evidence),
        skipped=skipped, reason=answer.note if skipped else "",
    )  # fmt: skip
    return document, () if skipped else tuple(wrong)


def outcome(checklist: QaChecklist, results: QaResults) -> RoundOutcome:
    if results.skipped:
        return "skipped"
    if results.counts["fail"]:
        return "fixes"
    waived = any(item.required and results.of(item.id).outcome == "waive" for item in checklist.items)
    return "waived" if waived else "passed"


def round_of(
    checklist: QaChecklist,
    results: QaResults,
    answer: GateAnswer,
    *,
    began: str,
    ended: str,
    head: str,
    drift: tuple[DriftReceipt, ...],
    fixes: QaFixBeads | None,
    tickets: Mapping[str, str],
) -> QaRound:
    improved = [results.of(item.id) for item in checklist.items if item.id in tickets]
    spent = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return QaRound(
        version=checklist.version,
        outcome=outcome(checklist, results),
        started=began,
        ended=ended,
        seconds=int(spent.total_seconds()),
        head=head,
        by=str(answer.by),
        counts=results.counts,
        coverage=checklist.totals,
        waivers=tuple(_waivers(checklist, results)),
        fix_beads=fixes.ids if fixes else (),
        improvements=tuple(
            Improvement(item=one.item, title=one.improvement.title, ticket=tickets[one.item])
            for one in improved
            if one.improvement
        ),
        drift=drift,
        evidence=len(results.evidence),
        reason=results.reason,
    )


def _waivers(checklist: QaChecklist, results: QaResults) -> Iterator[Waived]:
    for item in checklist.items:
        result = results.of(item.id)
        if result.outcome == "waive" and not results.skipped:
            yield Waived(item=item.id, title=item.title, reason=result.reason, required=item.required)


def wishes(v: Visit, checklist: QaChecklist, results: QaResults) -> Iterator[Wish]:
    """One ticket per item that is to be improved."""
    for item in checklist.items:
        result = results.of(item.id)
        draft = result.improvement
        if result.outcome != "improvement" or draft is None:
            continue
        files = tuple(one for one in results.evidence if one.item == item.id)
        about = draft.context_override.strip() or _context(v, checklist, item, result)
        overrides = {} if draft.manual_qa == "auto" else {"manual_qa": draft.manual_qa}
        values: dict[str, Any] = {
            "title": draft.title.strip()[:TITLE],
            "description": "\n\n".join(text for text in (draft.description.strip(), about, _files(files)) if text),
            "acceptance": "",
            "priority": draft.priority,
            "overrides": overrides,
        }
        origin = {
            "ticket": v.work.key,
            "version": checklist.version,
            "item": item.id,
            "hashes": {"checklist": checklist.sha256, "results": results.sha256},
        }
        yield Wish(str(v.ref), v.work.project, v.work.key, item.id, values, origin, files)


def _context(v: Visit, checklist: QaChecklist, item: QaItem, result: ItemResult) -> str:
    lines = [
        f"Found while {v.work.key} was checked by hand (v{checklist.version}, {item.id}): {item.title}",
        f"Behaviour: {item.behavior}",
        f"Expected: {item.expected_result}",
    ]
    lines += [f"Seen: {result.observation.strip()}"] if result.observation.strip() else []
    lines += [f"Note: {result.note.strip()}"] if result.note.strip() else []
    lines += [f"Link: {link.url} {link.details}".strip() for link in result.links]
    return "\n\n".join(lines)


def _files(files: Sequence[Evidence]) -> str:
    listed = "\n".join(f"- {one.name} ({one.media}, {one.size} bytes, sha256 {one.sha256})" for one in files)
    return f"Files:\n\n{listed}" if listed else ""
