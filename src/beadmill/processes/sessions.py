"""The daemon's side of a session: a folder that it starts, follows, orders and, when needed, sweeps."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from beadmill import crashpoints
from beadmill.domain.ended import Ended, Lost, Ran, SessionRef, Stopped
from beadmill.domain.values import Json
from beadmill.errors import Conflict, Unavailable
from beadmill.processes import control, procs, services
from beadmill.processes import folder as files
from beadmill.processes.environment import for_runner, marks
from beadmill.processes.folder import State
from beadmill.processes.spec import AgentEvent, AgentTask, Batch, BoxSpec, Order, Service, Stop
from beadmill.processes.wire import decode, encode, encode_end, encode_work

SOURCE: Final = Path(__file__).resolve().parents[2]
START: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from beadmill.processes.runner import main; main()"
START_PATIENCE: Final = 20.0  # seconds until `started` must be there
STOP_PATIENCE: Final = 25.0  # seconds for the runner to unwind the adapter and sweep, before it is killed itself
_POLL: Final = (0.005, 0.2)  # first and longest pause between two looks, in seconds
_SLUG: Final = 80
_SERVERS: Final = "server"  # the part of a token that tells a server's session


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where the runner finds an agent. ``env`` names variables of the daemon that it may see (a provider's key);
    ``site`` lets it import installed packages, for plugins that are more than standard library. ``server_idle`` is how
    many seconds the agent's server outlives its last session; None = it has none."""

    path: str
    options: Mapping[str, Json] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    site: bool = False
    server_idle: float | None = None


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

    async def wait(self) -> Ended | Ran | Lost:
        pause = _Pause()
        while (end := self.ended()) is None:
            await pause()
        return end

    async def stop(self, reason: str) -> None:
        """Raises Unavailable naming what still runs when it could not be ended."""
        self._forbid_start()
        if self.live():
            await self._ask_to_stop(reason)
        if self.live():
            self._kill_runner()
        await self._let_go(reason)
        left = await procs.end_all(self.running)
        if left or self.live():
            names = ", ".join(f"{p.pid} ({p.command})" for p in left) or "its runner"
            raise Unavailable(
                f"session {self.token} is not stopped: {names} still runs",
                code="STILL_RUNNING",
                details={"pids": [p.pid for p in left]},
                kept="the session folder and the work in its tree",
                next="end these processes, then try again",
            )

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

    async def _let_go(self, reason: str) -> None:
        """What it left running on a server is ended there; a server that cannot goes as a whole."""
        chosen = files.read_json(self.folder / "server.json")
        if chosen is None:
            return
        server = Path(chosen["folder"])
        if not await services.let_go(server, self.token):
            await FolderSession(server, (files.read_json(server / "spec.json") or {}).get("token", "")).stop(reason)

    def _kill_runner(self) -> None:
        owner = files.read_json(self.folder / "owner.json")
        if owner is None or owner["boot"] != procs.boot_id():
            return
        proc = procs.look(owner["pid"])
        if proc is not None and proc.start == owner["start"]:
            procs.send(proc, signal.SIGKILL)


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
        self.servers = root  # where the sessions of servers lie

    def folder(self, token: str) -> Path:
        return self.root / _folder_name(token)

    def find(self, token: str) -> FolderSession | None:
        folder = self.folder(token)
        return FolderSession(folder, token) if (folder / "spec.json").exists() else None

    def all(self) -> Iterator[FolderSession]:
        """Every session with a readable spec."""
        yield from self._read(sorted(path.parent for path in self.root.glob("*/spec.json")))

    def live_servers(self) -> list[FolderSession]:
        """The servers that run now."""
        found = self.servers.glob(f"*{_SERVERS}-*/lock")
        return [s for s in self._read(sorted(path.parent for path in found)) if s.live() and _is_server(s.token)]

    async def close_servers(self, run: str, why: str) -> None:
        """Ends every server of the run. Raises Unavailable when one could not be ended."""
        for server in self.live_servers():
            if server.token.startswith(f"{run}/{_SERVERS}/"):
                await server.stop(why)

    def _lost(self) -> list[FolderSession]:
        """Folders that have an end are passed by unread: there are as many as there ever were sessions."""
        folders = (path.parent for path in self.root.glob("*/spec.json"))
        left = sorted(folder for folder in folders if not (folder / "end.json").exists())
        return [s for s in self._read(left) if files.state(s.folder) is State.LOST]

    def _read(self, folders: Iterable[Path]) -> Iterator[FolderSession]:
        for folder in folders:
            spec = files.read_json(folder / "spec.json")
            if spec is not None:
                yield FolderSession(folder, spec["token"])

    async def sweep_lost(self) -> tuple[str, ...]:
        """Ends what lost sessions left running; returns their tokens. For start-up.

        Raises Unavailable when one could not be ended, behind having tried all.
        """
        lost = self._lost()
        failed: list[Unavailable] = []
        for session in lost:
            try:
                await session.stop("its runner is gone")
            except Unavailable as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return tuple(s.token for s in lost)

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> FolderSession:
        """Raises Unavailable when the agent or sandbox is not registered, the runner cannot start, or a lost
        session's processes cannot be ended."""
        session = FolderSession(self.folder(token), token)
        spec = self._prepare(session, work, box)
        match files.state(session.folder):
            case State.NEW:
                await self._choose_server(session, work, box)
                await self._start(session, spec)
            case State.LOST:
                await session.stop("its runner is gone")
            case _:
                pass
        return session

    async def _choose_server(self, session: FolderSession, work: AgentTask | Batch | Service, box: BoxSpec) -> None:
        """Starts the server that an agent needs, or finds it: one per run, workspace, access and settings."""
        if not isinstance(work, AgentTask):
            return
        adapter = self.adapters[work.seat.agent]
        if adapter.server_idle is None:
            return
        service = Service(work.seat.agent, work.access, box.workspace, timedelta(seconds=adapter.server_idle))
        same = json.dumps([encode(adapter), encode(box)], sort_keys=True)
        run = session.token.partition("/")[0] if "/" in session.token else ""
        name = f"{service.agent}-{service.access}-{hashlib.sha256(same.encode()).hexdigest()[:8]}"
        folder = await self._server(f"{run}/{_SERVERS}/{name}", service, box)
        files.write_json(session.folder / "server.json", {"folder": str(folder)})

    async def _server(self, name: str, service: Service, box: BoxSpec) -> Path:
        """The one that serves now, or the next. Raises Unavailable as ``attach`` does."""
        for n in itertools.count(1):
            token = f"{name}/{n}"
            server = FolderSession(self.servers / _folder_name(token), token)
            match files.state(server.folder):
                case State.NEW:
                    await self._start(server, self._prepare(server, service, box))
                    return server.folder
                case State.LIVE:
                    return server.folder
                case State.LOST:
                    await server.stop("its runner is gone")
                case State.ENDED:
                    pass
        raise AssertionError

    def _prepare(self, session: FolderSession, work: AgentTask | Batch | Service, box: BoxSpec) -> Mapping[str, Json]:
        """The first spec of a token wins: later calls attach to it."""
        path = session.folder / "spec.json"
        spec: Mapping[str, Json] | None = files.read_json(path)
        if spec is None:
            session.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            session.folder.mkdir(mode=0o700, exist_ok=True)
            files.write_json(path, self._spec(session.token, work, box), replace=False)
            spec = files.read_json(path)
            crashpoints.reach("session.spec")
        if spec is None or spec["token"] != session.token:
            raise Conflict(f"{session.folder} is not the folder of session {session.token}", code="SESSION_FOLDER")
        return spec

    def _spec(self, token: str, work: AgentTask | Batch | Service, box: BoxSpec) -> Json:
        if box.sandbox not in self.sandboxes:
            raise Unavailable(f"there is no sandbox {box.sandbox!r}", code="NO_SANDBOX")
        adapter = None
        if not isinstance(work, Batch):
            agent = work.agent if isinstance(work, Service) else work.seat.agent
            adapter = self.adapters.get(agent)
            if adapter is None:
                raise Unavailable(f"there is no agent {agent!r}", code="NO_AGENT")
        return {
            "token": token,
            "mark": secrets.token_hex(16),
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


def _folder_name(token: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", token).strip("-.")[:_SLUG]
    return f"{slug}-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


def _is_server(token: str) -> bool:
    return token.partition("/")[2].startswith(f"{_SERVERS}/")


def _launch(session: FolderSession, adapter: Mapping[str, Json]) -> subprocess.Popen[bytes]:
    env = for_runner(os.environ, also=tuple(adapter.get("env") or ()))
    flags = ["-I"] if adapter.get("site") else ["-I", "-S"]
    log = os.open(session.folder / "runner.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", START, str(SOURCE), str(session.folder)],
            cwd=session.folder,
            env={**env, **marks(token=session.token, mark=session.mark)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    # The daemon is its parent for as long as both live: somebody has to bury it.
    threading.Thread(target=process.wait, name=f"bury-{process.pid}", daemon=True).start()
    return process
