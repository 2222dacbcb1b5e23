"""What the runner gives an adapter: agents.contract.SessionIO and ServerIO. Standard library only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beadmill.domain.values import Json
from beadmill.processes.children import RunningChild, Spawner
from beadmill.processes.eventlog import EventLog
from beadmill.processes.services import Use, note_address
from beadmill.processes.spec import AgentEvent, AgentTask, EventKind, Order


@dataclass(slots=True)
class Cut:
    """Why the work was ended from outside; the first reason stays."""

    reason: str = ""  # stop | budget | idle | steps | terminated | unused
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self, reason: str) -> None:
        if not self.happened.is_set():
            self.reason = reason
            self.happened.set()


@dataclass(frozen=True, slots=True)
class Inside:
    """The session from within its runner."""

    token: str
    mark: str
    folder: Path
    workspace: Path
    boxed: bool
    log: EventLog
    cut: Cut
    spawner: Spawner


class IO:
    """agents.contract.SessionIO."""

    def __init__(self, inside: Inside, task: AgentTask, orders: asyncio.Queue[Order], use: Use | None) -> None:
        self._inside, self._cwd, self._orders = inside, task.cwd, orders
        self._steps_left = task.max_steps or None
        self.use = use
        self.token, self.mark, self.workspace = inside.token, inside.mark, inside.workspace
        self.boxed = inside.boxed

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, stdin: bytes | None = b""
    ) -> RunningChild:
        return await self._inside.spawner.child(argv, env=env, cwd=cwd or self._cwd, stdin=stdin)

    async def emit(self, event: AgentEvent) -> None:
        self._inside.log.emit(event)
        if event.kind is EventKind.TOOL and self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left < 0:  # this one is too much; a CLI that counts by itself has stopped before
                self._inside.cut.now("steps")

    async def orders(self) -> AsyncIterator[Order]:
        while True:
            yield await self._orders.get()


class ServerIO:
    """agents.contract.ServerIO."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.workspace = inside.workspace

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> RunningChild:
        return await self._inside.spawner.child(argv, env=env, cwd=cwd, stdin=b"")

    def listens(self, address: Json) -> None:
        note_address(self._inside.folder, address)
        self._inside.log.say(EventKind.STARTED)
