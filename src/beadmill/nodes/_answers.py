"""Full Answers: the approved interview with its skipped questions answered by one seat (reference §4.1)."""

from __future__ import annotations

from beadmill.artifacts.interview import Answer, FilledAnswer, FilledAnswers, FullAnswers, Interview
from beadmill.artifacts.reading.shapes import FILLED_ANSWERS
from beadmill.briefs import PartText
from beadmill.council import Desk
from beadmill.council.desk import SeatOut
from beadmill.errors import Blocked
from beadmill.nodes._planning import Ground, listed, now, part, without_reasons

REASON_SHOWN = 500  # characters of a skip reason that a brief shows (reference §3.4)


async def full_answers(desk: Desk, ground: Ground, interview: Interview) -> FullAnswers:
    """No session when nothing was skipped. Raises SeatOut when the seat cannot: its draft is then not started."""
    skipped = tuple(q.id for q in interview.questions if q.answer.skipped)
    if not skipped:
        return laid_over(interview, FilledAnswers(), at="")
    try:
        done = await desk.write(
            "full-answers",
            "full_answers",
            FILLED_ANSWERS,
            lambda: (*ground.parts, part("interview", without_reasons(interview)), *skip_reasons(interview)),
            values={"skipped": skipped},
            context={"interview": interview},
            questions=True,
        )
    except Blocked as blocked:
        raise SeatOut.of(blocked, invalid="full_answers_invalid") from blocked
    return laid_over(interview, done.value, at=await desk.v.step("answered-at", now))


def laid_over(interview: Interview, filled: FilledAnswers, *, at: str) -> FullAnswers:
    """The interview word for word; only skipped answers are replaced, and the reasons for skipping are left out."""
    given = {one.id: one for one in filled.answers}
    questions = tuple(
        q.model_copy(update={"answer": _filled(given[q.id], at) if q.id in given and q.answer.skipped else q.answer})
        for q in without_reasons(interview).questions
    )
    return FullAnswers(ticket_id=interview.ticket_id, questions=questions, summary=interview.summary)


def _filled(one: FilledAnswer, at: str) -> Answer:
    return Answer(
        selected_option_ids=one.selected_option_ids, free_text=one.free_text, answered_by="ai_skip", answered_at=at
    )


def skip_reasons(interview: Interview) -> tuple[PartText, ...]:
    lines = [f"{q.id}: {q.answer.skip_reason[:REASON_SHOWN]}" for q in interview.questions if q.answer.skip_reason]
    return (PartText("skip_reasons", listed(lines)),) if lines else ()
