"""COVERAGE: the audit's envelope (reference §2.6)."""

from __future__ import annotations

from typing import Any

from beadmill.artifacts.council import CoverageReply
from beadmill.artifacts.interview import Asked
from beadmill.artifacts.reading.ask import count, names, need, rows
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_interview import FINAL, QUESTION_ALIASES, prepare_asked, wrong_options
from beadmill.artifacts.reading.replies import CoverageForm, FollowUp
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit


def _agree(tree: Tree, context: Context, notes: Notes) -> Tree:
    """Gaps win over the label ``clean``: nothing that was found may vanish."""
    if isinstance(tree, dict) and context.get("domain") in ("prd", "beads") and tree.get("follow_up_questions"):
        notes.dropped("follow-up questions outside the interview")
        tree["follow_up_questions"] = []
    if (
        isinstance(tree, dict)
        and tree.get("status") == "clean"
        and (tree.get("gaps") or tree.get("follow_up_questions"))
    ):
        notes.cleaned("status clean beside gaps or questions read as gaps")
        tree["status"] = "gaps"
    return tree


def _prepare(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """A follow-up written as one sentence is its question."""
    key = (
        next((k for k in tree if squash(k) in ("followupquestions", "followups")), "") if isinstance(tree, dict) else ""
    )
    if key and isinstance(tree[key], list):
        tree = tree | {key: [{"question": row} if isinstance(row, str) else row for row in tree[key]]}
        for row in rows(tree, key):
            prepare_asked(row, notes)
    return tree


def _check(value: CoverageForm, context: Context, notes: Notes) -> CoverageReply:
    gaps = tuple(gap for gap in value.gaps if gap.strip())
    if value.status == "gaps" and not gaps and not value.follow_up_questions:
        raise Unfit("gaps: status is gaps, so name them; or answer status clean")
    questions = _follow_ups(value.follow_up_questions, context, notes)
    return CoverageReply(status=value.status, gaps=gaps, follow_up_questions=questions)


def _follow_ups(found: tuple[FollowUp, ...], context: Context, notes: Notes) -> tuple[Any, ...]:
    """New ids CFU1 …, within the budget, as ``Asked`` in JSON. What the budget cuts off is not looked at."""
    left = count(context, "follow_ups_left")
    if left is not None and len(found) > left:
        notes.dropped("follow-up questions over the budget", f"{len(found) - left} left out")
        found = found[: max(left, 0)]
    taken = {*(names(context, "known_ids") or ()), FINAL}
    out: list[Any] = []
    for one in found:
        name = one.id
        if not name or name in taken:
            name = next(f"CFU{n}" for n in range(1, len(taken) + 2) if f"CFU{n}" not in taken)
            notes.synthesized("follow-up numbered", f"{one.id or 'no id'} → {name}")
        taken.add(name)
        need(wrong_options(name, one.answer_type, [option.id for option in one.options]))
        need([] if one.question.strip() else [f"{name}: the question is empty"])
        asked = Asked.model_validate(one.model_dump() | {"id": name, "source": "coverage_follow_up"})
        out.append(asked.model_dump(mode="json"))
    return tuple(out)


COVERAGE: Shape[CoverageReply] = Shape(
    "coverage",
    CoverageForm,
    aliases=QUESTION_ALIASES
    | {"follow_up_questions": ("follow_ups",), "gaps": ("missing",), "status": ("result", "verdict")},
    prepare=_prepare,
    normalise=_agree,
    check=_check,
    rules=(
        "status is clean (then both lists are empty) or gaps.",
        "follow_up_questions only for an interview; elsewhere the list is empty.",
        "A question has id (CFU1 …), question, phase, priority, rationale, answer_type, options.",
    ),
    context={
        "domain": "interview | prd | beads",
        "follow_ups_left": "int: the interview's remaining budget; more questions are left out",
        "known_ids": "collection of str: question ids that are taken",
    },
    example="""
status: gaps
gaps:
  - Nothing says what happens to an empty list.
follow_up_questions: []
""",
)
