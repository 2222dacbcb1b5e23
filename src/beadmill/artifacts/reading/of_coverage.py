"""COVERAGE, INTERVIEW_COVERAGE: the audit's envelope (reference §2.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beadmill.artifacts.council import CoverageReply
from beadmill.artifacts.interview import Asked, InterviewSummary
from beadmill.artifacts.reading.ask import count, names, need, rows
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_interview import FINAL, QUESTION_ALIASES, prepare_asked, wrong_options
from beadmill.artifacts.reading.replies import CoverageForm, FollowUp, InterviewCoverageForm, SummaryLine
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit

_NO_GAP = frozenset({"", "none", "nogaps", "na", "nothing", "nonefound", "nogapsfound"})


def _agree(tree: Tree, context: Context, notes: Notes) -> Tree:
    """Gaps win over the label ``clean``: nothing that was found may vanish."""
    if isinstance(tree, dict) and context.get("domain") in ("prd", "beads") and tree.get("follow_up_questions"):
        notes.dropped("follow-up questions outside the interview")
        tree["follow_up_questions"] = []
    _drop_empty_words(tree, notes)
    if (
        isinstance(tree, dict)
        and tree.get("status") == "clean"
        and (tree.get("gaps") or tree.get("follow_up_questions"))
    ):
        notes.cleaned("status clean beside gaps or questions read as gaps")
        tree["status"] = "gaps"
    return tree


def _drop_empty_words(tree: Tree, notes: Notes) -> None:
    """``status: clean`` and ``gaps: [none]`` name no gap."""
    gaps = tree.get("gaps") if isinstance(tree, dict) and tree.get("status") == "clean" else None
    if isinstance(gaps, list) and gaps and all(isinstance(g, str) and squash(g) in _NO_GAP for g in gaps):
        notes.dropped("a word for no gap", ", ".join(gaps))
        tree["gaps"] = []


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


def _prepare_interview(tree: Tree, context: Context, notes: Notes) -> Tree:
    """A summary line that is only a sentence names no answer: it falls away later, and is no reason to ask again."""
    tree = _prepare(tree, context, notes)
    summary = tree.get("summary") if isinstance(tree, dict) else None
    if isinstance(tree, dict) and isinstance(summary, dict):
        plain = {name: _named(lines) if isinstance(lines, list) else lines for name, lines in summary.items()}
        return tree | {"summary": plain}
    return tree


def _named(lines: Sequence[Tree]) -> list[Tree]:
    return [{"text": line, "answers": []} if isinstance(line, str) else line for line in lines]


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


def _check_interview(value: InterviewCoverageForm, context: Context, notes: Notes) -> CoverageReply:
    """As ``_check``; of the summary only what names an answer of the person."""
    said = {
        name: tuple(_borne_out(getattr(value.summary, name), context, notes))
        for name in ("goals", "constraints", "non_goals")
    }
    return _check(value, context, notes).model_copy(update={"summary": InterviewSummary(**said)})


def _borne_out(lines: Sequence[SummaryLine], context: Context, notes: Notes) -> Iterator[str]:
    answered = names(context, "answered_ids")
    for line in lines:
        known = bool(line.answers) and (answered is None or set(line.answers) <= set(answered))
        if line.text.strip() and known:
            yield line.text.strip()
        else:
            notes.dropped("a line of the summary that no answer bears out", line.text[:200])


CONTEXT: Mapping[str, str] = {
    "domain": "interview | prd | beads",
    "follow_ups_left": "int: the interview's remaining budget; more questions are left out",
    "known_ids": "collection of str: question ids that are taken",
}
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
    context=CONTEXT,
    example="""
status: gaps
gaps:
  - Nothing says what happens to an empty list.
follow_up_questions: []
""",
)

INTERVIEW_COVERAGE: Shape[CoverageReply] = replace(
    COVERAGE,
    name="interview_coverage",
    model=InterviewCoverageForm,
    prepare=_prepare_interview,
    check=_check_interview,
    rules=(
        COVERAGE.rules[0],
        COVERAGE.rules[2],
        "summary says what the answers say and nothing else; a list without such a line stays empty.",
        "Each line of summary names in answers the questions it comes from, which the person has answered.",
    ),
    context={**CONTEXT, "answered_ids": "collection of str: questions that the person has answered"},
    example=COVERAGE.example
    + """summary:
  goals:
    - text: Staff can save a list as a file.
      answers: [Q01]
  constraints: []
  non_goals: []
""",
)
