"""PRD, REFINED_PRD, REVISED_PRD (reference §4)."""

from __future__ import annotations

from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading.ask import need, rows, twice
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_changes import CHANGE_ALIASES, plain_changes, refined, revised
from beadmill.artifacts.reading.replies import Refined, Revised, with_changes
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree

OWNED = frozenset({"schema_version", "ticket_id", "artifact", "status", "source_interview", "approval"})
_ALIASES = {
    "acceptance_criteria": ("criteria",),
    "user_stories": ("stories",),
    "implementation_steps": ("steps",),
    "problem_statement": ("problem",),
    "in_scope": ("included",),
    "out_of_scope": ("excluded", "non_goals"),
    "required_commands": ("commands",),
    **CHANGE_ALIASES,
}


def give_ids(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Missing ids become EPIC-n and US-e-s by position; written ones stay."""
    for n, epic in enumerate(rows(tree, "epics"), 1):
        if not epic.get("id"):
            epic["id"] = f"EPIC-{n}"
            notes.synthesized("epic id given by position", epic["id"])
        for s, story in enumerate(rows(epic, "user_stories"), 1):
            if not story.get("id"):
                story["id"] = f"US-{n}-{s}"
                notes.synthesized("story id given by position", story["id"])
    return tree


def check_prd(value: Prd, _context: Context, _notes: Notes) -> Prd:
    """Ids are unique over epics and stories; titles and the problem are there."""
    stories = [story for epic in value.epics for story in epic.user_stories]
    ids = [epic.id for epic in value.epics] + [story.id for story in stories]
    wrong = [f"the id {one!r} is there twice" for one in twice(ids)]
    titles = [(e.id, e.title) for e in value.epics] + [(s.id, s.title) for s in stories]
    wrong += [f"{name}: the title is empty" for name, title in titles if not title.strip()]
    wrong += [] if value.product.problem_statement.strip() else ["product.problem_statement: empty"]
    need(wrong)
    return value


_CHANGES = """
changes:
  - type: modified
    item_type: user_story
    id: US-1-1
    before: Save a list
    after: Save a list as CSV
    inspiration:
      draft: 2
      item: US-1-3
"""
_RULES = (
    "Every in-scope item has at least one user story; no epic without stories.",
    "A command is {mode: process, program, args} or {mode: shell, script}; only commands seen in the repository.",
    "Quote a text that contains a colon followed by a space.",
)

PRD: Shape[Prd] = Shape(
    "prd",
    Prd,
    aliases=_ALIASES,
    normalise=give_ids,
    check=check_prd,
    owned=OWNED,
    rules=_RULES,
    example="""
product:
  problem_statement: Lists cannot leave the program.
  target_users:
    - Office staff
scope:
  in_scope:
    - Export as CSV
  out_of_scope:
    - Import
technical_requirements:
  architecture_constraints: []
  data_model: []
  api_contracts: []
  security_constraints: []
  performance_constraints: []
  reliability_constraints: []
  error_handling_rules:
    - A row that cannot be written is named
  tooling_assumptions: []
epics:
  - id: EPIC-1
    title: Export
    objective: A list can be saved as a file.
    implementation_steps:
      - Add the writer
      - Add the command
    user_stories:
      - id: US-1-1
        title: Save a list as CSV
        acceptance_criteria:
          - The file has one line per row
        implementation_steps:
          - Write rows with the csv module
        verification:
          required_commands:
            - mode: process
              program: python
              args: [-m, pytest, tests/test_export.py]
risks: []
""",
)

REFINED_PRD: Shape[Refined[Prd]] = Shape(
    "refined_prd",
    with_changes(Prd),
    aliases=_ALIASES,
    prepare=plain_changes,
    normalise=give_ids,
    check=refined(Prd, check_prd),
    owned=OWNED,
    rules=(
        *_RULES,
        "The whole PRD, then one entry in changes for every epic, story or section that differs from your own draft.",
        "type is modified, added or removed; item_type is epic, user_story or section; ids stay as they are.",
        "inspiration names the alternative draft and its item, or is left out.",
    ),
    context={
        "before": "Prd: the winner's draft; claimed changes are checked against the real difference",
        "alternatives": "mapping of shown draft number → seat",
        "shown": "mapping of shown draft number → its document: an inspiration must name a part of it",
    },
    example=PRD.example + _CHANGES.lstrip("\n"),
)

REVISED_PRD: Shape[Revised[Prd]] = Shape(
    "revised_prd",
    with_changes(Prd, gaps=True),
    aliases=_ALIASES,
    prepare=plain_changes,
    normalise=give_ids,
    check=revised(Prd, check_prd),
    owned=OWNED,
    rules=(
        *_RULES,
        "The whole PRD, then changes, then exactly one entry in gap_resolutions for each gap, its text copied exactly.",
        "action is updated, already_covered or left_unresolved; a contradiction in the answers is left_unresolved with no affected_items.",
    ),
    context={
        "before": "Prd: the candidate that was audited",
        "gaps": "sequence of str: the gaps to resolve, word for word",
        "decided": "sequence of str: those of them that a person has decided",
    },
    example=PRD.example
    + """
changes:
  - type: modified
    item_type: user_story
    id: US-1-1
    before: Save a list as CSV
    after: Save a list as CSV
gap_resolutions:
  - gap: Nothing says what happens to an empty list.
    action: updated
    rationale: Added a criterion for the empty list.
    affected_items:
      - item_type: user_story
        id: US-1-1
        label: Save a list as CSV
""".lstrip("\n"),
)
