"""The daemon's side of a session: a folder that it starts, follows, orders and, when needed, sweeps."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from beadmill import crashpoints, redact
from beadmill.domain.ended import Ended, Lost, Ran, SessionRef, Stopped
from beadmill.domain.values import Json
from beadmill.errors import Conflict, Unavailable
from beadmill.processes import control, procs
from beadmill.processes import folder as files
from beadmill.processes.alive import all_of, still_running
from beadmill.processes.environment import for_runner, marks
from beadmill.processes.folder import State
from beadmill.processes.spec import AgentEvent, AgentTask, Batch, BoxSpec, Order, Stop
from beadmill.processes.wire import decode, encode, encode_end, encode_work

SOURCE: Final = Path(__file__).resolve().parents[2]
START: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from beadmill.processes.runner import main; main()"
START_PATIENCE: Final = 20.0  # seconds until `started` must be there
STOP_PATIENCE: Final = 25.0  # seconds for the runner to unwind the adapter and sweep, before it is killed itself
_POLL: Final = (0.005, 0.2)  # first and longest pause between two looks, in seconds
PIPE: Final = 60_000  # bytes that a pipe takes without a reader
_SLUG: Final = 80


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where the runner finds an agent. ``env`` names variables of the daemon that it may see (a provider's key);
    ``site`` lets it import installed packages, for plugins that are more than standard library."""

    path: str
    options: Mapping[str, Json] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    site: bool = False


class _Pause:
    """Looks often at first, then less."""

    def __init__(self, longest: float = _POLL[1]) -> None:
        self._next, self._longest = _POLL[0], longest

    async def __call__(self) -> None:
        await asyncio.sleep(self._next)
        self._next = min(self._next * 1.5, self._longest)


class FolderSession:
    """contract.Session."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token

    async def events(self, after: int = 0) -> AsyncIterator[tuple[int, AgentEvent]]:
        path, offset, pause = self.folder / "events.jsonl", after, _Pause()
        while True:
            done = files.state(self.folder) in (State.ENDED, State.LOST)
            for line in _whole_lines(path, offset):
                offset += len(line)
                yield offset, decode(AgentEvent, json.loads(line))
            if done:
                return
            await pause()

    async def order(self, order: Order) -> None:
        """A runner that just starts is waited for. Raises Unavailable when a living one does not answer."""
        patience, pause = time.monotonic() + control.ANSWER, _Pause()
        while files.state(self.folder) in (State.NEW, State.LIVE):
            if await control.deliver(self.folder, order):
                return
            await pause()
            if time.monotonic() > patience:
                raise Unavailable(f"session {self.token} does not take orders", code="SESSION_DEAF")

    def ended(self) -> Ended | Ran | Lost | None:
        return files.end_of(self.folder)

    def live(self) -> bool:
        return files.is_locked(self.folder)

    @property
    def mark(self) -> str:
        """What its processes carry in their environment. Tokens may come twice on a machine (a copied home), marks not."""
        return str((files.read_json(self.folder / "spec.json") or {}).get("mark") or "no session")

    def running(self) -> set[procs.Proc]:
        """Everything that runs of it, the runner included."""
        return procs.of_mark(self.mark)

    def left(self) -> bool:
        """Whether it ended and something of it goes on: its runner could not end it."""
        end = files.read_json(self.folder / "end.json")
        return isinstance(end, dict) and bool(end.get("left")) and bool(self.running())

    def wake(self) -> bool:
        """Wakes a frozen runner: only its own clock could end a session whose agent has stopped it."""
        runner = self._runner()
        if runner is None or not runner.frozen:
            return False
        procs.send(runner, signal.SIGCONT)
        return True

    async def wait(self) -> Ended | Ran | Lost:
        pause = _Pause()
        while (end := self.ended()) is None:
            await pause()
        return end

    async def stop(self, reason: str) -> None:
        """Raises Unavailable naming what still runs when it could not be ended."""
        self._forbid_start()
        if self.live():
            self.wake()
            await self._ask_to_stop(reason)
        if self.live():
            self._kill_runner()
        left = await procs.end_all(self.running)
        if left or self.live():
            raise still_running(self.token, left)

    def _forbid_start(self) -> None:
        """A session that was never started is ended before it can be."""
        if files.state(self.folder) is not State.NEW:
            return
        with files.lock(self.folder) as mine:
            if mine and files.write_json(self.folder / "started", datetime.now(UTC).isoformat(), replace=False):
                kind = (files.read_json(self.folder / "spec.json") or {}).get("work", {}).get("type")
                end = Ran((), stopped=True) if kind == "Batch" else Stopped(session=SessionRef(self.token))
                files.write_json(self.folder / "end.json", encode_end(end))

    async def _ask_to_stop(self, reason: str) -> None:
        try:
            async with asyncio.timeout(STOP_PATIENCE):
                await self.order(Stop(reason))
                pause = _Pause(0.02)
                while self.live():
                    await pause()
        except (TimeoutError, Unavailable):
            return

    def _kill_runner(self) -> None:
        runner = self._runner()
        if runner is not None:
            procs.send(runner, signal.SIGKILL)

    def _runner(self) -> procs.Proc | None:
        """None when it is gone, or never said who it is."""
        owner = files.read_json(self.folder / "owner.json")
        if not isinstance(owner, dict) or owner["boot"] != procs.boot_id():
            return None
        proc = procs.look(owner["pid"])
        return proc if proc is not None and proc.start == owner["start"] else None


def _whole_lines(path: Path, offset: int) -> Iterator[bytes]:
    """Complete lines from ``offset`` on; a line that is still being written stays for the next look."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        for line in file:
            if line.endswith(b"\n"):
                yield line


class FolderSessions:
    """contract.Sessions over ``root``. ``adapters`` by agent name, ``sandboxes`` by name as dotted paths."""

    def __init__(self, root: Path, *, adapters: Mapping[str, Adapter], sandboxes: Mapping[str, str]) -> None:
        self.root, self.adapters, self.sandboxes = root, adapters, sandboxes
        # A copied home has the same tokens; what its marks begin with tells its processes from ours.
        self._home = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12] + "."

    def folder(self, token: str) -> Path:
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", token).strip("-.")[:_SLUG]
        return self.root / f"{slug}-{hashlib.sha256(token.encode()).hexdigest()[:12]}"

    def find(self, token: str) -> FolderSession | None:
        folder = self.folder(token)
        return FolderSession(folder, token) if (folder / "spec.json").exists() else None

    def all(self) -> Iterator[FolderSession]:
        """Every session with a readable spec."""
        yield from self._read(sorted(path.parent for path in self.root.glob("*/spec.json")))

    def _open(self) -> Iterator[FolderSession]:
        """Folders that have an end are passed by unread: there are as many as there ever were sessions."""
        folders = (path.parent for path in self.root.glob("*/spec.json"))
        yield from self._read(sorted(folder for folder in folders if not (folder / "end.json").exists()))

    def _read(self, folders: Iterable[Path]) -> Iterator[FolderSession]:
        for folder in folders:
            spec = files.read_json(folder / "spec.json")
            if spec is not None:
                yield FolderSession(folder, spec["token"])

    def sweep_temporary(self) -> tuple[Path, ...]:
        """Removes what a killed writer left half-written; it never was the file. For start-up, before any session.

        Only folders without an end are looked into: there are as many others as there ever were sessions.
        """
        gone: list[Path] = []
        for folder in (path for path in self.root.glob("*") if not (path / "end.json").exists()):
            found = [path for path in folder.glob(".*") if path.name.startswith(files.TEMPORARY)]
            if found and files.state(folder) is not State.LIVE:
                gone += found
        for path in gone:
            path.unlink(missing_ok=True)
        return tuple(gone)

    async def sweep(self, owned: Collection[str]) -> tuple[str, ...]:
        """Ends what lost sessions left running, and sessions that nobody owns: not among the tokens ``owned``, for
        whoever put the database back to an older state. Returns the tokens of what it ended. For start-up.

        Raises Unavailable with all that could not be ended, behind having tried everything.
        """
        swept = [s for s in self._open() if s.token not in owned or files.state(s.folder) is State.LOST]
        await all_of([s.stop("nobody waits for it any more") for s in swept])
        return tuple(s.token for s in swept)

    async def sweep_gone(self, token: str) -> None:
        """Ends what still runs of a session whose folder somebody deleted. Raises Unavailable when it cannot."""
        left = await procs.end_all(lambda: procs.of_token(token, self._home))
        if left:
            raise still_running(token, left)

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> FolderSession:
        """Raises Unavailable when the agent or sandbox is not registered, the runner cannot start, a lost session's
        processes cannot be ended, or this system cannot follow processes at all."""
        procs.require()
        session = FolderSession(self.folder(token), token)
        spec = self._prepare(session, work, box)
        match files.state(session.folder):
            case State.NEW:
                await self._start(session, spec)
            case State.LOST:
                await session.stop("its runner is gone")
            case _:
                pass
        return session

    def _prepare(self, session: FolderSession, work: AgentTask | Batch, box: BoxSpec) -> Mapping[str, Json]:
        """The first spec of a token wins: later calls attach to it."""
        path = session.folder / "spec.json"
        spec: Mapping[str, Json] | None = files.read_json(path)
        if spec is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            session.folder.mkdir(mode=0o700, exist_ok=True)
            crashpoints.reach("session.folder")
            files.write_json(path, self._spec(session.token, work, box), replace=False)
            spec = files.read_json(path)
            crashpoints.reach("session.spec")
        if spec is None or spec["token"] != session.token:
            raise Conflict(f"{session.folder} is not the folder of session {session.token}", code="SESSION_FOLDER")
        return spec

    def _spec(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> Json:
        if box.sandbox not in self.sandboxes:
            raise Unavailable(f"there is no sandbox {box.sandbox!r}", code="NO_SANDBOX")
        adapter = None
        if isinstance(work, AgentTask):
            adapter = self.adapters.get(work.seat.agent)
            if adapter is None:
                raise Unavailable(f"there is no agent {work.seat.agent!r}", code="NO_AGENT")
        return {
            "token": token,
            "mark": self._home + secrets.token_hex(16),
            "work": encode_work(work),
            "box": encode(box),
            "sandbox": self.sandboxes[box.sandbox],
            "adapter": encode(adapter),
        }

    async def _start(self, session: FolderSession, spec: Mapping[str, Json]) -> None:
        process = _launch(session, spec["adapter"] or {})
        crashpoints.reach("session.spawned")
        patience, pause = time.monotonic() + START_PATIENCE, _Pause(0.02)
        while True:
            gone = process.poll() is not None
            if (session.folder / "started").exists():
                return
            # A runner that lost the race for the lock exits with 0: then the winner is about to say `started`.
            if (gone and process.returncode != 0) or time.monotonic() > patience:
                log = (session.folder / "runner.log").read_text(errors="replace")
                raise Unavailable(
                    f"the runner of session {session.token} did not start: {log[-2000:].strip() or 'no word from it'}",
                    code="RUNNER",
                    kept="the session can be started again",
                )
            await pause()


def _tell(process: subprocess.Popen[bytes], known: Sequence[str]) -> None:
    """What the runner must mask though it may not see it; more than a pipe holds at once is left out."""
    assert process.stdin is not None
    said = json.dumps(list(known)).encode()
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(said if len(said) < PIPE else b"[]")


def _launch(session: FolderSession, adapter: Mapping[str, Json]) -> subprocess.Popen[bytes]:
    env = for_runner(os.environ, also=tuple(adapter.get("env") or ()))
    flags = ["-I"] if adapter.get("site") else ["-I", "-S"]
    log = os.open(session.folder / "runner.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", START, str(SOURCE), str(session.folder)],
            cwd=session.folder,
            env={**env, **marks(token=session.token, mark=session.mark)},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    _tell(process, redact.known())
    # The daemon is its parent for as long as both live: somebody has to bury it.
    threading.Thread(target=process.wait, name=f"bury-{process.pid}", daemon=True).start()
    return process
