"""BLUEPRINT and its refined and revised forms, EXPANSION (reference §5)."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from beadmill.artifacts.beads import Blueprint, BlueprintBead
from beadmill.artifacts.command import read_command
from beadmill.artifacts.reading.ask import given, names, need, outside, plain_paths, rows, twice
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_changes import CHANGE_ALIASES, plain_changes, refined, revised
from beadmill.artifacts.reading.replies import Expansion, Expansions, Refined, Revised, with_changes
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit
from beadmill.domain.command import CommandSpec

ALIASES = {
    "context_guidance": ("guidance",),
    "acceptance_criteria": ("criteria",),
    "anti_patterns": ("antipatterns", "avoid"),
    "prd_refs": ("refs", "prd_references", "requirements"),
    "test_commands": ("commands",),
    "test_command_reason": ("testCommandsReason", "no_test_command_reason"),
    "target_files": ("files",),
    "blocked_by": ("depends_on", "blockedby"),
    "issue_type": ("type",),
    **{key: value for key, value in CHANGE_ALIASES.items() if key != "type"},
}
_CHANGE_TYPES = {"type": CHANGE_ALIASES["type"]}


def _prepare(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """contextGuidance as text → patterns; missing ids from titles; a reason beside commands goes."""
    key = next((k for k in tree if squash(k) == "beads"), "beads") if isinstance(tree, dict) else "beads"
    for bead in rows(tree, key):
        guidance = next((k for k in bead if squash(k) in ("contextguidance", "guidance")), None)
        if guidance and isinstance(bead[guidance], (str, list)):
            notes.cleaned("contextGuidance text taken as patterns", str(bead.get("id")))
            bead[guidance] = {"patterns": bead[guidance]}
        blocked = next((k for k in bead if squash(k) in ("blockedby", "dependson")), None)
        if blocked and "dependencies" not in bead:
            notes.cleaned("blocked_by moved into dependencies", str(bead.get("id")))
            bead["dependencies"] = {"blocked_by": bead.pop(blocked)}
        elif isinstance(bead.get("dependencies"), list):
            notes.cleaned("list of dependencies taken as blocked_by", str(bead.get("id")))
            bead["dependencies"] = {"blocked_by": bead["dependencies"]}
    return tree


def _prepare_changed(tree: Tree, context: Context, notes: Notes) -> Tree:
    return plain_changes(_prepare(tree, context, notes), context, notes)


def kebab(text: str) -> str:
    """``Add Parser!`` → ``add-parser``; '' when no ASCII letter or digit is in it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def _give_ids(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """kebab-case ids, unique. Ids are Beadmill's to make unique; what the bead means is not touched."""
    taken: set[str] = set()
    for n, bead in enumerate(rows(tree, "beads"), 1):
        wanted = bead.get("id") if isinstance(bead.get("id"), str) else None
        name = kebab(wanted or str(bead.get("title") or "")) or f"bead-{n}"
        unique = next(one for one in (name, *(f"{name}-{k}" for k in range(2, n + 2))) if one not in taken)
        if unique != wanted:
            notes.synthesized("bead id in kebab-case and unique", f"{wanted or 'no id'} → {unique}")
        taken.add(unique)
        bead["id"] = unique
        if bead.get("test_commands") and str(bead.pop("test_command_reason", None) or "").strip():
            notes.dropped("testCommandReason beside commands", unique)
    return tree


def check_blueprint(value: Blueprint, context: Context, _notes: Notes) -> Blueprint:
    """prdRefs exist in the PRD; titles are there."""
    refs = names(context, "prd_refs")
    wrong = [f"{bead.id}: the title is empty" for bead in value.beads if not bead.title.strip()]
    if refs is not None:
        wrong += [f"{bead.id}: prdRefs is empty" for bead in value.beads if not bead.prd_refs]
        wrong += [f"{b.id}: no such story or epic: {r}" for b in value.beads for r in b.prd_refs if r not in refs]
    need(wrong)
    return value


def _keeps_order(value: Blueprint, context: Context, notes: Notes) -> Blueprint:
    """Surviving beads keep their order; new ones may stand between them."""
    check_blueprint(value, context, notes)
    before = given(context, "before", Blueprint)
    if before is not None:
        now = [bead.id for bead in value.beads]
        old = [bead.id for bead in before.beads if bead.id in now]
        if [one for one in now if one in old] != old:
            raise Unfit(f"beads: the order of your own draft must stay: {', '.join(old)}")
    return value


_RULES = (
    "List order is dependency order; ids are kebab-case.",
    "testCommandReason only when testCommands is empty, and then always.",
    "A command is {mode: process, program, args} or {mode: shell, script}; only commands seen in the repository.",
    "Quote a text that contains a colon followed by a space.",
)

BLUEPRINT: Shape[Blueprint] = Shape(
    "blueprint",
    Blueprint,
    aliases=ALIASES,
    prepare=_prepare,
    normalise=_give_ids,
    check=check_blueprint,
    root="beads",
    rules=_RULES,
    context={"prd_refs": "collection of str: valid epic and story ids"},
    example="""
beads:
  - id: write-rows
    title: Write rows as CSV
    prdRefs: [US-1-1]
    description: Add export.py with write_rows, which takes rows and a path.
    contextGuidance:
      patterns:
        - Use the csv module
      anti_patterns:
        - Do not build lines by hand
    acceptanceCriteria:
      - One line per row
    tests:
      - A list of two rows gives two lines
    testCommands:
      - mode: process
        program: python
        args: [-m, pytest, tests/test_export.py]
  - id: document-export
    title: Describe the export
    prdRefs: [US-1-1]
    description: Add a section to the README.
    contextGuidance:
      patterns:
        - Short examples
      anti_patterns: []
    acceptanceCriteria:
      - The README shows the command
    tests:
      - Read the section
    testCommands: []
    testCommandReason: Prose has no automatic test.
""",
)

REFINED_BLUEPRINT: Shape[Refined[Blueprint]] = Shape(
    "refined_blueprint",
    with_changes(Blueprint),
    aliases=ALIASES | _CHANGE_TYPES,
    prepare=_prepare_changed,
    normalise=_give_ids,
    check=refined(Blueprint, _keeps_order),
    root="beads",
    rules=(
        *_RULES,
        "All beads, then one entry in changes for every bead that differs from your own draft; ids and order stay.",
        "type is modified, added or removed; inspiration names the alternative draft and its item, or is left out.",
    ),
    context={
        "prd_refs": "collection of str: valid epic and story ids",
        "before": "Blueprint: the winner's draft",
        "alternatives": "mapping of shown draft number → seat",
        "shown": "mapping of shown draft number → its document: an inspiration must name a part of it",
    },
    example=BLUEPRINT.example
    + """
changes:
  - type: added
    item_type: bead
    id: document-export
    before: ""
    after: Describe the export
    inspiration:
      draft: 2
      item: readme
""".lstrip("\n"),
)

REVISED_BLUEPRINT: Shape[Revised[Blueprint]] = Shape(
    "revised_blueprint",
    with_changes(Blueprint, gaps=True),
    aliases=ALIASES | _CHANGE_TYPES,
    prepare=_prepare_changed,
    normalise=_give_ids,
    check=revised(Blueprint, _keeps_order),
    root="beads",
    rules=(
        *_RULES,
        "All beads, then changes, then exactly one entry in gap_resolutions for each gap, its text copied exactly.",
        "action is updated, already_covered or left_unresolved; a contradiction in the PRD is left_unresolved with no affected_items.",
    ),
    context={
        "prd_refs": "collection of str: valid epic and story ids",
        "before": "Blueprint: the candidate that was audited",
        "gaps": "sequence of str: the gaps to resolve, word for word",
        "decided": "sequence of str: those of them that a person has decided",
    },
    example=BLUEPRINT.example
    + """
changes:
  - type: modified
    item_type: bead
    id: write-rows
    before: Write rows as CSV
    after: Write rows as CSV
gap_resolutions:
  - gap: Nothing tests an empty list.
    action: updated
    rationale: Added a test.
    affected_items:
      - item_type: bead
        id: write-rows
        label: Write rows as CSV
""".lstrip("\n"),
)

_PART_ONE = tuple(BlueprintBead.model_fields)


def _restore(tree: Tree, context: Context, notes: Notes) -> Tree:
    """Part-1 fields come from the blueprint: drift in them is undone, a different title or other refs stay and fail."""
    blueprint = given(context, "blueprint", Blueprint)
    lines = rows(tree, "beads")
    for line in lines:
        plain_paths(line, ("target_files", "test_files"), notes)
    if blueprint is None or len(lines) != len(blueprint.beads):
        return tree
    for line, bead in zip(lines, blueprint.beads, strict=True):
        original = bead.model_dump(mode="json", by_alias=False)
        for name in _PART_ONE:
            if name == "id" or (name in ("title", "prd_refs") and line.get(name) is not None):
                continue
            if not _same(line.get(name), getattr(bead, name)):
                notes.cleaned("field restored from the blueprint", f"{bead.id}: {name}")
            line[name] = original[name]
    return tree


def _same(written: Tree, wanted: Any) -> bool:
    """Whether a written field says what the blueprint says; nothing written says nothing wanted."""
    if not written and not wanted:
        return True
    if isinstance(wanted, tuple) and isinstance(written, list):
        return len(written) == len(wanted) and all(_same(w, x) for w, x in zip(written, wanted, strict=True))
    try:
        if isinstance(wanted, BaseModel):
            return type(wanted).model_validate(written) == wanted
        if isinstance(wanted, CommandSpec):
            return bool(read_command(written) == wanted)
    except ValueError:
        return False
    return bool(written == wanted)


def _check_expansion(value: Expansions, context: Context, _notes: Notes) -> tuple[Expansion, ...]:
    """As many lines as beads, in their order, earlier beads only as blockers, paths inside the repository."""
    lines = value.beads
    wrong = [f"the id {one!r} is there twice" for one in twice([line.id for line in lines])]
    wrong += _one_sided(lines)
    for n, line in enumerate(lines):
        earlier = {one.id for one in lines[:n]}
        wrong += [
            f"{line.id}: blocked_by {b!r} is no earlier bead" for b in line.dependencies.blocked_by if b not in earlier
        ]
        wrong += [
            f"{line.id}: not a path inside the repository: {p}" for p in outside((*line.target_files, *line.test_files))
        ]
    blueprint = given(context, "blueprint", Blueprint)
    if blueprint is not None:
        wrong += _differs(lines, blueprint)
    need(wrong)
    return lines


def _one_sided(lines: tuple[Expansion, ...]) -> list[str]:
    """``blocks`` is Beadmill's to fill; what a model writes there must be in the other bead's blocked_by."""
    blocked = {line.id: line.dependencies.blocked_by for line in lines}
    return [
        f"{line.id}: blocks {other!r}, which does not name it in blocked_by"
        for line in lines
        for other in line.dependencies.blocks
        if line.id not in blocked.get(other, ())
    ]


def _differs(lines: tuple[Expansion, ...], blueprint: Blueprint) -> list[str]:
    if len(lines) != len(blueprint.beads):
        return [f"{len(lines)} lines for {len(blueprint.beads)} beads; one line per bead, in their order"]
    out: list[str] = []
    for n, (line, bead) in enumerate(zip(lines, blueprint.beads, strict=True), 1):
        if line.title != bead.title:
            out.append(f"line {n}: the title must stay {bead.title!r}, not {line.title!r}")
        if line.prd_refs != bead.prd_refs:
            out.append(f"line {n}: prdRefs must stay {list(bead.prd_refs)}")
    return out


EXPANSION: Shape[tuple[Expansion, ...]] = Shape(
    "expansion",
    Expansions,
    form="jsonl",
    aliases=ALIASES,
    prepare=_prepare,
    normalise=_restore,
    check=_check_expansion,
    root="beads",
    rules=(
        "One line per bead, same count and order; copy id, title, prdRefs and the other fields of the blueprint unchanged.",
        "Add issueType, labels, dependencies.blocked_by (earlier beads only), targetFiles, testFiles, interfaces.",
        "Paths are relative to the repository.",
    ),
    context={"blueprint": "Blueprint: what is expanded"},
    example=(
        '{"id": "write-rows", "title": "Write rows as CSV", "prdRefs": ["US-1-1"], "description": "Add export.py.", '
        '"contextGuidance": {"patterns": ["Use the csv module"], "anti_patterns": []}, '
        '"acceptanceCriteria": ["One line per row"], "tests": ["Two rows give two lines"], '
        '"testCommands": [{"mode": "process", "program": "python", "args": ["-m", "pytest", "tests/test_export.py"]}], '
        '"issueType": "task", "labels": ["epic:EPIC-1"], "dependencies": {"blocked_by": []}, '
        '"targetFiles": ["export.py"], "testFiles": ["tests/test_export.py"], '
        '"interfaces": ["write_rows(rows, path) -> None"]}'
    ),
)
