"""Calls that end an activation with Parked until they happened: agent turns and command batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from beadmill.domain.ended import Asked, Ended, Failed, Lapsed, Limited, Lost, Ran, Replied, SessionRef, Stopped, Why
from beadmill.domain.values import TIMEOUT, Access, Brief, Event, GateKind, GateRequest, Seat
from beadmill.engine.activation import Activation, prefixes
from beadmill.engine.asking import ask, sleep
from beadmill.engine.attending import attend
from beadmill.errors import TurnFailed
from beadmill.processes.places import workspace_of
from beadmill.processes.spec import AgentTask, Batch
from beadmill.processes.wire import decode_end, encode_end

LOST_RETRIES = 2  # a lost session that could not have dirtied anything starts again by itself this often
DIRTY = (Access.WRITE, Access.ONLINE)  # a session that was cut off may have left a tree half changed
MOST_STOPS = 10  # of one call; an adapter that always says "stopped" must not go round for ever
MOST_ASKED = 20  # questions of one call, each of which a person or the countdown answers
MOST_LIMITS = 50  # pauses of one call
LONGEST = timedelta(days=7)  # of one pause
LEAST = timedelta(seconds=1)  # of working time: the turn then ends as out of time
NO_QUESTIONS = "You cannot ask here: decide yourself and say what you assumed."
NOBODY = "Nobody answered in time: decide yourself and say what you assumed."
YOURSELF = "The answer is: decide yourself, and say what you assumed."
GO_ON = "You were interrupted. Continue please: the task stands as you were given it."
TAKEN_OVER = (
    "Another agent began this task and was cut off by its provider's limit. What it did lies in the folder "
    "(git status, git diff): look at it first, keep what is right, and finish the task."
)
LIMIT_BACKOFF = timedelta(minutes=1)  # doubled per turn when the provider names no time, at most an hour


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
    resume = await _continued(act, name)
    brief = None if resume is None else _go_on(factory().brief, _last_word(act, name))
    seat: Seat | None = None  # another one than the task's, since that one's limit was met
    lost = stops = asked = answered = limited = 0
    worked = timedelta()
    turn = 0
    while True:
        turn += 1
        make = _task(act, factory, resume=resume, brief=brief, worked=worked, seat=seat)
        end = await attend(act, f"{act.key(name)}/{turn}", make, name=name)
        if isinstance(end, Asked):
            asked += 1
            if asked > MOST_ASKED:
                return _gave_up(end, Why.INTERNAL, f"The agent asked {asked} questions in one turn")
            said = await _question(act, f"{name}/question-{turn}", end) if make().questions else (NO_QUESTIONS, False)
            answered += said[1]
            resume, brief = end.session, _words(said[0])
        elif isinstance(end, Limited):
            limited += 1
            if limited > MOST_LIMITS:
                return _gave_up(end, Why.QUOTA, f"The provider's limit was met {limited} times: {end.message}")
            other = await _fallback(act, f"{name}/fallback-{turn}", factory, end, turn, sitting=seat)
            if other is not None:
                seat, resume, brief = other, None, _taken_over(factory())
                worked += end.worked
                continue
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
            end = replace(end, worked=worked + end.worked)
            return replace(end, answered=answered) if isinstance(end, Replied) else end
        worked += timedelta() if isinstance(end, Lost) else end.worked


async def _fallback(
    act: Activation, name: str, factory: Callable[[], AgentTask], end: Limited, turn: int, *, sitting: Seat | None
) -> Seat | None:
    """The seat that takes over when the limit ends later than the policy waits. A conversation that began in an earlier
    call goes on with its own agent only. Decided once: what time it was then is what counts."""
    wanted, task = act.settings.limits.fallback, factory()
    if wanted is None or sitting is not None or task.resume is not None:
        return None
    other = Seat(wanted.agent, wanted.model, wanted.effort)
    if other == task.seat:
        return None
    row = act.known(name)
    if row is None:
        until = _until(act, end, turn)
        late = until - act.store.clock() > timedelta(minutes=act.settings.limits.wait_minutes)
        told = {"name": name, "from": str(task.seat), "to": str(other), "until": until.isoformat()}
        row = await act.record(name, "step", late, Event("seat.fell_back", told) if late else None)
    return other if row.result else None


def _taken_over(task: AgentTask) -> Brief | None:
    """What a cut-off session may have left in the tree is said; the task is told whole."""
    if task.access not in DIRTY:
        return None
    head, _, rest = task.brief.text.partition("\n")
    return replace(task.brief, text=f"{head}\n\n{TAKEN_OVER}\n{rest}")


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
    *,
    resume: SessionRef | None,
    brief: Brief | None,
    worked: timedelta,
    seat: Seat | None,
) -> Callable[[], AgentTask]:
    def make() -> AgentTask:
        task = factory() if seat is None else replace(factory(), seat=seat)
        if task.access is Access.NONE:
            workspace = workspace_of(Path(act.work.workspace), task.cwd)
            task = replace(task, cwd=workspace / "empty", questions=False)
        if worked:
            task = replace(task, budget=max(task.budget - worked, LEAST))
        if resume is not None:
            task = replace(task, resume=resume)
        return replace(task, brief=brief) if brief is not None else task

    return make


async def _continued(act: Activation, name: str) -> SessionRef | None:
    """After "continue" at the blocked gate that forgot this call last, the conversation that failed is resumed."""
    said = _last_word(act, name)
    if said is None or said["choice"] != "continue":
        return None
    now = act.round_of(name)
    before = max((round_ for known, round_ in act.memo.rows if known == name and round_ < now), default=None)
    if before is None:
        return None
    end = decode_end(await act.result(act.memo.rows[name, before]))
    return end.session if isinstance(end, Failed) and end.continuable and end.session.conversation else None


def _last_word(act: Activation, name: str) -> sa.RowMapping | None:
    """The last decision at a blocked gate that forgot this call."""
    over = set(prefixes(name))
    said = {
        int(gate.rpartition("#")[2]): row
        for gate, row in act.memo.decisions.items()
        if gate.startswith(f"{act.visit}/blocked#") and over.intersection(row["detail"]["forget"])
    }
    return said[max(said)] if said else None


def _go_on(brief: Brief, said: sa.RowMapping | None) -> Brief:
    """The conversation holds the task: it is not told once more. The first line says which task goes on."""
    head, _, _ = brief.text.partition("\n")
    note = f"\n\nA person added:\n\n{said['note']}" if said is not None and said["note"].strip() else ""
    return replace(brief, text=f"{head}\n\n{GO_ON}{note}", ledger=())


async def _question(act: Activation, name: str, end: Asked) -> tuple[str, bool]:
    """The words for the agent, and whether they are a person's answer."""
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
        return said, True
    return NOBODY if answer.by == TIMEOUT else YOURSELF, False


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
        end = await attend(act, f"{act.key(name)}/{lost + stops + 1}", factory, name=name)
        if isinstance(end, Lost) and lost < LOST_RETRIES:
            lost += 1
        elif (isinstance(end, Stopped) or (isinstance(end, Ran) and end.stopped)) and stops < MOST_STOPS:
            stops += 1
        else:
            return end
