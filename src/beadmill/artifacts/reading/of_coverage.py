"""COVERAGE: the audit's envelope (reference §2.6)."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from beadmill.artifacts.council import CoverageReply
from beadmill.artifacts.interview import Asked
from beadmill.artifacts.reading.ask import count, names
from beadmill.artifacts.reading.fit import Fit
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_interview import FINAL, QUESTION_ALIASES, prepare_asked, wrong_options
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


def _check(value: CoverageReply, context: Context, notes: Notes) -> CoverageReply:
    gaps = tuple(gap for gap in value.gaps if gap.strip())
    if value.status == "gaps" and not gaps and not value.follow_up_questions:
        raise Unfit("gaps: status is gaps, so name them; or answer status clean")
    questions = _follow_ups(value.follow_up_questions, context, notes)
    return CoverageReply(status=value.status, gaps=gaps, follow_up_questions=questions)


def _follow_ups(found: tuple[Any, ...], context: Context, notes: Notes) -> tuple[Any, ...]:
    """New ids CFU1 …, within the budget, as ``Asked`` in JSON."""
    left = count(context, "follow_ups_left")
    if left is not None and len(found) > left:
        notes.dropped("follow-up questions over the budget", f"{len(found) - left} left out")
        found = found[:left]
    taken = {*(names(context, "known_ids") or ()), FINAL}
    out: list[Any] = []
    for row in found:
        one = _asked(row, notes)
        if not one.id or one.id in taken:
            fresh = next(f"CFU{n}" for n in range(1, len(taken) + 2) if f"CFU{n}" not in taken)
            notes.synthesized("follow-up numbered", f"{one.id or 'no id'} → {fresh}")
            one = one.model_copy(update={"id": fresh})
        taken.add(one.id)
        out.append(one.model_dump(mode="json"))
    return tuple(out)


def _asked(row: Any, notes: Notes) -> Asked:
    if isinstance(row, str):
        row = {"question": row}
    if not isinstance(row, dict):
        raise Unfit("follow_up_questions: each is a mapping with id, question, phase, answer_type, options")
    prepare_asked(row, notes)
    fitted = Fit(QUESTION_ALIASES, notes).model(Asked, row)
    try:
        one = Asked.model_validate({"id": "", "phase": "Assembly"} | fitted | {"source": "coverage_follow_up"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unfit(f"follow_up_questions.{where}: {first['msg']}") from error
    wrong = wrong_options(one.id or "follow-up", one.answer_type, [o.id for o in one.options])
    if wrong or not one.question.strip():
        raise Unfit(wrong[0] if wrong else "follow_up_questions: a question is empty")
    return one


COVERAGE: Shape[CoverageReply] = Shape(
    "coverage",
    CoverageReply,
    aliases={"follow_up_questions": ("follow_ups", "questions"), "gaps": ("missing",), "status": ("result", "verdict")},
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
