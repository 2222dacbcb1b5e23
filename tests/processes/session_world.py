"""A root of sessions over the real runner, with the scripted agent and a sandbox."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import SessionRef
from beadmill.domain.values import Access, Brief, Json, Seat
from beadmill.processes import procs
from beadmill.processes.session import FolderSession
from beadmill.processes.sessions import Adapter, FolderSessions
from beadmill.processes.spec import AgentTask, Batch, BoxSpec
from beadmill.processes.starting import Starter
from beadmill.workspaces.sandboxes.choice import PATHS

MINUTE = timedelta(minutes=1)
# Every sandbox that isolates, where this machine can run it.
BOXED = pytest.mark.parametrize(
    "sandbox",
    [
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("container", marks=pytest.mark.container),
    ],
)


class World:
    """One workspace, one root of sessions, one scenario file."""

    starter: Starter | None = None  # the product's own

    def __init__(self, home: Path, *, sandbox: str = "host") -> None:
        self.workspace = home / "workspace"
        self.tree = self.workspace / "tree"
        self.tree.mkdir(parents=True)
        self.scenario = home / "scenario.json"
        self.root = home / "sessions"
        self.box = BoxSpec(sandbox, self.workspace)
        self.agent = "scripted"
        self.servers = self.root  # a server that is shared by tests lies elsewhere
        self.adapters = {
            "scripted": Adapter("beadmill.agents.scripted:ScriptedAgent", {"scenario": str(self.scenario)})
        }
        self.sessions = self.open()
        self.play({"reply": "done"})

    def open(self) -> FolderSessions:
        """Another holder of the same folders: what a restarted daemon is."""
        sessions = FolderSessions(self.root, adapters=self.adapters, sandboxes=PATHS, starter=self.starter)
        sessions.servers.root = self.servers
        return sessions

    def play(self, *steps: Json) -> None:
        self.play_all([{"steps": list(steps)}])

    def play_all(self, replies: list[Json]) -> None:
        self.scenario.write_text(json.dumps({"replies": replies}))

    def task(
        self,
        text: str = "do it",
        *,
        template: str = "coding",
        access: Access = Access.WRITE,
        budget: timedelta = MINUTE,
        idle: timedelta = MINUTE,
        resume: SessionRef | None = None,
        schema: Json = None,
        max_steps: int = 0,
    ) -> AgentTask:
        head = f"Beadmill task: {template} | ticket: T-1 | subject: a | seat: 1 | turn: 1\n"
        brief = Brief(template, head + text)
        seat = Seat(self.agent)
        return AgentTask(
            seat, brief, access, self.tree, budget, idle, schema=schema, resume=resume, max_steps=max_steps
        )

    def shell(self, *scripts: str, stop: bool = True, budget: float = 30) -> Batch:
        return self.batch(*(CommandSpec(mode="shell", script=s) for s in scripts), stop=stop, budget=budget)

    def batch(self, *specs: CommandSpec, stop: bool = True, budget: float = 30) -> Batch:
        return Batch(specs, self.tree, stop_at_first_failure=stop, budget=timedelta(seconds=budget))

    async def start(self, token: str, work: AgentTask | Batch) -> FolderSession:
        return await self.sessions.attach(token, work, self.box)

    async def run(self, token: str, work: AgentTask | Batch) -> Any:
        return await (await self.start(token, work)).wait()

    def running(self, token: str) -> set[procs.Proc]:
        session = self.sessions.find(token)
        assert session is not None
        return session.running()

    def close(self) -> None:
        """Nothing may be left of any session; a runner needs a moment to exit behind its end.json."""
        if self.servers == self.root:
            for server in self.open().servers.live():
                asyncio.run(server.stop("the test is over"))
        deadline = time.monotonic() + 5
        while left := {p for s in self.open().all() for p in s.running()}:
            if time.monotonic() > deadline:
                for proc in left:
                    procs.send(proc, signal.SIGKILL)
                pytest.fail(f"still running: {sorted((p.pid, p.command) for p in left)}")


async def until(holds: Callable[[], Any], *, seconds: float = 15) -> Any:
    """Waits for a condition of another process, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)
    return value
