"""The runner: one small process per agent session or command batch. Standard library only.

``python -I -S -c "…; main()" <source> <folder>``, in a process session of its own. It alone holds the session's lock,
drives the adapter or the batch, keeps the clock, takes orders, ends everything it started, and writes end.json last.
Daemon and runner share only the folder, so either may die without the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from beadmill import crashpoints
from beadmill.domain.ended import (
    Asked,
    CommandResult,
    Ended,
    Failed,
    Lapsed,
    Limited,
    Ran,
    Replied,
    SessionRef,
    Stopped,
    Why,
)  # fmt: skip
from beadmill.domain.values import Access, Json, Usage
from beadmill.errors import BeadmillError
from beadmill.processes import control, procs
from beadmill.processes import folder as files
from beadmill.processes.box import Box
from beadmill.processes.children import Spawner
from beadmill.processes.clock import WorkClock
from beadmill.processes.commands import Commands
from beadmill.processes.door import Door
from beadmill.processes.environment import marks
from beadmill.processes.eventlog import EventLog
from beadmill.processes.loading import by_path
from beadmill.processes.places import leave_keyring, place, places, policy_of
from beadmill.processes.room import room_for, when_there_is_room
from beadmill.processes.runner_io import IO, Cut, Inside, ServerIO
from beadmill.processes.services import Keeper, NotBegun, Use
from beadmill.processes.spec import (
    AgentTask,
    Batch,
    BoxSpec,
    EventKind,
    Hold,
    Order,
    Policy,
    Release,
    Service,
    Stop,
)
from beadmill.processes.wire import decode, decode_work, encode_end
from beadmill.redact import Redactor, secrets_of

LOCK_PATIENCE: Final = 2.0  # seconds: a probe of somebody else holds the lock for microseconds
UNWIND: Final = 10.0  # seconds a stopped adapter may take to end its child before everything is ended for it
_PR_SET_CHILD_SUBREAPER: Final = 36
LOOK: Final = 10.0  # seconds for which a silent agent is looked at before it counts as idle
BUSY: Final = 0.1  # processors that work keeps busy at least
T = TypeVar("T")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    umask = os.umask(0o077)
    os.chdir(folder)
    if not _take_lock():
        return  # somebody else runs this session, or did
    crashpoints.reach("runner.started")
    _adopt_orphans()
    leave_keyring()
    spec = files.read_json(Path("spec.json"))
    when_there_is_room(lambda: files.write_json(Path("owner.json"), _owner(spec["token"])))
    crashpoints.reach("runner.owned")
    asyncio.run(Runner(folder, spec, umask, _told()).run())


def _told() -> tuple[str, ...]:
    """The daemon's secrets come through the pipe it starts us with: in no file, in no environment. A daemon that died
    meanwhile has told nothing."""
    try:
        said = json.loads(sys.stdin.buffer.read() or b"[]")
    except (OSError, ValueError):
        said = []
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    return tuple(map(str, said))


def _take_lock() -> bool:
    """The lock stays open for the life of this process. False when the session was started before."""
    handle = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    patience = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if Path("started").exists() or time.monotonic() > patience:
                return False
            time.sleep(0.01)
    return files.write_json(Path("started"), datetime.now(UTC).isoformat(), replace=False)


def _adopt_orphans() -> None:
    """Linux: grandchildren whose parent dies become ours, so none escapes the sweep."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _owner(token: str) -> Json:
    me = procs.look(os.getpid())
    return {"token": token, "pid": os.getpid(), "start": me.start if me else 0, "boot": procs.boot_id()}


class Runner:
    def __init__(self, folder: Path, spec: Mapping[str, Json], umask: int, known: Sequence[str] = ()) -> None:
        """``known`` are secrets of the daemon that nothing here may see, only mask."""
        self.folder, self.spec, self.umask = folder, spec, umask
        self.token: str = spec["token"]
        self.mark: str = spec["mark"]
        self.work = decode_work(spec["work"])
        self.box_spec = decode(BoxSpec, spec["box"])
        self.redactor = Redactor((*secrets_of(os.environ), *known))
        self.spawner: Spawner | None = None
        self.box: Box | None = None

    async def run(self) -> None:
        """Leaves this process by itself: a plugin that never unwinds must not keep an ended session alive."""
        self.clock, self.cut = WorkClock(), Cut()
        self.orders: asyncio.Queue[Order] = asyncio.Queue()
        self.log = EventLog(self.folder / "events.jsonl", self.redactor, heard=self.clock.touch)
        self.door = Door(self.folder, self._warn)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.cut.now, "terminated")
        async with control.listening(self._take):
            end = await self._work()
            left = await self._sweep()
            await self._close()
            for proc in left:
                self._warn(f"process {proc.pid} ({proc.command}) could not be ended")
            self.log.say(EventKind.ENDED, type=type(end).__name__)
            await room_for(self.log.close)
            whole = {**encode_end(end), "left": [p.pid for p in left], "used": _used()}
            await room_for(lambda: self._say_end(whole))
        sys.stderr.flush()
        os._exit(0)

    async def _sweep(self) -> tuple[procs.Proc, ...]:
        """Ends all that was started, wherever it went. Returns who could not be ended."""

        def who() -> set[procs.Proc]:
            return procs.of_runner(self.mark)

        if self.spawner is None:
            return await procs.end_all(who)
        self.spawner.name_servers(who())
        reap = self.spawner.reaper.reap
        left = await procs.end_all(who, reap=reap, kill=lambda: procs.kill_children(reap))
        return left or procs.kill_children(reap)  # who forks and exits all the time was in no scan

    def _say_end(self, end: Json) -> None:
        try:
            files.write_json(Path("end.json"), end)
        except FileNotFoundError:  # somebody has deleted the session's folder: nobody is left to be told
            traceback.print_exc()
        crashpoints.reach("runner.ended")

    def _warn(self, message: str) -> None:
        self.log.say(EventKind.WARNING, message=message)

    def _take(self, order: Order) -> None:
        match order:
            case Hold():
                self.clock.hold()
            case Release():
                self.clock.release()
            case Stop():
                self.cut.now("stop")
            case _:
                self.orders.put_nowait(order)

    async def _work(self) -> Ended | Ran:
        match self.work:
            case Batch() as batch:
                return await self._run_batch(batch)
            case Service() as service:
                return await self._ended(self._serve(service))
            case task:
                return await self._ended(self._turn(task))

    async def _open(self, policy: Policy) -> Spawner:
        """Before the spawner, so that a sandbox may ask a program of its own: from then on every child is reaped here."""
        sandbox = by_path(self.spec["sandbox"])()
        places(self.box_spec.workspace)
        home = self.folder.parent.parent  # sessions lie in the data home
        policy = await self.door.open(replace(policy, hidden=(*policy.hidden, home)))
        self.box = box = await sandbox.open(self.box_spec.workspace, policy)
        own, mine = places(self.box_spec.workspace), marks(token=self.token, mark=self.mark)
        self.spawner = Spawner(self.folder, box, self.redactor, own=own, marks=mine, umask=self.umask, warn=self._warn)
        return self.spawner

    async def _close(self) -> None:
        """Behind the sweep: the pipes run empty, the box goes."""
        if self.spawner is not None:
            await self.spawner.close()
        if self.box is not None:
            _, error = await _plugin(self.box.close())
            if error is not None:
                self._warn(f"the sandbox did not close: {error}")
        await self.door.close()

    # --- a batch

    async def _run_batch(self, batch: Batch) -> Ran:
        ran: list[CommandResult] = []
        spawner, error = await _plugin(self._open(replace(self.box_spec.policy, tree=batch.cwd)))
        if spawner is None:
            first = str(batch.specs[0]) if batch.specs else ""
            return Ran((CommandResult(first, None, 0.0, f"cannot start: {error}", cannot_start=True),))
        commands = Commands(batch, spawner, self.log, self.folder, ran)
        end = await self._until_cut(commands.run())
        return end if isinstance(end, Ran) else Ran(tuple(ran), stopped=True)

    # --- an agent

    async def _ended(self, work: Awaitable[Ended]) -> Ended:
        """Whatever the adapter does, an end comes out of it."""
        end, error = await _plugin(work)
        if isinstance(error, NotBegun):
            return Stopped(session=SessionRef(self.token))  # without a time worked: the turn starts over
        if isinstance(error, BeadmillError):
            end = self._failed(_why(error), str(error))
        elif end is None:
            end = self._failed(Why.INTERNAL, f"{type(error).__name__}: {error}")
        return self._stamp(end)

    async def _turn(self, task: AgentTask) -> Ended:
        agent = self._agent()
        async with place(task, self.box_spec.workspace) as placed, _beside(self._watch(task)), self._using() as use:
            spawner = await self._open(policy_of(self.box_spec.policy, placed, agent))
            io = IO(self._inside(spawner), placed, self.orders, use)
            end: Ended | None = await self._until_cut(agent.drive(placed, io))
        return self._cut_short() if end is None else end

    def _inside(self, spawner: Spawner) -> Inside:
        workspace = self.box_spec.workspace
        boxed = self.box is not None and self.box.isolates
        return Inside(self.token, self.mark, self.folder, workspace, boxed, self.log, self.cut, spawner)

    def _agent(self) -> Any:
        adapter: Mapping[str, Any] = self.spec["adapter"]
        return by_path(adapter["path"])(adapter["options"])

    @contextlib.asynccontextmanager
    async def _using(self) -> AsyncIterator[Use | None]:
        """The server that the daemon chose for this session, when its agent needs one."""
        server = files.read_json(self.folder / "server.json")
        use = None if server is None else Use(Path(server["folder"]), self.token)
        try:
            yield use
        finally:
            if use is not None:
                await use.close()

    async def _serve(self, service: Service) -> Ended:
        """Until it dies, is stopped, or nobody uses it any more."""
        agent = self._agent()
        if service.access is Access.NONE:
            service.cwd.mkdir(mode=0o500, parents=True, exist_ok=True)
        spawner = await self._open(policy_of(self.box_spec.policy, service, agent))
        keeper = Keeper(self.folder, service.idle.total_seconds(), agent.release)

        async def keep() -> None:
            await keeper.keep()
            self.cut.now("unused")

        async with _beside(keep()):
            said = await self._until_cut(agent.serve(service, ServerIO(self._inside(spawner))))
        return self._cut_short() if said is None else self._failed(Why.LOST, said)

    async def _watch(self, task: AgentTask) -> None:
        self.clock.touch()
        while await self.clock.lapse(task.budget, task.idle):
            if not await self._at_work(task.idle):
                return self.cut.now("idle")
            self.clock.touch()
        return self.cut.now("budget")

    async def _at_work(self, idle: timedelta) -> bool:
        """Silent is not idle: a long build says nothing for its time. Looks for a while at what the processes do."""
        window = min(LOOK, idle.total_seconds() / 4)
        before, heard = procs.cpu_of_runner(self.mark), self.clock.heard
        await asyncio.sleep(window)
        return self.clock.heard != heard or procs.cpu_of_runner(self.mark) - before > BUSY * window

    async def _until_cut(self, work: Any) -> Any:
        """The work's result, or None when it was cut: then it was cancelled and given time to unwind."""
        task = asyncio.ensure_future(work)
        cut = asyncio.ensure_future(self.cut.happened.wait())
        await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=UNWIND)
        if task.done() and not task.cancelled() and task.exception() is not None:
            self._warn(f"while it was stopped: {task.exception()}")
        return None

    def _cut_short(self) -> Ended:
        session = SessionRef(self.token)
        match self.cut.reason:
            case "stop" | "unused":
                return Stopped(session=session)
            case "terminated":
                return self._failed(Why.LOST, "the runner was told to terminate by the system", continuable=True)
            case "steps":
                return self._failed(Why.STEPS, "it used up the steps that one turn may take", continuable=True)
            case reason:
                return Lapsed(session=session, idle=reason == "idle")

    def _failed(self, why: Why, message: str, *, continuable: bool = False) -> Failed:
        return Failed(session=SessionRef(self.token), why=why, message=message, continuable=continuable)

    def _stamp(self, end: Ended) -> Ended:
        """The runner knows the token, the time and what was heard, whatever the adapter filled in."""
        conversation = end.session.conversation or self.log.conversation
        usage = self.log.usage if end.usage == Usage() else end.usage
        usage = replace(usage, model=usage.model or self.log.model)
        worked = timedelta(seconds=round(self.clock.worked, 3))
        whole = replace(end, session=SessionRef(self.token, conversation), worked=worked, usage=usage)
        return self._scrubbed(whole)

    def _scrubbed(self, end: Ended) -> Ended:
        match end:
            case Replied():
                return replace(end, text=self.redactor.work(end.text), data=self.redactor.work(end.data))
            case Asked():
                options = tuple(map(self.redactor.work, end.options))
                return replace(end, question=self.redactor.work(end.question), options=options)
            case Limited() | Failed():
                return replace(end, message=self.redactor.json(end.message))
            case _:
                return end


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """A companion of the block, gone with it. A TaskGroup would wrap the adapter's own errors."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


async def _plugin(call: Awaitable[T]) -> tuple[T | None, Exception | None]:
    """The border of every plugin call, adapter and sandbox: its result, or what it raised."""
    try:
        return await call, None
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        traceback.print_exc()
        return None, error


def _why(error: BeadmillError) -> Why:
    return Why.MISSING if error.code in ("AGENT_MISSING", "AGENT_REFUSED") else Why.INTERNAL


def _used() -> Mapping[str, Json]:
    """Seconds of processor time and peak memory: of this process, and of all that it started and buried."""
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1024 if sys.platform == "linux" else 1024 * 1024  # Linux counts in kB, macOS in bytes
    return {
        "own_cpu_s": round(own.ru_utime + own.ru_stime, 3),
        "agent_cpu_s": round(below.ru_utime + below.ru_stime, 3),
        "own_peak_mb": round(own.ru_maxrss / unit, 1),
        "agent_peak_mb": round(below.ru_maxrss / unit, 1),
    }
