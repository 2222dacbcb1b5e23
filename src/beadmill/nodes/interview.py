"""interview: the council finds the questions, one seat asks them in small batches, gaps are asked after (reference §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from beadmill.artifacts.council import Coverage, CoveragePass, CoverageReply
from beadmill.artifacts.interview import Asked, Interview, InterviewSession, Questions, Turn
from beadmill.artifacts.reading.shapes import INTERVIEW_COVERAGE, QUESTIONS, TURN
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs, PartText
from beadmill.council import INTERVIEW, Council, Desk, Draft
from beadmill.domain.coverage import after_interview_pass, final_pass, follow_up_budget
from beadmill.domain.ended import SessionRef
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, ArtifactRef, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.engine.structured import Structured
from beadmill.errors import TurnFailed
from beadmill.nodes._approval import Review, approval
from beadmill.nodes._batch import batch_gate
from beadmill.nodes._planning import CouncilConfig, Ground, ground, part, without_reasons
from beadmill.nodes._planning import now as time_now
from beadmill.nodes._session import (
    MOST_IN_BATCH,
    answer_text,
    asked_by,
    follow_ups,
    follow_ups_left,
    interview_of,
    not_asked,
    so_far,
    with_all_skipped,
    with_answers,
    with_batch,
    with_edits,
    with_turn,
)

MOST_QUESTIONS = 50


class InterviewNode:
    spec = NodeSpec(
        "interview", CouncilConfig, frozenset({"approved"}), reads=(ScanReport, RelevantFiles), writes=(Interview,)
    )

    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def visit(self, v: Visit, cfg: CouncilConfig, /) -> Outcome:
        where = await ground(v, cfg, self.briefs)
        most = min(v.settings.council.interview_questions, cfg.questions or MOST_QUESTIONS)
        winner, compiled = await self._compiled(v, where, most) if most else (0, Questions(questions=()))
        talk = _Talk(v, where, winner)
        session = InterviewSession(
            winner=str(where.table.seats[winner]),
            max_questions=most,
            max_follow_ups=follow_up_budget(most, v.settings.council.follow_up_percent),
            compiled=compiled.questions,
        )
        if most:
            await v.phase(Phase.WAITING_INTERVIEW_ANSWERS)
            session = await talk.live(session)
        passes = cfg.passes or v.settings.council.interview_passes
        session, coverage = await talk.covered(session, passes)
        done = interview_of(session, key=v.work.key, at=await v.step("generated-at", time_now))
        ref = await v.put(done, by=SYSTEM)
        await v.phase(Phase.WAITING_INTERVIEW_APPROVAL)
        title = f"Approve the interview of {v.work.key}"
        policy = cfg.policy or v.settings.gates.interview
        return await approval(v, Review(done, ref, coverage), title=title, policy=policy)

    async def _compiled(self, v: Visit, where: Ground, most: int) -> tuple[int, Questions]:
        """The council's list of questions, and whose seat interviews."""
        council = Council(v, INTERVIEW, where.table)
        limit: dict[str, object] = {"max_questions": most}

        async def draft(desk: Desk) -> Draft[Questions]:
            done = await desk.write(
                "draft", "interview_draft", QUESTIONS, lambda: where.parts, values=limit, context=limit
            )
            return Draft(desk.position, done.value, None, done.interventions)

        await v.phase(Phase.COUNCIL_DELIBERATING)
        drafts = await council.draft(draft)
        await v.phase(Phase.COUNCIL_VOTING_INTERVIEW)
        tally = await council.vote(drafts, lambda: where.parts)
        await v.phase(Phase.COMPILING_INTERVIEW)
        refined = await council.refine(drafts, tally, lambda: where.parts, context=limit, values=limit)
        await v.put(refined, by=where.table.seats[tally.winner])
        return tally.winner, refined


@dataclass(frozen=True, slots=True)
class _Talk:
    """The winner's seat and the person. The session document is the truth; the conversation is a convenience."""

    v: Visit
    where: Ground
    winner: int

    async def live(self, session: InterviewSession) -> InterviewSession:
        """Turn, batch, answer, until the free-form question is answered or the person skips the rest.

        Ends: every turn asks at least one question that was not asked before, and follow-ups have a budget.
        """
        resume: SessionRef | None = None
        edited = False
        while not session.complete:
            turn = await self._turn(session, resume, edited=edited)
            resume = turn.reply.session
            session = with_turn(session, turn.value)
            before = session.answers
            session = await self._asked(session)
            edited = any(session.answers[name] != before[name] for name in before)
            if session.batches[-1].is_final_free_form:
                done = session.completed_at or session.batches[-1].submitted_at
                session = session.model_copy(update={"complete": True, "completed_at": done})
        await self._keep(session)
        return session

    async def _turn(self, session: InterviewSession, resume: SessionRef | None, *, edited: bool) -> Structured[Turn]:
        """In the running conversation where there is one. A lost one is taken up anew from the session document."""
        number = len(session.batches) + 1
        if resume is not None and resume.conversation:
            try:
                return await self._say(f"turn-{number}", "next", session, resume, edited=edited)
            except TurnFailed:
                return await self._say(f"turn-{number}-anew", "resume", session, None, edited=False)
        kind = "first" if number == 1 else "resume"
        return await self._say(f"turn-{number}", kind, session, None, edited=False)

    async def _say(
        self, name: str, kind: str, session: InterviewSession, resume: SessionRef | None, *, edited: bool
    ) -> Structured[Turn]:
        number = len(session.batches) + 1
        return await Desk(self.where.table, self.winner, self.v.at("live")).write(
            name,
            "interview_turn",
            TURN,
            lambda: _turn_parts(kind, session, self.where.ticket, edited=edited),
            values={
                "kind": kind,
                "edited": edited,
                "batch": number,
                "max_follow_ups": session.max_follow_ups,
                "follow_ups_left": follow_ups_left(session),
                "questions_left": len(not_asked(session)),
            },
            context={
                "compiled_ids": tuple(q.id for q in session.compiled),
                "answered_ids": tuple(session.answers),
                "follow_ups_left": follow_ups_left(session),
            },
            subject=f"batch {number}",
            turn=str(number),
            resume=resume,
            fresh=False,
        )

    async def _asked(self, session: InterviewSession) -> InterviewSession:
        """Puts the session's last batch to the person and takes the answers in. An edit alone puts it once more."""
        batch = session.batches[-1]
        name = f"batch-{batch.number}"
        for again in count(1):
            ref = await self._keep(session)
            answer = await self.v.ask(name, batch_gate(session, batch, ref, key=self.v.work.key))
            at = answer.at.isoformat(timespec="seconds")
            if answer.choice != "edit":
                break
            session, name = with_edits(session, answer.payload, at=at), f"batch-{batch.number}-edited-{again}"
        if answer.choice == "skip_all":
            payload = answer.payload if isinstance(answer.payload, dict) else {}
            reason = str(payload.get("reason") or answer.note)
            return with_all_skipped(session, payload, reason=reason, at=at)
        return with_answers(session, answer.payload, at=at)

    async def _keep(self, session: InterviewSession) -> ArtifactRef:
        return await self.v.put(session, by=SYSTEM)

    async def covered(self, session: InterviewSession, limit: int) -> tuple[InterviewSession, Coverage]:
        """Audits with follow-up questions between them. Skipping everything ends it at once (reference §3.4)."""
        coverage = Coverage(domain="interview", ended="skipped")
        for number in range(1, limit + 1):
            if session.skipped_all or session.max_questions == 0:
                unread = CoveragePass(number=number, status="clean", synthetic=True)
                coverage = coverage.model_copy(update={"passes": (*coverage.passes, unread), "ended": "skipped"})
                break
            await self.v.phase(Phase.VERIFYING_INTERVIEW_COVERAGE)
            reply = await self._audit(session, number, limit)
            found = tuple(Asked.model_validate(one) for one in reply.follow_up_questions)
            verdict = after_interview_pass(
                number=number,
                limit=limit,
                gaps=len(reply.gaps),
                follow_ups=len(found),
                budget_left=follow_ups_left(session),
            )
            session = session.model_copy(update={"summary": reply.summary})
            passes = (*coverage.passes, _pass(number, reply, final=final_pass(number, limit)))
            coverage = Coverage.model_validate(
                {"domain": "interview", "passes": passes, "ended": verdict.ended or "gaps"}
            )
            await self.v.put(coverage, by=SYSTEM)
            if verdict.go == "approve":
                break
            await self.v.phase(Phase.WAITING_INTERVIEW_ANSWERS)
            session = await self._follow_up(session, found[: follow_ups_left(session)], number)
        await self.v.put(coverage, by=SYSTEM)
        return session, coverage

    async def _audit(self, session: InterviewSession, number: int, limit: int) -> CoverageReply:
        now = without_reasons(interview_of(session, key=self.v.work.key, at=""))
        said = [answer_text(q, q.answer) for q in now.questions]
        left = follow_ups_left(session)
        done = await Desk(self.where.table, self.winner, self.v.at(f"cover/pass-{number}")).write(
            "audit",
            "interview_coverage",
            INTERVIEW_COVERAGE,
            lambda: (self.where.ticket, PartText("user_answers", "\n".join(said)), part("interview", now)),
            values={
                "pass_number": number,
                "max_passes": limit,
                "is_final": final_pass(number, limit),
                "follow_ups_left": left,
                "follow_ups_total": session.max_follow_ups,
                "follow_ups_used": follow_ups(session),
            },
            context={
                "domain": "interview",
                "follow_ups_left": left,
                "known_ids": tuple(q.id for q in now.questions),
                "answered_ids": tuple(q.id for q in now.questions if not q.answer.skipped),
            },
            subject=f"pass {number}",
            turn=str(number),
        )
        return done.value

    async def _follow_up(self, session: InterviewSession, questions: Sequence[Asked], number: int) -> InterviewSession:
        """In batches of at most three."""
        for start in range(0, len(questions), MOST_IN_BATCH):
            some = questions[start : start + MOST_IN_BATCH]
            marked = tuple(q.model_copy(update={"source": "coverage_follow_up", "round": number}) for q in some)
            session = await self._asked(with_batch(session, marked))
            if session.skipped_all:
                break
        await self._keep(session)
        return session


def _pass(number: int, reply: CoverageReply, *, final: bool) -> CoveragePass:
    """Gaps and follow-ups go together: a question without a named gap is one."""
    gaps = reply.gaps or tuple(str(one["question"]) for one in reply.follow_up_questions)
    return CoveragePass(number=number, status="gaps" if gaps else "clean", gaps=gaps, final=final)


def _turn_parts(kind: str, session: InterviewSession, ticket: PartText, *, edited: bool) -> Sequence[PartText]:
    """A running conversation needs the new answers, and the earlier ones when they were edited; a new one everything."""
    if kind == "next":
        return (PartText("answers", _said(session, latest=not edited)),)
    compiled = "\n".join(f"{q.id} ({q.phase}): {q.question}" for q in session.compiled)
    parts = (ticket, PartText("questions", compiled))
    return parts if kind == "first" else (*parts, PartText("session", so_far(session)))


def _said(session: InterviewSession, *, latest: bool) -> str:
    wanted = asked_by(session, session.batches[-1]) if latest else session.questions
    return "\n".join(answer_text(q, session.answers[q.id]) for q in wanted if q.id in session.answers)
