"""A root of sessions over the real runner, with the scripted agent and the host sandbox."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import SessionRef
from beadmill.domain.values import Access, Brief, Seat
from beadmill.processes import procs
from beadmill.processes.sessions import Adapter, FolderSession, FolderSessions
from beadmill.processes.spec import AgentTask, Batch, BoxSpec

HOST = "beadmill.workspaces.sandboxes.host:HostSandbox"


class World:
    """One workspace, one root of sessions, one scenario file."""

    def __init__(self, home: Path) -> None:
        self.workspace = home / "workspace"
        self.tree = self.workspace / "tree"
        self.tree.mkdir(parents=True)
        self.scenario = home / "scenario.json"
        self.root = home / "sessions"
        self.box = BoxSpec("host", self.workspace)
        self.sessions = self.open()
        self.play({"reply": "done"})

    def open(self, **adapters: Adapter) -> FolderSessions:
        """Another holder of the same folders: what a restarted daemon is."""
        scripted = Adapter("beadmill.agents.scripted:ScriptedAgent", {"scenario": str(self.scenario)})
        return FolderSessions(self.root, adapters={"scripted": scripted, **adapters}, sandboxes={"host": HOST})

    def play(self, *steps: Any, **match: str) -> None:
        self.scenario.write_text(json.dumps({"replies": [{"match": match, "steps": list(steps)}]}))

    def task(
        self, text: str = "do it", *, resume: SessionRef | None = None, agent: str = "scripted", **more: Any
    ) -> AgentTask:
        head = "Beadmill task: coding | ticket: T-1 | subject: a | seat: 1 | turn: 1\n"
        limits = {"budget": timedelta(minutes=1), "idle": timedelta(minutes=1), "access": Access.WRITE} | more
        return AgentTask(seat=Seat(agent), brief=Brief("coding", head + text), cwd=self.tree, resume=resume, **limits)

    def shell(self, *scripts: str, stop: bool = True, budget: float = 30) -> Batch:
        specs = tuple(CommandSpec(mode="shell", script=script) for script in scripts)
        return Batch(specs, self.tree, stop_at_first_failure=stop, budget=timedelta(seconds=budget))

    async def start(self, token: str, work: AgentTask | Batch) -> FolderSession:
        return await self.sessions.attach(token, work, self.box)

    async def run(self, token: str, work: AgentTask | Batch) -> Any:
        return await (await self.start(token, work)).wait()


async def until(holds: Callable[[], Any], *, seconds: float = 15) -> Any:
    """Waits for a condition of another process, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)
    return value


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    deadline = time.monotonic() + 5  # a runner needs a moment to exit behind its end.json
    while left := {p for s in made.open().all() for p in procs.of_session(s.token)}:
        if time.monotonic() > deadline:
            for proc in left:
                procs.send(proc, signal.SIGKILL)
            pytest.fail(f"still running: {sorted((p.pid, p.command) for p in left)}")
