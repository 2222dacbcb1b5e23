"""A structured reply from an agent: ask, read, re-ask within a budget, keep everything that was said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar

from beadmill.artifacts.council import Intervention
from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shape import Reading, Shape
from beadmill.artifacts.reply import RAW_KEPT, RawReply, Reply
from beadmill.briefs import Briefs
from beadmill.domain.ended import Failed, Replied, Why
from beadmill.domain.values import SYSTEM, ArtifactRef, Brief
from beadmill.engine.port import Visit
from beadmill.errors import Blocked, TurnFailed
from beadmill.processes.spec import AgentTask

T = TypeVar("T")
LEAST = timedelta(seconds=10)  # working time a re-ask gets when the budget is nearly spent
_ANEW = frozenset({"empty", "echo", "truncated"})  # a repair in the same conversation would not help
_WORTH_ANOTHER = frozenset({Why.TRANSPORT, Why.TRUNCATED, Why.NO_RESULT, Why.OVERLOADED})


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """``reply`` is the accepted one; ``worked`` and ``answered`` (questions that a person answered) are of all tries."""

    value: T
    reply: Replied
    interventions: tuple[Intervention, ...] = ()
    worked: timedelta = timedelta()
    answered: int = 0


@dataclass(frozen=True, slots=True)
class _Exchange(Generic[T]):
    """What stays the same over the tries of one exchange."""

    shape: Shape[T]
    task: Callable[[Brief], AgentTask]
    brief: Callable[[], Brief]
    briefs: Briefs
    context: Mapping[str, object] | None

    def first(self, worked: timedelta) -> AgentTask:
        return self._within(self.task(self.brief()), worked)

    def again(self, worked: timedelta, reply: Replied, error: str) -> AgentTask:
        brief = self.briefs.repair(self.brief(), error=error, reply=reply.text, shape=self.shape)
        return replace(self._within(self.task(brief), worked), resume=reply.session)

    def _within(self, task: AgentTask, worked: timedelta) -> AgentTask:
        schema = self.shape.json_schema(self.context) if self.shape.form in ("yaml", "json") else None
        return replace(task, budget=max(task.budget - worked, LEAST), schema=task.schema or schema)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is read, compared by ``key`` alone."""

    key: str
    shape: Shape[Any] = field(compare=False)
    reply: Replied = field(compare=False)
    context: Mapping[str, object] | None = field(compare=False)


@lru_cache(maxsize=64)
def _read(question: _Question) -> Reading[Any]:
    """Reading is pure and costs more than all else in an activation, and every activation asks again."""
    reply = question.reply
    return read(question.shape, reply.text, data=reply.data, context=question.context)


def _reading(shape: Shape[T], reply: Replied, context: Mapping[str, object] | None) -> Reading[T]:
    words = repr((shape.name, reply.text, reply.data, sorted((context or {}).items(), key=lambda item: item[0])))
    return _read(_Question(hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest(), shape, reply, context))


async def structured(
    v: Visit,
    name: str,
    *,
    shape: Shape[T],
    task: Callable[[Brief], AgentTask],
    brief: Callable[[], Brief],
    retries: int,
    briefs: Briefs,
    fresh: bool = False,
    context: Mapping[str, object] | None = None,
    check: Callable[[T], str] | None = None,
) -> Structured[T]:
    """``task`` and ``brief`` are called only when a session must be started. ``context`` goes to reading; ``check``
    says what is wrong with a value that reading accepted ("" = nothing) and causes a re-ask like any refusal.

    A re-ask goes on in the same conversation, or starts afresh: always with ``fresh`` (councils), and after an empty,
    echoed or cut reply. Raises Blocked AGENT_OUTPUT_INVALID, forgetting this exchange, when the re-asks are spent;
    TurnFailed when a session ended without a reply.
    """
    here = v.at(name)
    exchange = _Exchange(shape, task, brief, briefs, context)
    raw: list[RawReply] = []
    worked, answered = timedelta(), 0
    repair: tuple[Replied, str] | None = None
    for n in range(1, retries + 2):
        call = "ask" if n == 1 else f"ask-{n}"
        last, spent = repair, worked
        try:
            if last is None:
                reply = await here.agent(call, lambda spent=spent: exchange.first(spent))  # type: ignore[misc]
            else:
                reply = await here.agent(call, lambda s=spent, r=last: exchange.again(s, *r))  # type: ignore[misc]
        except TurnFailed as failed:
            if n > retries or not fresh or not _worth_another(failed):
                raise
            worked += failed.end.worked
            raw.append(_ended(failed))
            continue
        worked += reply.worked
        answered += reply.answered
        reading = _judged(_reading(shape, reply, context), check)
        raw.append(_raw(reply, reading, fresh=last is None))
        if reading.ok and reading.value is not None:
            await _keep(here, shape.name, raw, reading.interventions)
            return Structured(reading.value, reply, _noted(raw, reading.interventions), worked, answered)
        anew = fresh or reading.failure in _ANEW or not reply.session.conversation
        repair = None if anew else (reply, reading.error)
    kept = await _keep(here, shape.name, raw, ())
    raise _spent(here.scope, shape.name, raw, kept)


def _judged(reading: Reading[T], check: Callable[[T], str] | None) -> Reading[T]:
    problem = check(reading.value) if check and reading.ok and reading.value is not None else ""
    return replace(reading, value=None, failure="validation", error=problem) if problem else reading


def _worth_another(failed: TurnFailed) -> bool:
    return isinstance(failed.end, Failed) and failed.end.why in _WORTH_ANOTHER


def _ended(failed: TurnFailed) -> RawReply:
    token = failed.end.session.token
    return RawReply(session=token, outcome="rejected", failure=str(failed.end.why), error=failed.message)


def _raw(reply: Replied, reading: Reading[Any], *, fresh: bool) -> RawReply:
    return RawReply(
        session=reply.session.token,
        outcome="accepted" if reading.ok else "rejected",
        text=reply.text[:RAW_KEPT],
        failure=reading.failure,
        error=reading.error,
        fresh=fresh,
    )


def _noted(raw: list[RawReply], interventions: tuple[Intervention, ...]) -> tuple[Intervention, ...]:
    """The re-asks are interventions too."""
    again = (
        Intervention(category="retry", stage="retry", title=f"asked again: {one.failure}", detail=one.error[:400])
        for one in raw
        if one.outcome == "rejected"
    )
    return (*again, *interventions)


async def _keep(v: Visit, shape: str, raw: list[RawReply], interventions: tuple[Intervention, ...]) -> ArtifactRef:
    accepted = raw[-1].outcome == "accepted"
    notes = _noted(raw, interventions)
    doc = Reply(name=v.scope, shape=shape, accepted=accepted, attempts=tuple(raw), interventions=notes)
    return await v.put(doc, by=SYSTEM)


def _spent(scope: str, shape: str, raw: list[RawReply], kept: ArtifactRef) -> Blocked:
    why = "; ".join(raw[-1].error.splitlines()) or raw[-1].failure
    return Blocked(
        "AGENT_OUTPUT_INVALID",
        f"no usable {shape} after {len(raw)} {'reply' if len(raw) == 1 else 'replies'}: {why}",
        forget=(scope,),
        details={"shape": shape, "attempts": [{"failure": r.failure, "error": r.error} for r in raw]},
        kept=f"every raw reply: beadmill artifact show {kept.row}",
        next="retry asks again in a fresh session",
    )
