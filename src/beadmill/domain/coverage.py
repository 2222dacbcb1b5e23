"""When a coverage loop goes on, and why it ends (reference looptroop-lifecycle §2.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ended = Literal["", "clean", "coverage_pass_limit_reached", "follow_up_budget_exhausted", "follow_up_generation_failed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``go``: approve = on to the person, ask = put the follow-ups, revise = next candidate. ``ended`` is "" while the
    loop goes on."""

    go: Literal["approve", "ask", "revise"]
    ended: Ended = ""


def follow_up_budget(max_questions: int, percent: int) -> int:
    """How many follow-ups live turns and coverage may ask together. 0 = none."""
    if percent <= 0 or max_questions <= 0:
        return 0
    return max(1, max_questions * percent // 100)


def final_pass(number: int, limit: int) -> bool:
    """``number`` counts from 1."""
    return number >= limit


def after_document_pass(*, number: int, limit: int, gaps: int) -> Verdict:
    """PRD and beads: gaps are revised by the winner until a pass is clean or the passes are spent."""
    if not gaps:
        return Verdict("approve", "clean")
    if final_pass(number, limit):
        return Verdict("approve", "coverage_pass_limit_reached")
    return Verdict("revise")


def after_interview_pass(*, number: int, limit: int, gaps: int, follow_ups: int, budget_left: int) -> Verdict:
    """Interview: gaps become follow-up questions. Clean needs neither gaps nor follow-ups. ``follow_ups`` counts the
    usable questions the audit gave, before they are cut to the budget."""
    if not gaps and not follow_ups:
        return Verdict("approve", "clean")
    if final_pass(number, limit):
        return Verdict("approve", "coverage_pass_limit_reached")
    if budget_left <= 0:
        return Verdict("approve", "follow_up_budget_exhausted")
    if not follow_ups:
        return Verdict("approve", "follow_up_generation_failed")
    return Verdict("ask")
