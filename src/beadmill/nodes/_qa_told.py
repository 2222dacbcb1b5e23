"""What the models of manual QA are told: chosen fields of beads, earlier rounds, the change without its patch. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.lean import lean
from beadmill.artifacts.qa import QaItem
from beadmill.briefs import PartText
from beadmill.store.journal.qa import Earlier


def beads_part(plan: Beads) -> PartText:
    told = [
        {
            "id": bead.id,
            "title": bead.title,
            "prdRefs": list(bead.prd_refs),
            "acceptanceCriteria": list(bead.acceptance_criteria),
            "targetFiles": list(bead.target_files),
            **({"issueType": bead.issue_type} if bead.issue_type != "task" else {}),
            **({"skipped": True} if bead.skipped else {}),
        }
        for bead in plan.beads
    ]
    return PartText("beads", json.dumps(told, indent=1, ensure_ascii=False))


def lines_of(earlier: Sequence[Earlier]) -> dict[str, tuple[str, str]]:
    """Item id → (its line, its last outcome), of all rounds. What a later round asked again counts by that round."""
    found: dict[str, tuple[str, str]] = {}
    for one in earlier:
        for item in one.checklist.items:
            for before in item.prior_item_ids:
                line, outcome = found.get(before, (item.lineage_id, ""))
                found[before] = (line, "asked again" if outcome == "fail" else outcome)
            found[item.id] = (item.lineage_id, one.results.of(item.id).outcome)
    return found


def earlier_part(earlier: Sequence[Earlier]) -> PartText:
    """The latest round whole, of older ones how they ended."""
    if not earlier:
        return PartText("qa_earlier", "There was no round before: this is the first.")
    latest = earlier[-1]
    told = {
        "rounds": [one.summary.line for one in earlier],
        "fixBeads": [name for one in earlier for name in one.summary.fix_beads],
        "latest": {
            "version": latest.checklist.version,
            "items": [_item(item, latest) for item in latest.checklist.items],
            "coverage": {one.ref: one.state for one in latest.checklist.coverage},
        },
    }
    return PartText("qa_earlier", json.dumps(told, indent=1, ensure_ascii=False))


def _item(item: QaItem, latest: Earlier) -> dict[str, object]:
    result = lean(latest.results.of(item.id), exclude=frozenset({"item", "evidence", "improvement", "group"}))
    text = lean(item, exclude=frozenset({"prerequisites", "watch_notes"}))
    return {**text, "result": {"outcome": latest.results.of(item.id).outcome, **result}}


def files_part(files: Sequence[str]) -> PartText:
    return PartText("files", "\n".join(files))


def told(patch: str) -> tuple[str, ...]:
    """``path +added -removed`` per file of a patch."""
    files: list[tuple[str, int, int]] = []
    inside = False
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            files.append((line.rpartition(" b/")[2], 0, 0))
            inside = False
        elif line.startswith("@@"):
            inside = True
        elif inside and files and line[:1] in ("+", "-"):
            name, more, less = files[-1]
            files[-1] = (name, more + (line[0] == "+"), less + (line[0] == "-"))
    return tuple(f"{name} +{more} -{less}" for name, more, less in files)
