"""One session at one bead: the conversation until its closing marker holds (reference §8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.beads import Bead, BeadStatus
from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BEAD_STATUS
from beadmill.briefs import Briefs, PartText
from beadmill.domain.ended import Failed, Replied, SessionRef, Why
from beadmill.domain.values import Access, Brief, GateKind, GateRequest
from beadmill.engine.port import Visit
from beadmill.errors import TurnFailed
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask

MAX_QUESTIONS = 10  # of one try


@dataclass(frozen=True, slots=True)
class Talk:
    """How the conversation ended. ``failure`` is "" when the marker says done and every check passes."""

    status: BeadStatus | None
    session: SessionRef | None
    tokens: tuple[str, ...] = ()
    failure: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Next:
    """What the following turn is: its template, what it is told, and which allowance it spends."""

    template: str
    text: str
    spends: str  # repair | continue | question


@dataclass(frozen=True, slots=True)
class _Desk:
    subject: str
    cwd: str
    parts: Sequence[PartText]
    turn: int
    worked: timedelta


class Coder:
    """Asks the implementer to build a bead and goes on in the same conversation while that can help."""

    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def build(self, v: Visit, bead: Bead, *, cwd: str, subject: str, parts: Sequence[PartText]) -> Talk:
        """Raises TurnFailed as the visit does: Lapsed fails the try, anything else blocks."""
        reply = await _turn(v, "code", partial(self._first, v, cwd, subject, parts))
        spent = {"repair": 0, "continue": 0, "question": 0}
        tokens = [reply.session.token]
        worked = reply.worked
        for turn in count(2):
            status, step = _judge(bead, reply)
            if status is not None and status.status == "question" and v.settings.questions.enabled:
                step = await self._ask(v, turn, bead, status)
            if step is None:
                return Talk(status, reply.session, tuple(tokens))
            ended = _spent(v, step, spent, worked)
            if ended:
                return Talk(status, reply.session, tuple(tokens), failure=f"{step.text}\n{ended}", code=_code(step))
            spent[step.spends] += 1
            desk = _Desk(subject, cwd, parts, turn, worked)
            reply = await _turn(v, f"code-{turn}", partial(self._going_on, v, step, reply, desk))
            tokens.append(reply.session.token)
            worked += reply.worked
        raise AssertionError

    def _briefs(self, v: Visit) -> Briefs:
        return self.briefs.within(v.settings.context_tokens, v.prompts)

    def _brief(self, v: Visit, subject: str, parts: Sequence[PartText]) -> Brief:
        return self._briefs(v).write("coding", parts, ticket=v.work.key, subject=subject, turn="1", shape=BEAD_STATUS)

    def _first(self, v: Visit, cwd: str, subject: str, parts: Sequence[PartText]) -> AgentTask:
        left = timedelta(seconds=v.settings.build.iteration_s)
        return self._task(v, self._brief(v, subject, parts), cwd, left, None)

    def _going_on(self, v: Visit, step: Next, last: Replied | Failed, talk: _Desk) -> AgentTask:
        if step.template == "repair":
            assert isinstance(last, Replied)
            first = self._brief(v, talk.subject, talk.parts)
            brief = self._briefs(v).repair(first, error=step.text, reply=last.text, shape=BEAD_STATUS)
        else:
            brief = self._briefs(v).write(
                "coding_continue",
                [],
                ticket=v.work.key,
                subject=talk.subject,
                turn=str(talk.turn),
                shape=BEAD_STATUS,
                why=step.text,
            )
        left = timedelta(seconds=v.settings.build.iteration_s) - talk.worked
        return self._task(v, brief, talk.cwd, left, last.session)

    def _task(self, v: Visit, brief: Brief, cwd: str, budget: timedelta, resume: SessionRef | None) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.WRITE,
            cwd=Path(cwd),
            budget=budget,
            idle=timedelta(seconds=v.settings.build.idle_s),
            schema=BEAD_STATUS.json_schema(),
            resume=resume,
            questions=v.settings.questions.enabled,
            max_steps=v.settings.build.max_steps,
        )

    async def _ask(self, v: Visit, turn: int, bead: Bead, status: BeadStatus) -> Next:
        """A question gate with a countdown; when nobody answers, the agent decides by itself."""
        answer = await v.ask(
            f"question-{turn}",
            GateRequest(
                GateKind.QUESTION,
                f"{bead.id} asks: {status.question or status.reason}"[:300],
                ("answer", "decide_yourself"),
                form={"type": "object", "properties": {"answer": {"type": "string"}}},
                detail={"bead": bead.id, "question": status.question or status.reason},
                within=timedelta(seconds=v.settings.questions.window_s),
                lapse="decide_yourself",
            ),
        )
        said = (answer.payload or {}).get("answer", "") or answer.note
        if answer.choice == "answer" and said:
            return Next("coding_continue", f"You asked: {status.question}\n\nThe answer: {said}", "question")
        alone = "Nobody answered. Take the most sensible choice yourself and say which."
        return Next("coding_continue", f"You asked: {status.question}\n\n{alone}", "question")


async def _turn(v: Visit, name: str, task: Callable[[], AgentTask]) -> Replied | Failed:
    """A turn that may simply be continued keeps the tree and the try: only the turn itself is forgotten. One that used
    up its steps, or was cut at its length, comes back: it is told to go on, as often as any unfinished try."""
    try:
        return await v.agent(name, task)
    except TurnFailed as failed:
        if isinstance(failed.end, Failed) and failed.end.why in (Why.STEPS, Why.TRUNCATED):
            return failed.end
        if failed.continuable:
            failed.forget = (f"{v.scope}/{name}",)
        raise


def _judge(bead: Bead, reply: Replied | Failed) -> tuple[BeadStatus | None, Next | None]:
    """The marker, and what to do about it; (status, None) = done and every check passes."""
    if isinstance(reply, Failed):
        cut = " Go on in smaller parts: write files instead of printing them." if reply.why is Why.TRUNCATED else ""
        return None, Next("coding_continue", f"Your turn ended early: {reply.message}{cut}", "continue")
    reading = read(BEAD_STATUS, reply.text, data=reply.data, context={"bead_id": bead.id})
    status = reading.value
    if status is None:
        return None, Next("repair", reading.error or "there is no closing marker", "repair")
    if status.status != "done":
        why = status.reason or status.question or "no reason was given"
        return status, Next("coding_continue", f"You reported {status.status}: {why}", "continue")
    open_ = [name for name, result in status.checks.items() if result != "pass"]
    if open_:
        why = f"These checks do not pass: {', '.join(open_)}. {status.reason}".strip()
        return status, Next("coding_continue", why, "continue")
    return status, None


def _spent(v: Visit, step: Next, spent: dict[str, int], worked: timedelta) -> str:
    """Why there is no further turn, "" when there is one."""
    if worked >= timedelta(seconds=v.settings.build.iteration_s):
        return "the working time of this try is used up"
    if step.spends == "repair" and spent["repair"] >= v.settings.council.structured_retries:
        return "the reply could still not be read"
    if step.spends == "question" and spent["question"] >= MAX_QUESTIONS:
        return f"it has asked {MAX_QUESTIONS} questions"
    if step.spends == "continue" and spent["continue"] >= v.settings.build.continuations:
        return "no continuation is left"
    return ""


def _code(step: Next) -> str:
    return "BEAD_AGENT_RESPONSE_INVALID" if step.spends == "repair" else "BEAD_NOT_FINISHED"
