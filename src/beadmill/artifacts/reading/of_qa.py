"""QA_CHECKLIST, QA_FIX_BEADS (reference §9.2, §9.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beadmill.artifacts.qa import FixBead, QaItemText
from beadmill.artifacts.reading.ask import given, names, need, outside, plain_paths, rows, twice
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.replies import ChecklistForm, FixBeadsForm
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree

_WORDS: Mapping[str, Mapping[str, str]] = {
    "severity": {"must": "required", "mandatory": "required", "nicetohave": "optional", "recommended": "optional"},
    "recheck_state": {"recheck": "pending_recheck", "pending": "pending_recheck", "passed": "previously_passed"},
    "source": {"diff": "implementation_diff", "implementation": "implementation_diff", "beads": "bead"},
}


def _item_words(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Other words for the same choice; a criterion by its name alone is meant to be checked in full."""
    for row in rows(tree, "items"):
        for key, words in _WORDS.items():
            wanted = words.get(squash(str(row.get(key))))
            if wanted:
                notes.cleaned(f"{key} in the wanted spelling", f"{row[key]} → {wanted}")
                row[key] = wanted
        refs = row.get("prd_refs")
        if isinstance(refs, list) and any(isinstance(one, str) for one in refs):
            notes.cleaned("criterion by its name alone read as a full check", str(row.get("title")))
            row["prd_refs"] = [{"ref": one} if isinstance(one, str) else one for one in refs]
    return tree


def _check_checklist(value: ChecklistForm, context: Context, _notes: Notes) -> ChecklistForm:
    """Criteria and beads exist; a criterion is on an item or not applicable, not both; every earlier failure is back."""
    criteria, beads = names(context, "criteria"), names(context, "beads")
    used = {one.ref for item in value.items for one in item.prd_refs}
    by_machine = [one.ref for one in value.not_applicable_prd_refs]
    wrong = [f"not_applicable_prd_refs: {ref} is on an item too" for ref in by_machine if ref in used]
    wrong += [f"not_applicable_prd_refs: {ref} is there twice" for ref in twice(by_machine)]
    wrong += [
        f"not_applicable_prd_refs: {one.ref} has no reason"
        for one in value.not_applicable_prd_refs
        if not one.reason.strip()
    ]
    if criteria is not None:
        wrong += [f"no such criterion: {ref}" for ref in (*sorted(used), *by_machine) if ref not in criteria]
    if beads is not None:
        wrong += [f"no such bead: {ref}" for item in value.items for ref in item.bead_refs if ref not in beads]
    wrong += _continuity(value.items, given(context, "earlier", dict))
    need(wrong)
    return value


def _continuity(items: Sequence[QaItemText], earlier: dict[str, tuple[str, str]] | None) -> list[str]:
    """``earlier`` is item id → (its line, its last outcome), of all rounds. Without a round before, all is new."""
    if earlier is None:
        return []
    lines = {line for line, _ in earlier.values()}
    wrong: list[str] = []
    for item in items:
        wrong += [f"{item.title}: no earlier item {one}" for one in item.prior_item_ids if one not in earlier]
        if item.lineage_id and item.lineage_id not in lines:
            wrong.append(f"{item.title}: no earlier line {item.lineage_id}")
        if (item.recheck_state == "new") == bool(item.prior_item_ids):
            wrong.append(f"{item.title}: recheck_state is new exactly when prior_item_ids is empty")
        failed = [one for one in item.prior_item_ids if earlier.get(one, ("", ""))[1] != "pass"]
        if item.recheck_state == "previously_passed" and failed:
            wrong.append(f"{item.title}: previously_passed, yet {', '.join(failed)} did not pass")
    back = {one for item in items for one in item.prior_item_ids}
    gone = [one for one, (_, outcome) in earlier.items() if outcome == "fail" and one not in back]
    return [*wrong, *(f"{one} failed and must be checked again: name it in prior_item_ids" for one in gone)]


QA_CHECKLIST: Shape[ChecklistForm] = Shape(
    "qa_checklist",
    ChecklistForm,
    tag="MANUAL_QA_CHECKLIST",
    aliases={
        "items": ("checks", "checklist"),
        "actions": ("steps",),
        "expected_result": ("expected", "expectation"),
        "behavior": ("behaviour",),
        "watch_notes": ("watch", "watch_for"),
        "not_applicable_prd_refs": ("not_applicable",),
        "prerequisites": ("preconditions",),
    },
    normalise=_item_words,
    check=_check_checklist,
    root="items",
    rules=(
        "source is prd, bead, previous_qa or implementation_diff; severity is required or optional.",
        "recheck_state is new, pending_recheck or previously_passed; new exactly when prior_item_ids is empty.",
        "A ref is EPIC-id/US-id/AC-n with n counted from 1; coverage is full or partial.",
        "A criterion is in not_applicable_prd_refs or on items, never both.",
        "Quote a text that contains a colon followed by a space.",
    ),
    context={
        "criteria": "collection of str: every EPIC/US/AC-n of the requirements",
        "beads": "collection of str: ids of the plan",
        "earlier": "dict of earlier item id → (its line, its last outcome)",
    },
    example="""
summary: Export a list, then look at the file.
items:
  - title: Export a short list
    lineage_id: ""
    prior_item_ids: []
    source: prd
    behavior: The list is saved as a CSV file.
    prerequisites:
      - A list of two rows
    actions:
      - Choose Export
      - Open the file
    expected_result: The file has one line per row.
    watch_notes: Commas inside a value.
    severity: required
    recheck_state: new
    bead_refs: [write-rows]
    prd_refs:
      - ref: EPIC-1/US-1-1/AC-1
        coverage: full
not_applicable_prd_refs:
  - ref: EPIC-1/US-1-2/AC-1
    reason: A unit test measures it; nobody can see it.
""",
)


def _fix_paths(tree: Tree, _context: Context, notes: Notes) -> Tree:
    for row in rows(tree, "beads"):
        plain_paths(row, ("target_files", "test_files"), notes)
        if row.get("test_commands") and str(row.pop("test_command_reason", None) or "").strip():
            notes.dropped("testCommandReason beside commands", str(row.get("group_id")))
    return tree


def _check_fixes(value: FixBeadsForm, context: Context, _notes: Notes) -> tuple[FixBead, ...]:
    """Exactly one bead per group, in their order; refs as supplied; blocked by earlier groups only."""
    groups = given(context, "groups", dict)
    beads = value.beads
    wrong = [f"group {name}: there are two beads" for name in twice([bead.group_id for bead in beads])]
    wrong += [
        f"group {bead.group_id}: not a path inside the repository: {path}"
        for bead in beads
        for path in outside((*bead.target_files, *bead.test_files))
    ]
    if groups is not None:
        wrong += _per_group(beads, groups)
    need(wrong)
    order = list(groups or ())
    return tuple(sorted(beads, key=lambda bead: order.index(bead.group_id))) if groups is not None else beads


def _per_group(beads: Sequence[FixBead], groups: Mapping[str, Sequence[str]]) -> list[str]:
    order = list(groups)
    wrong = [f"no bead for group {name}" for name in order if all(bead.group_id != name for bead in beads)]
    for bead in beads:
        if bead.group_id not in groups:
            wrong.append(f"there is no group {bead.group_id}: {', '.join(order)}")
            continue
        if set(bead.prd_refs) != set(groups[bead.group_id]):
            wrong.append(f"group {bead.group_id}: prdRefs must be {list(groups[bead.group_id])}")
        earlier = order[: order.index(bead.group_id)]
        wrong += [
            f"group {bead.group_id}: blockedByGroupIds {one!r} is no earlier group"
            for one in bead.blocked_by_group_ids
            if one not in earlier
        ]
    return wrong


QA_FIX_BEADS: Shape[tuple[FixBead, ...]] = Shape(
    "qa_fix_beads",
    FixBeadsForm,
    tag="MANUAL_QA_FIX_BEADS",
    aliases={
        "group_id": ("group",),
        "context_guidance": ("guidance",),
        "anti_patterns": ("antipatterns", "avoid"),
        "acceptance_criteria": ("criteria",),
        "prd_refs": ("refs",),
        "test_commands": ("commands",),
        "target_files": ("files",),
        "blocked_by_group_ids": ("blocked_by_groups", "blocked_by"),
    },
    normalise=_fix_paths,
    check=_check_fixes,
    root="beads",
    rules=(
        "Exactly one bead per group, in the order of the groups; prdRefs exactly as the group has them.",
        "blockedByGroupIds names earlier groups only.",
        "testCommandReason only when testCommands is empty, and then always.",
        "A command is {mode: process, program, args} or {mode: shell, script}; only commands seen in the repository.",
        "Quote a text that contains a colon followed by a space.",
    ),
    context={"groups": "dict of group id → the prdRefs its bead must have"},
    example="""
beads:
  - groupId: group-1
    title: Write the header of an empty list
    prdRefs: [US-1-1]
    description: export.py returns before the header when there is no row.
    contextGuidance:
      patterns:
        - Write the header first
      anti_patterns:
        - No special case in the caller
    acceptanceCriteria:
      - An empty list gives a file with the header alone
    tests:
      - An empty list gives one line
    testCommands:
      - mode: process
        program: python
        args: [-m, pytest, tests/test_export.py]
    labels: [export]
    targetFiles: [export.py]
    testFiles: [tests/test_export.py]
    interfaces: []
    blockedByGroupIds: []
""",
)
