"""Calls that wait: agent turns, command batches, gates, times. Each ends the activation with Parked until it happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from beadmill import redact
from beadmill.domain.ended import Asked, Ended, Failed, Lapsed, Limited, Lost, Ran, Replied, SessionRef, Stopped, Why
from beadmill.domain.machine import Phase
from beadmill.domain.values import (
    Access,
    Brief,
    Event,
    GateAnswer,
    GateKind,
    GateRequest,
)
from beadmill.engine.activation import Activation, prefixes
from beadmill.errors import Parked, Superseded, TurnFailed
from beadmill.processes.spec import AgentTask, Batch, BoxSpec, EventKind, Policy
from beadmill.processes.wire import decode_end, encode, encode_end
from beadmill.store.db import Tx, stamp
from beadmill.store.journal import budgets, gates, moves, sessions
from beadmill.store.journal.moves import Wait
from beadmill.store.journal.sessions import Opening
from beadmill.store.journal.visits import set_phase

W = TypeVar("W", AgentTask, Batch)
LOST_RETRIES = 2  # a lost session that could not have dirtied anything starts again by itself this often
DIRTY = (Access.WRITE, Access.ONLINE)  # a session that was cut off may have left a tree half changed
MOST_STOPS = 10  # of one call; an adapter that always says "stopped" must not go round for ever
MOST_TOOLS = 10_000  # calls of one scope that are looked at
MOST_ASKED = 20  # questions of one call, each of which a person or the countdown answers
MOST_LIMITS = 50  # pauses of one call
LONGEST = timedelta(days=7)  # of one pause
LEAST = timedelta(seconds=1)  # of working time: the turn then ends as out of time
LIMIT_BACKOFF = timedelta(minutes=1)  # doubled per turn when the provider names no time, at most an hour


def parked(*waits: Wait) -> Parked:
    return Parked(frozenset(waits))


# --- agent --------------------------------------------------------------------------------------------------------
async def agent(act: Activation, name: str, factory: Callable[[], AgentTask], *, forget: str) -> Replied:
    """Turns until a reply. Raises TurnFailed with the recorded end when there is none."""
    row = act.known(name)
    if row is None:
        last = await _turns(act, name, factory)
        row = await act.record(name, "agent", encode_end(last), _ended_event(name, last))
    end = decode_end(await act.result(row))
    if isinstance(end, Replied):
        return end
    assert not isinstance(end, (Ran, Lost, Asked, Limited))
    raise _failed(end, forget or name)


async def _turns(act: Activation, name: str, factory: Callable[[], AgentTask]) -> Ended:
    """All turns share the task's working time."""
    resume, brief = await _continued(act, name), None
    lost = stops = asked = limited = 0
    worked = timedelta()
    turn = 0
    while True:
        turn += 1
        make = _task(act, factory, resume, brief, worked)
        end = await _session(act, f"{act.key(name)}/{turn}", make, name=name)
        if isinstance(end, Asked):
            asked += 1
            if asked > MOST_ASKED:
                return _gave_up(end, Why.INTERNAL, f"The agent asked {asked} questions in one turn")
            resume, brief = end.session, _words(await _question(act, f"{name}/question-{turn}", end))
        elif isinstance(end, Limited):
            limited += 1
            if limited > MOST_LIMITS:
                return _gave_up(end, Why.QUOTA, f"The provider's limit was met {limited} times: {end.message}")
            pause = f"{name}/limit-{turn}"
            await sleep(act, pause, act.store.clock() if pause in act.memo.rounds else _until(act, end, turn))
            resume = end.session if end.session.conversation else resume
        elif isinstance(end, (Lost, Stopped)) and (_never_began(end) or make().access not in DIRTY):
            lost += isinstance(end, Lost)  # a stop was ours (pause --now): it does not count as lost
            stops += isinstance(end, Stopped)
            if lost > LOST_RETRIES:
                return _lost(act, name, turn)
            if stops > MOST_STOPS:
                assert isinstance(end, Stopped)
                return end
        elif isinstance(end, Lost):
            return _lost(act, name, turn)
        else:
            assert not isinstance(end, Ran)
            return replace(end, worked=worked + end.worked)
        worked += timedelta() if isinstance(end, Lost) else end.worked


def _gave_up(end: Asked | Limited, why: Why, message: str) -> Failed:
    """What would go round for ever is a person's."""
    return Failed(session=end.session, worked=end.worked, usage=end.usage, why=why, message=message, continuable=True)


def _never_began(end: Lost | Stopped) -> bool:
    return isinstance(end, Stopped) and not end.worked


def _lost(act: Activation, name: str, turn: int) -> Failed:
    session = SessionRef(f"{act.key(name)}/{turn}")
    return Failed(session=session, why=Why.LOST, message="The session was lost: its runner died")


def _task(
    act: Activation,
    factory: Callable[[], AgentTask],
    resume: SessionRef | None,
    brief: Brief | None,
    worked: timedelta,
) -> Callable[[], AgentTask]:
    def make() -> AgentTask:
        task = factory()
        if task.access is Access.NONE:
            task = replace(task, cwd=Path(act.work.workspace) / "empty")
        if worked:
            task = replace(task, budget=max(task.budget - worked, LEAST))
        if resume is not None:
            task = replace(task, resume=resume)
        return replace(task, brief=brief) if brief is not None else task

    return make


async def _continued(act: Activation, name: str) -> SessionRef | None:
    """After "continue" at the blocked gate that forgot this call last, the conversation that failed is resumed."""
    if not _told_to_continue(act, name):
        return None
    now = act.round_of(name)
    before = max((round_ for known, round_ in act.memo.rows if known == name and round_ < now), default=None)
    if before is None:
        return None
    end = decode_end(await act.result(act.memo.rows[name, before]))
    return end.session if isinstance(end, Failed) and end.continuable and end.session.conversation else None


def _told_to_continue(act: Activation, name: str) -> bool:
    over = set(prefixes(name))
    said = {
        int(gate.rpartition("#")[2]): row["choice"]
        for gate, row in act.memo.decisions.items()
        if gate.startswith(f"{act.visit}/blocked#") and over.intersection(row["detail"]["forget"])
    }
    return bool(said) and said[max(said)] == "continue"


async def _question(act: Activation, name: str, end: Asked) -> str:
    window = timedelta(seconds=act.settings.questions.window_s)
    request = GateRequest(
        GateKind.QUESTION,
        end.question,
        ("answer", "decide_yourself"),
        form={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        detail={"question": end.question, "options": list(end.options)},
        within=window,
        lapse="decide_yourself",
    )
    answer = await ask(act, name, request)
    said = str((answer.payload or {}).get("answer", "") or answer.note)
    if answer.choice == "answer" and said.strip():
        return said
    return "Nobody answered in time: decide yourself and say what you assumed."


def _words(text: str) -> Brief:
    return Brief("answer", f"Beadmill task: answer | ticket:  | subject:  | seat:  | turn: \n\n{text}")


def _until(act: Activation, end: Limited, turn: int) -> datetime:
    """The provider's time; one that has passed, or none, is a growing pause instead: no turn follows at once. One that
    lies very far off is asked about again before; a person may end any pause (journal.visits.wake_now)."""
    now = act.store.clock()
    backoff = min(LIMIT_BACKOFF * 2 ** min(turn - 1, 6), timedelta(hours=1))
    return min(end.until, now + LONGEST) if end.until is not None and end.until > now else now + backoff


CODES = {
    Why.LOST: "AGENT_LOST",
    Why.AUTH: "AGENT_SIGNED_OUT",
    Why.MISSING: "AGENT_MISSING",
    Why.QUOTA: "AGENT_QUOTA",
    Why.CONTEXT: "AGENT_CONTEXT_TOO_LONG",
    Why.TRUNCATED: "AGENT_OUTPUT_TRUNCATED",
    Why.BAD_MODEL: "AGENT_BAD_MODEL",
    Why.REFUSED: "AGENT_REFUSED",
    Why.STEPS: "AGENT_OUT_OF_STEPS",
}


NEXT = {
    Why.AUTH: "sign in to the agent, then retry",
    Why.MISSING: "beadmill agent list says how to install it, then retry",
    Why.QUOTA: "retry when the provider lets you again",
    Why.BAD_MODEL: "beadmill agent probe lists its models; a new run takes new settings",
}


def _failed(end: Replied | Lapsed | Stopped | Failed, forget: str) -> TurnFailed:
    if isinstance(end, Failed):
        code, message = CODES.get(end.why, "AGENT_FAILED"), end.message or f"The agent failed: {end.why}"
    elif isinstance(end, Lapsed):
        code = "AGENT_SILENT" if end.idle else "AGENT_OUT_OF_TIME"
        message = "The agent said nothing for too long" if end.idle else "The agent used up its working time"
    else:
        code, message = "AGENT_STOPPED", "The agent was stopped"
    continuable = isinstance(end, Failed) and end.continuable
    go_on = "retry asks again in a fresh session" + ("; continue resumes this one" if continuable else "")
    return TurnFailed(
        code,
        message,
        end=end,
        forget=(forget,),
        continuable=continuable,
        kept="everything recorded before this turn",
        next=NEXT.get(end.why, go_on) if isinstance(end, Failed) else go_on,
    )


def _ended_event(name: str, end: Ended) -> Event:
    return Event("turn.ended", {"name": name, "end": type(end).__name__})


# --- commands -----------------------------------------------------------------------------------------------------
async def command(act: Activation, name: str, factory: Callable[[], Batch], *, forget: str) -> Ran:
    """Raises TurnFailed when the batch was lost more often than it may be, or stopped."""
    row = act.known(name)
    if row is None:
        end = await _batches(act, name, factory)
        row = await act.record(name, "command", encode_end(end))
    end = decode_end(await act.result(row))
    if isinstance(end, Ran) and not end.stopped:
        return end
    raise TurnFailed("COMMANDS_LOST", "The commands did not run to their end", end=end, forget=(forget or name,))


async def _batches(act: Activation, name: str, factory: Callable[[], Batch]) -> Ended | Ran | Lost:
    """Commands that were lost, or stopped by us, run once more."""
    lost = stops = 0
    while True:
        end = await _session(act, f"{act.key(name)}/{lost + stops + 1}", factory, name=name)
        if isinstance(end, Lost) and lost < LOST_RETRIES:
            lost += 1
        elif (isinstance(end, Stopped) or (isinstance(end, Ran) and end.stopped)) and stops < MOST_STOPS:
            stops += 1
        else:
            return end


# --- one session ---------------------------------------------------------------------------------------------------
async def _session(act: Activation, token: str, factory: Callable[[], W], *, name: str) -> Ended | Ran | Lost:
    """Its end when it was booked; otherwise it is (re-)attached and the activation parks on it."""
    row = act.memo.sessions.get(token)
    if row is not None and row["ended"] is not None:
        return decode_end(row["end"])
    act.entered.add(token)
    wait = Wait("session", token)
    there = act.sessions.find(token) if row is not None else None
    if there is not None and (there.live() or there.ended()):
        raise parked(wait)  # it runs, or waits to be booked
    if row is not None and there is None:
        await act.sessions.sweep_gone(token)  # never started, or its folder was deleted: two must not share a tree
    work = _scrubbed(factory())
    if row is None:
        if isinstance(work, AgentTask):
            await _within_budget(act)
        phase = act.pending
        busy = await act.write(
            lambda tx: sessions.open_session(tx, act.visit, act.owner, _opening(act, token, work), phase=phase)
        )
        act.written(phase)
        if busy is not None:
            raise parked(busy)
        act.passed(f"{name}:opened")
    await act.sessions.attach(token, work, _box(act, work))
    act.passed(f"{name}:attached")
    raise parked(wait)


def _box(act: Activation, work: AgentTask | Batch) -> BoxSpec:
    """The network policy is for commands: an agent without its model could not say a word."""
    settings = act.settings
    network = settings.network if isinstance(work, Batch) else "on"
    policy = Policy(network=network, readable=tuple(Path(p) for p in settings.readable))
    return BoxSpec(settings.sandbox, Path(act.work.workspace), policy)


async def tools(act: Activation, scope: str) -> list[str]:
    """See engine.port.Visit."""
    found: list[str] = []
    begin = f"{act.visit}/{scope}/" if scope else f"{act.visit}/"
    for token in act.memo.sessions:
        name, _, rest = token.removeprefix(f"{act.visit}/").rpartition("#")
        there = act.sessions.find(token)
        if not token.startswith(begin) or rest.split("/")[0] != str(act.round_of(name)) or there is None:
            continue
        if there.ended() is None:
            continue
        async for _, event in there.events():
            if event.kind is EventKind.TOOL and len(found) < MOST_TOOLS:
                found.append(json.dumps(event.data, ensure_ascii=False, default=str))
    return found


def _scrubbed(work: W) -> W:
    """No secret of ours reaches an agent, a session folder or the books by way of a brief."""
    if isinstance(work, Batch):
        return work
    return replace(work, brief=replace(work.brief, text=redact.ours().work(work.brief.text)))


def _opening(act: Activation, token: str, work: AgentTask | Batch) -> Opening:
    if isinstance(work, Batch):
        return Opening(token, "batch", act.host, subject="; ".join(str(s) for s in work.specs)[:200])
    brief = work.brief
    return Opening(
        token,
        "agent",
        act.host,
        str(work.seat),
        work.seat.agent,
        work.seat.model,
        brief.template,
        brief.subject,
        [encode(p) for p in brief.ledger],
        brief.text,
        act.work.project,
        act.settings.agent_slots,
    )


async def _within_budget(act: Activation) -> None:
    """Parks on a budget gate when the run has spent what it may; the answer carries the new limits. All calls of the
    visit wait at one gate."""
    limits = act.settings.budget
    if limits.usd is None and limits.tokens is None and limits.minutes is None:
        return
    now = await act.store.read(lambda conn: budgets.spending(conn, act.ref.run))
    if now.spent.state == "over":
        await ask(act, f"budget-{now.times}", _budget_gate(now))


def _budget_gate(now: budgets.Spending) -> GateRequest:
    number = {"type": "number", "exclusiveMinimum": 0}
    return GateRequest(
        GateKind.BUDGET,
        "The budget is used up",
        ("raise",),
        form={
            "type": "object",
            "properties": {"usd": number, "tokens": number, "minutes": number},
            "additionalProperties": False,
        },
        detail={
            "limits": now.limits.model_dump(),
            "spent": {"usd": now.usd, "tokens": now.tokens, "minutes": round(now.minutes, 1)},
            "unpriced": now.unpriced,
        },
    )


# --- gates and times -----------------------------------------------------------------------------------------------
async def ask(act: Activation, name: str, request: GateRequest) -> GateAnswer:
    gate = act.key(name)
    if (row := act.memo.decisions.get(gate)) is not None:
        return gates.to_answer(row)
    phase = act.pending
    answer = await act.write(lambda tx: _open(tx, act, gate, request, phase))
    act.written(phase)
    act.passed(name)
    if answer is None:
        raise parked(Wait("gate", gate))
    return answer


def _open(tx: Tx, act: Activation, gate: str, request: GateRequest, phase: Phase | None) -> GateAnswer | None:
    if not moves.owned(tx, act.visit, act.owner):
        raise Superseded(act.visit)
    set_phase(tx, act.visit, phase)
    gates.open_gate(tx, gate, act.visit, request)
    return gates.decision(tx.conn, gate)


async def sleep(act: Activation, name: str, until: datetime) -> None:
    """The first recorded ``until`` wins."""
    row = act.known(name)
    if row is None:
        row = await act.record(name, "sleep", stamp(until))
    if row.result > stamp(act.store.clock()):
        raise parked(Wait("time", name, row.result))
