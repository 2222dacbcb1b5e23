"""A bench for engine tests: real store, real dispatcher, nodes made of functions, sessions ended by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from beadmill.domain.ended import Ended, Lost, Ran, Replied, SessionRef, Stopped
from beadmill.domain.values import Access, Actor, Brief, Json, Outcome, Seat
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import NodeSpec, Visit
from beadmill.processes.spec import AgentEvent, AgentTask, Batch, BoxSpec, Order
from beadmill.settings import RunSettings
from beadmill.sops.load import load
from beadmill.store import tables
from beadmill.store.db import Store
from beadmill.store.journal import gates, runs, tokens

ME = Actor("user", "tester", "test")
Body = Callable[[Visit, Any], Awaitable[Outcome]]
LONG = timedelta(hours=1)


class ManualSession:
    """A session whose end a test decides."""

    def __init__(self, token: str, work: AgentTask | Batch) -> None:
        self.token, self.work = token, work
        self.folder = Path()
        self.end: Ended | Ran | Lost | None = None
        self.orders: list[Order] = []
        self.leaves = self.frozen = False

    async def events(self, after: int = 0) -> AsyncIterator[tuple[int, AgentEvent]]:
        nothing: list[tuple[int, AgentEvent]] = []
        for event in nothing:
            yield event

    async def order(self, order: Order) -> None:
        self.orders.append(order)

    def ended(self) -> Ended | Ran | Lost | None:
        return self.end

    def live(self) -> bool:
        return self.end is None

    def left(self) -> bool:
        return self.leaves

    def wake(self) -> bool:
        self.frozen, was = False, self.frozen
        return was

    async def wait(self) -> Ended | Ran | Lost:
        raise AssertionError("the engine never waits on a session")

    async def stop(self, reason: str) -> None:
        self.leaves = False
        if self.end is None:
            self.end = Stopped(session=SessionRef(self.token), worked=timedelta(seconds=1))


class NoServers:
    """What sessions by hand have of servers."""

    def runs(self) -> set[str]:
        return set()

    async def close(self, run: str, why: str) -> None:
        return


class ManualSessions:
    """Sessions by hand: ``started`` lists tokens in order; ``reply`` ends one."""

    def __init__(self) -> None:
        self.servers = NoServers()
        self.by_token: dict[str, ManualSession] = {}
        self.swept: list[str] = []

    @property
    def started(self) -> list[str]:
        return [token.split("/", 1)[1] for token in self.by_token]

    @property
    def running(self) -> list[str]:
        return [token.split("/", 1)[1] for token, s in self.by_token.items() if s.end is None]

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> ManualSession:
        return self.by_token.setdefault(token, ManualSession(token, work))

    def find(self, token: str) -> ManualSession | None:
        return self.by_token.get(token)

    async def sweep_gone(self, token: str) -> None:
        assert token not in self.by_token
        self.swept.append(token)

    def one(self, part: str) -> ManualSession:
        (found,) = [s for t, s in self.by_token.items() if part in t and s.end is None]
        return found

    def reply(self, part: str, text: str = "ok") -> None:
        session = self.one(part)
        session.end = Replied(session=SessionRef(session.token, "talk"), text=text)


@dataclass(slots=True)
class FunctionNode:
    body: Body
    spec: NodeSpec

    async def visit(self, v: Visit, cfg: Any, /) -> Outcome:
        return await self.body(v, cfg)


@dataclass(slots=True)
class Bench:
    store: Store
    home: Path
    sessions: ManualSessions = field(default_factory=ManualSessions)
    nodes: dict[str, FunctionNode] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # acts carried out, by name, in order
    dispatcher: Dispatcher | None = None
    live: dict[str, Json] | None = None  # what is not frozen, as it is now; None: the engine knows of nothing live

    def node(self, kind: str, body: Body, *outcomes: str) -> None:
        self.nodes[kind] = FunctionNode(body, NodeSpec(kind, dict, frozenset(outcomes or ("ok",))))

    async def act(self, name: str) -> str:
        """A step's act: counts itself."""
        self.calls.append(name)
        return name

    async def start(self, sop: str, run: str = "r1", **settings: Json) -> None:
        loaded = load(sop, name="test")
        frozen = RunSettings().overlaid(settings).model_dump(mode="json")
        work = {
            "key": "T-1",
            "title": "t",
            "description": "",
            "acceptance": "",
            "project": "T",
            "repository": "",
            "workspace": str(self.home / "ws"),
            "branch": "b",
            "base": "",
        }
        await self.store.write(
            lambda tx: runs.start(
                tx,
                run=run,
                ticket_id=None,
                project_id=None,
                sop="test",
                body=sop,
                graph=loaded.graph,
                settings=frozen,
                work=work,
                actor=ME,
            )
        )
        self.ring()

    def ring(self) -> None:
        if self.dispatcher is not None:
            self.dispatcher.ring()

    @asynccontextmanager
    async def daemon(self, worker: str = "w1") -> AsyncIterator[Dispatcher]:
        """A dispatcher while the block lasts; leaving is a clean shutdown."""
        self.dispatcher = Dispatcher(
            self.store,
            self.sessions,
            self.nodes,
            lambda text: load(text, name="test").graph,
            worker,
            live=None if self.live is None else lambda _conn, _run: self.live,
        )
        task = asyncio.ensure_future(self.dispatcher.serve())
        try:
            yield self.dispatcher
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def until(self, holds: Callable[[], bool], *, seconds: float = 10) -> None:
        """Waits for a condition over what the store and the sessions show."""
        async with asyncio.timeout(seconds):
            async for _ in self.store.events.subscribe(every=lambda: 0.02, rest=0.02):
                if holds():
                    return

    async def state(self, visit: str, *wanted: str) -> None:
        await self.until(lambda: self.visit(visit) in wanted)

    async def started(self, count: int) -> None:
        await self.until(lambda: len(self.sessions.started) == count)

    def visit(self, visit: str, run: str = "r1") -> str:
        return str(self.scalar(sa.select(tables.visits.c.state).where(tables.visits.c.id == f"{run}/{visit}")))

    def visits(self, run: str = "r1") -> dict[str, str]:
        v = tables.visits
        rows = self.rows(sa.select(v.c.id, v.c.state).where(v.c.run_id == run).order_by(v.c.created, v.c.n))
        return {str(r.id).split("/")[1]: str(r.state) for r in rows}

    def run_state(self, run: str = "r1") -> str:
        return str(self.scalar(sa.select(tables.runs.c.state).where(tables.runs.c.id == run)))

    def scalar(self, query: sa.Select[Any]) -> Any:
        return self.store.read_now(lambda conn: conn.execute(query).scalar())

    def rows(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        return self.store.read_now(lambda conn: list(conn.execute(query)))

    def events(self, *kinds: str) -> list[str]:
        e = tables.events
        found = [str(r[0]) for r in self.rows(sa.select(e.c.kind).order_by(e.c.seq))]
        return [k for k in found if k.startswith(kinds)]

    def gate(self, part: str = "") -> sa.RowMapping:
        """An open gate whose id contains ``part``."""
        g = tables.gates
        found = self.store.read_now(lambda conn: conn.execute(sa.select(g).where(g.c.state == "open")).mappings().all())
        return next(r for r in found if part in r["id"])

    async def gate_open(self, part: str = "") -> sa.RowMapping:
        g = tables.gates
        query = sa.select(sa.func.count()).select_from(g).where(g.c.state == "open", g.c.id.contains(part))
        await self.until(lambda: self.scalar(query) == 1)
        run, visit = self.gate(part)["visit_id"].split("/")
        await self.until(lambda: self.visit(visit, run) == "parked")
        return self.gate(part)

    async def answer(self, part: str, choice: str, **more: Any) -> None:
        row = self.gate(part)
        wanted = {"etag": row["etag"], "key": f"k-{row['id']}", "actor": ME, **more}
        await self.store.write(lambda tx: gates.answer(tx, row["id"], choice=choice, **wanted))
        self.ring()

    async def send_back(self, sop: str, node: str, run: str = "r1") -> None:
        graph = load(sop, name="test").graph
        await self.store.write(lambda tx: tokens.send_back(tx, run, graph, node, comment="again", actor=ME))
        self.ring()

    async def write(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = await self.store.write(lambda tx: fn(tx, *args, **kwargs))
        self.ring()
        return result


def agent_task(access: Access = Access.READ) -> AgentTask:
    return AgentTask(Seat("manual"), Brief("t", "do it"), access, Path("/"), LONG, LONG)


def one(kind: str, *outcomes: str) -> str:
    """An SOP of one node."""
    ends = ", ".join(outcomes or ("ok",))
    return f"title: T\nstart: {kind}\nnodes:\n  - {{id: {kind}, kind: {kind}, ends: [{ends}]}}\n"


def chain(*kinds: str) -> str:
    """An SOP where each node's ``ok`` leads to the next."""
    nodes = "".join(f"  - {{id: {k}, kind: {k}}}\n" for k in kinds)
    edges = "".join(f"  - {{from: {a}, outcome: ok, to: {b}}}\n" for a, b in pairwise(kinds))
    return f"title: T\nstart: {kinds[0]}\nnodes:\n{nodes}edges:\n{edges or '  []'}"
