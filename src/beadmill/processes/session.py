"""One session's folder from outside its runner: followed, ordered, stopped, swept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from beadmill.domain.ended import Ended, Lost, Ran, SessionRef, Stopped
from beadmill.errors import Unavailable
from beadmill.processes import control, procs, services
from beadmill.processes import folder as files
from beadmill.processes.alive import not_removed, still_running
from beadmill.processes.folder import State
from beadmill.processes.loading import by_path
from beadmill.processes.spec import AgentEvent, BoxSpec, Order, Stop
from beadmill.processes.wire import decode, encode_end

STOP_PATIENCE: Final = 25.0  # seconds for the runner to unwind the adapter and sweep, before it is killed itself
_POLL: Final = (0.005, 0.2)  # first and longest pause between two looks, in seconds
_SLUG: Final = 80


class Pause:
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
        path, offset, pause = self.folder / "events.jsonl", after, Pause()
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
        patience, pause = time.monotonic() + control.ANSWER, Pause()
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
        pause = Pause()
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
        await self._let_go(reason)
        left = await procs.end_all(self.running)
        if left or self.live():
            raise still_running(self.token, left)
        await self._sweep_box()

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
                pause = Pause(0.02)
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

    async def _sweep_box(self) -> None:
        """What its sandbox keeps beside processes. Raises Unavailable with what could not be removed."""
        spec = files.read_json(self.folder / "spec.json") or {}
        if "sandbox" not in spec:
            return
        workspace = decode(BoxSpec, spec["box"]).workspace
        left = await by_path(spec["sandbox"])().sweep(workspace, self.mark)
        if left:
            raise not_removed(self.token, left)

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
            if not line.endswith(b"\n"):
                return  # its other half may be there at the next read, and would pass for a line of its own
            yield line


def folder_name(token: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", token).strip("-.")[:_SLUG]
    return f"{slug}-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


def read_all(folders: Iterable[Path]) -> Iterator[FolderSession]:
    """Those with a readable spec."""
    for folder in folders:
        spec = files.read_json(folder / "spec.json")
        if spec is not None:
            yield FolderSession(folder, spec["token"])
