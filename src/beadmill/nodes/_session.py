"""The interview session as a value: what was asked, what was answered, what may still be asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from beadmill.artifacts.interview import (
    Answer,
    Asked,
    Batch,
    FollowUpRound,
    GeneratedBy,
    Interview,
    InterviewQuestion,
    InterviewSession,
    InterviewSummary,
    Question,
    SessionAnswer,
    Turn,
)
from beadmill.domain.values import Json

FINAL = "QFF1"
MOST_IN_BATCH = 3
REASON_KEPT = 20_000  # characters of a skip reason (reference §3.4)
NOT_ASKED = "The interviewer did not need to ask it."
FINAL_QUESTION = (
    "Is there anything else that should be known about this work? "
    "After this, your answers are checked for gaps and put before you for approval."
)


def follow_ups(session: InterviewSession) -> int:
    """How many were asked, by turns and by coverage together: they share one budget."""
    return sum(q.source in ("prompt_follow_up", "coverage_follow_up") for q in session.questions)


def follow_ups_left(session: InterviewSession) -> int:
    return max(session.max_follow_ups - follow_ups(session), 0)


def not_asked(session: InterviewSession) -> tuple[Question, ...]:
    asked = {q.id for q in session.questions}
    return tuple(q for q in session.compiled if q.id not in asked)


def asked_by(session: InterviewSession, batch: Batch) -> tuple[Asked, ...]:
    by_id = {q.id: q for q in session.questions}
    return tuple(by_id[one] for one in batch.question_ids)


def with_turn(session: InterviewSession, turn: Turn) -> InterviewSession:
    """The session with the turn's batch, as far as it is allowed: ids once asked are closed, follow-ups have a budget.
    A turn that leaves nothing to ask gives the next compiled question, then the free-form one: it always goes on."""
    if turn.is_final_free_form:
        return with_batch(session, (_final(turn.questions),), turn, final=True)
    questions = _allowed(session, turn.questions)
    if questions:
        return with_batch(session, questions, turn)
    left = not_asked(session)
    if left and not turn.complete:
        return with_batch(session, tuple(_plain(q) for q in left[:1]), turn)
    return with_batch(session, (_final(()),), turn, final=True)


def _allowed(session: InterviewSession, wanted: Sequence[Asked]) -> tuple[Asked, ...]:
    closed = {q.id for q in session.questions} | {FINAL}
    compiled = {q.id for q in session.compiled}
    left = follow_ups_left(session)
    kept: list[Asked] = []
    for one in wanted[:MOST_IN_BATCH]:
        known = one.id in compiled
        if one.id in closed or (not known and left <= 0):
            continue
        left -= not known
        closed.add(one.id)
        source = "compiled" if known else "prompt_follow_up"
        kept.append(one.model_copy(update={"source": source, "round": 0 if known else len(session.batches) + 1}))
    return tuple(kept)


def _plain(question: Question) -> Asked:
    return Asked(id=question.id, question=question.question, phase=question.phase)


def _final(wanted: Sequence[Asked]) -> Asked:
    text = wanted[0].question if wanted else FINAL_QUESTION
    return Asked(id=FINAL, question=text, phase="Assembly", source="final_free_form")


def with_batch(
    session: InterviewSession, questions: Sequence[Asked], turn: Turn | None = None, *, final: bool = False
) -> InterviewSession:
    """A batch of the live session, or of coverage when there is no turn behind it."""
    batch = Batch(
        number=len(session.batches) + 1,
        source="session" if turn else "coverage",
        question_ids=tuple(q.id for q in questions),
        is_final_free_form=final,
        commentary=turn.ai_commentary if turn else "",
        progress=turn.progress if turn else None,
    )
    return session.model_copy(
        update={"questions": (*session.questions, *questions), "batches": (*session.batches, batch)}
    )


def with_answers(session: InterviewSession, payload: Json, *, at: str) -> InterviewSession:
    """The answers to the last batch, and edits of earlier ones. What is left blank is skipped."""
    batch = session.batches[-1]
    given = _mapping(_mapping(payload).get("answers"))
    answers = {q.id: _answer(q, _mapping(given.get(q.id)), at, batch.number) for q in asked_by(session, batch)}
    edited = with_edits(session, payload, at=at)
    sent = batch.model_copy(update={"submitted_at": at})
    update = {"answers": {**edited.answers, **answers}, "batches": (*session.batches[:-1], sent)}
    return edited.model_copy(update=update)


def with_edits(session: InterviewSession, payload: Json, *, at: str) -> InterviewSession:
    """Answers of earlier batches, changed. What an audit had summed up from the old ones goes."""
    edits = _mapping(_mapping(payload).get("edits"))
    batch = session.batches[-1]
    changed = {
        q.id: _answer(q, edits[q.id], at, batch.number)
        for q in session.questions
        if q.id in session.answers and q.id not in batch.question_ids and isinstance(edits.get(q.id), Mapping)
    }
    if not changed:
        return session
    return session.model_copy(update={"answers": session.answers | changed, "summary": InterviewSummary()})


def _answer(question: Asked, said: Mapping[str, Any], at: str, batch: int) -> SessionAnswer:
    known = [option.id for option in question.options]
    chosen = [one for one in dict.fromkeys(said.get("selected_option_ids") or ()) if one in known]
    chosen = chosen[:1] if question.answer_type == "single_choice" else chosen
    text = str(said.get("free_text") or "").strip()
    if said.get("skipped") or not (text or chosen):
        return _skipped(str(said.get("skip_reason") or ""), at, batch)
    return SessionAnswer(selected_option_ids=tuple(chosen), free_text=text, answered_at=at, batch=batch)


def _skipped(reason: str, at: str, batch: int) -> SessionAnswer:
    why = reason.strip()[:REASON_KEPT] or None
    return SessionAnswer(
        skipped=True, answered_by="user_skip", answered_at=at, skipped_at=at, skip_reason=why, batch=batch
    )


def with_all_skipped(session: InterviewSession, payload: Json, *, reason: str, at: str) -> InterviewSession:
    """What was answered stays; everything else is skipped. ``reason`` counts where there is no reason of its own."""
    said = with_answers(session, payload, at=at)
    number = session.batches[-1].number
    answers = {
        name: one.model_copy(update={"skip_reason": one.skip_reason or reason.strip()[:REASON_KEPT] or None})
        if one.skipped and name in session.batches[-1].question_ids
        else one
        for name, one in said.answers.items()
    }
    left = () if session.complete else not_asked(said)  # in coverage the live session is over
    answers |= {q.id: _skipped(reason, at, number) for q in left}
    questions = (*said.questions, *(_plain(q) for q in left))
    over = {"skipped_all": True, "complete": True, "completed_at": session.completed_at or at}
    return said.model_copy(update={"questions": questions, "answers": answers, **over})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def interview_of(session: InterviewSession, *, key: str, at: str) -> Interview:
    """The canonical document, built by Beadmill alone: every question that was asked, then the compiled ones that the
    interviewer left out, as skipped by it."""
    asked = tuple(
        _recorded(
            q, session.answers[q.id].plain if q.id in session.answers else Answer(skipped=True, answered_by="user_skip")
        )
        for q in session.questions
    )
    silent = Answer(skipped=True, answered_by="ai_skip", skip_reason=NOT_ASKED)
    left = tuple(_recorded(_plain(q), silent) for q in not_asked(session))
    final = session.answers.get(FINAL)
    return Interview(
        ticket_id=key,
        generated_by=GeneratedBy(winner_model=session.winner, generated_at=at),
        questions=(*asked, *left),
        follow_up_rounds=_rounds(session),
        summary=session.summary.model_copy(update={"final_free_form_answer": final.free_text if final else ""}),
    )


def _recorded(question: Asked, answer: Answer) -> InterviewQuestion:
    return InterviewQuestion(
        id=question.id,
        phase=question.phase,
        prompt=question.question,
        source=question.source,
        follow_up_round=question.round,
        answer_type=question.answer_type,
        options=question.options,
        answer=answer,
    )


def _rounds(session: InterviewSession) -> tuple[FollowUpRound, ...]:
    """One round per batch that held follow-ups."""
    sources = {"prompt_follow_up": "prompt", "coverage_follow_up": "coverage"}
    found: list[tuple[str, tuple[str, ...]]] = []
    for batch in session.batches:
        for source, name in sources.items():
            ids = tuple(q.id for q in asked_by(session, batch) if q.source == source)
            if ids:
                found.append((name, ids))
    return tuple(
        FollowUpRound.model_validate({"round_number": n, "source": name, "question_ids": ids})
        for n, (name, ids) in enumerate(found, 1)
    )


def so_far(session: InterviewSession) -> str:
    """For an interviewer who takes over: what is closed, and what may still be asked."""
    said = [(q, session.answers[q.id]) for q in session.questions if q.id in session.answers]
    lists = (
        ("Answered", [answer_text(q, a) for q, a in said if not a.skipped]),
        ("Skipped by the person", [f"{q.id}: {q.question}" for q, a in said if a.skipped]),
        ("Not asked yet", [f"{q.id} ({q.phase}): {q.question}" for q in not_asked(session)]),
    )
    return "\n\n".join("\n".join([f"{name}:", *(lines or ["none"])]) for name, lines in lists)


def answer_text(question: Asked | InterviewQuestion, answer: Answer) -> str:
    """One answer for a model. Why it was skipped stays with the person."""
    words = question.question if isinstance(question, Asked) else question.prompt
    if answer.skipped:
        return f"{question.id}: {words}\n  skipped"
    labels = [o.label for o in question.options if o.id in answer.selected_option_ids]
    said = [f"  chosen: {'; '.join(labels)}"] if labels else []
    said += [f"  {'note' if labels else 'answer'}: {answer.free_text}"] if answer.free_text else []
    return "\n".join([f"{question.id}: {words}", *said])
