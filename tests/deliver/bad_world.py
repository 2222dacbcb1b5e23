"""A run with a real agent that does harm: the real engine, git, runner and scripted agent; planning is seeded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from beadmill.agents import registry
from beadmill.engine.dispatch import Dispatcher
from beadmill.nodes.build import BuildNode
from beadmill.processes import procs
from beadmill.processes.sessions import FolderSessions
from beadmill.sops.load import load
from beadmill.store import tables
from beadmill.store.db import Tx
from tests.nodes.exec_bench import GOOD, KEY, Bench, Seeder, chain, planned

Step = Mapping[str, Any]


def marker(bead: str = "greet", **more: Any) -> Step:
    """The reply that closes a bead."""
    checks = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")
    said = {"bead_id": bead, "status": "done", "checks": checks, **more}
    return {"reply": f"<BEAD_STATUS>\n{json.dumps(said)}\n</BEAD_STATUS>"}


WORK: Sequence[Step] = [{"write": {"path": path, "content": text}} for path, text in GOOD.items()]


@dataclass(slots=True)
class BadWorld(Bench):
    """``plays`` says what the agent does; ``goes`` runs the build until it ends or somebody is asked."""

    replies: list[dict[str, Any]] = field(default_factory=list)
    real: FolderSessions | None = None

    @classmethod
    def at(cls, home: Path, repository: Path) -> BadWorld:
        bench = cls.make(home, repository)
        assert isinstance(bench, BadWorld)
        adapter = registry.adapter("scripted", {"scenario": str(home / "scenario.json")})
        host = {"host": "beadmill.workspaces.sandboxes.host:HostSandbox"}
        bench.real = FolderSessions(home / "sessions", adapters={"scripted": adapter}, sandboxes=host)
        bench.nodes |= {"seed": Seeder(planned()), "build": BuildNode(**bench.parts)}
        bench.plays("iteration_note", {"reply": "It did not work."})
        return bench

    def plays(self, template: str, *steps: Step, **match: str) -> None:
        """What is said later is matched first; the file is read anew by every session."""
        self.replies.insert(0, {"match": {"template": template, **match}, "steps": list(steps)})
        (self.home / "scenario.json").write_text(json.dumps({"replies": self.replies}))

    def dispatching(self) -> Dispatcher:
        assert self.real is not None
        self.dispatcher = Dispatcher(self.store, self.real, self.nodes, lambda text: load(text, name="t").graph, "w1")
        return self.dispatcher

    async def goes(self, **build: Any) -> None:
        await self.begins(**build)
        async with self.daemon():
            await self.ends()

    async def begins(self, **build: Any) -> None:
        """As the run of a ticket, so that its status word is kept too."""
        await self.store.write(_ticket)
        await self.start(chain("build"), council={"seats": ["scripted/a"], "mode": "solo"}, build=build)
        await self.store.write(_of_ticket)

    # --- what is there afterwards ------------------------------------------------------------------------------
    def blocked(self) -> tuple[str, tuple[str, ...]]:
        """Code and choices of the one open gate."""
        (gate,) = self.gates()
        return str(gate["detail"]["code"]), tuple(gate["choices"])

    def status(self) -> str:
        """The ticket's one word."""
        return str(self.rows(sa.select(tables.tickets.c.status))[0][0])

    def tries(self) -> list[str]:
        return [str(attempt.state) for attempt in self.attempts()]

    def running(self) -> list[procs.Proc]:
        """Every process of every session, the runners included."""
        assert self.real is not None
        s = tables.sessions
        tokens = [row.token for row in self.rows(sa.select(s.c.token))]
        found = [self.real.find(token) for token in tokens]
        return [proc for session in found if session is not None for proc in session.running()]


def _ticket(tx: Tx) -> None:
    tx.run(sa.insert(tables.projects).values(id=1, short="APP", name="App", created=tx.now))
    tx.run(
        sa.insert(tables.tickets).values(
            id=1, project_id=1, key=KEY, title="Add a greeting", state="active", status="draft", run_id="r1",
            created=tx.now, updated=tx.now,
        )
    )  # fmt: skip


def _of_ticket(tx: Tx) -> None:
    tx.run(sa.update(tables.runs).values(ticket_id=1, project_id=1))


__all__ = ["KEY", "WORK", "BadWorld", "marker"]
