"""Engine bars: step time, answer latency, recovery time, and the cost of 1,000 parked runs.

``python benchmarks/engine.py [--json] [--runs 1000] [--url …]``. Figures compare within one run; the machine is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import resource
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from beadmill.domain.values import Actor, GateKind, GateRequest, Outcome
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import NodeSpec, Visit, Work
from beadmill.processes.sessions import FolderSessions
from beadmill.settings import RunSettings
from beadmill.sops import load
from beadmill.store import tables
from beadmill.store.db import Store
from beadmill.store.journal import gates, runs, steps, visits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ME = Actor("user", "benchmark", "benchmark")
STEPS = 2000


class Node:
    def __init__(self, kind: str, body: Callable[[Visit], Awaitable[None]]) -> None:
        self.spec = NodeSpec(kind, dict, frozenset({"ok"}))
        self._body = body

    async def visit(self, v: Visit, _cfg: Any, /) -> Outcome:
        await self._body(v)
        return Outcome("ok")


async def number() -> int:
    return 1


async def many(v: Visit) -> None:
    for i in range(STEPS):
        await v.step(f"s{i}", number)
    await v.ask("go", GateRequest(GateKind.APPROVE, "go", ("yes",)))


async def parked(v: Visit) -> None:
    await v.ask("go", GateRequest(GateKind.APPROVE, "go", ("yes",)))
    await v.step("answered", number)


def sop(kind: str) -> str:
    return f"title: {kind}\nstart: n\nnodes:\n  - {{id: n, kind: {kind}, ends: [ok]}}\n"


async def start(store: Store, run: str, kind: str) -> None:
    work = dict.fromkeys(Work.__dataclass_fields__, "")
    settings = RunSettings().model_dump(mode="json")
    graph = load(sop(kind), name=kind).graph
    await store.write(
        lambda tx: runs.start(
            tx,
            run=run,
            ticket_id=None,
            project_id=None,
            sop=kind,
            body=sop(kind),
            graph=graph,
            settings=settings,
            work=work,
            actor=ME,
        )
    )


@asynccontextmanager
async def daemon(store: Store, home: Path) -> AsyncIterator[Dispatcher]:
    nodes = {"many": Node("many", many), "parked": Node("parked", parked)}
    sessions = FolderSessions(home, adapters={}, sandboxes={})
    engine = Dispatcher(store, sessions, nodes, lambda text: load(text, name="b").graph, "bench")
    task = asyncio.create_task(engine.serve())
    try:
        yield engine
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(store: Store, query: sa.Select[Any], wanted: object) -> None:
    async for _ in store.events.subscribe(every=lambda: 0.002):
        if await store.read(lambda conn: conn.execute(query).scalar()) == wanted:
            return


def count(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(table).where(*where)


async def measure(store: Store, home: Path, parked_runs: int) -> dict[str, Any]:
    store.migrate()
    out: dict[str, Any] = {}
    began = time.perf_counter()
    async with daemon(store, home) as engine:
        await start(store, "many", "many")
        engine.ring()
        await until(store, count(tables.gates), 1)
        out["step_ms"] = (time.perf_counter() - began) / STEPS * 1000
    began = time.perf_counter()
    memo = await store.read(lambda conn: steps.memo(conn, "many/n.1"))
    out["steps_back_s"] = time.perf_counter() - began
    assert len(memo.rows) == STEPS
    for i in range(parked_runs):
        await start(store, f"p{i}", "parked")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with daemon(store, home) as engine:
        parked_now = count(tables.visits, tables.visits.c.state == "parked")
        await until(store, parked_now, parked_runs + 1)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(5)
        out["parked_core_percent"] = (time.process_time() - cpu) / (time.perf_counter() - wall) * 100
        out["parked_mb_each"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 / parked_runs
        out["answer_ms"] = await answers(store, engine)
    out["recovery_s"] = await recovery(store, home)
    return out


async def answers(store: Store, engine: Dispatcher, times: int = 20) -> float:
    spent = 0.0
    for i in range(times):
        gate = f"p{i}/n.1/go#0"
        etag = await store.read(
            lambda conn, gate=gate: conn.execute(
                sa.select(tables.gates.c.etag).where(tables.gates.c.id == gate)
            ).scalar()
        )
        began = time.perf_counter()
        await store.write(
            lambda tx, gate=gate, etag=etag: gates.answer(tx, gate, choice="yes", etag=etag, key=gate, actor=ME)
        )
        engine.ring()
        await until(store, count(tables.steps, tables.steps.c.visit_id == f"p{i}/n.1"), 1)
        spent += time.perf_counter() - began
    return spent / times * 1000


async def recovery(store: Store, home: Path) -> float:
    """From the start of an engine to the first recorded act of a visit that a dead one was running."""
    await start(store, "dead", "parked")
    await store.write(lambda tx: visits.claim(tx, "dead/n.1", 1, owner="gone", worker="gone"))
    began = time.perf_counter()
    async with daemon(store, home):
        await until(store, count(tables.gates, tables.gates.c.id == "dead/n.1/go#0"), 1)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--url", default="", help="PostgreSQL; default is SQLite in a temporary folder")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(wanted.url or f"sqlite:///{folder}/bench.db")
        result = asyncio.run(measure(store, Path(folder) / "sessions", wanted.runs))
        store.close()
    result |= {"machine": platform.processor() or platform.machine(), "python": platform.python_version()}
    if wanted.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return
    bars = {
        "step_ms": "≤ 3",
        "steps_back_s": "≤ 0.1",
        "parked_core_percent": "≤ 3",
        "parked_mb_each": "≤ 0.1",
        "answer_ms": "≤ 100",
        "recovery_s": "≤ 2",
    }
    for name, bar in bars.items():
        sys.stdout.write(f"{name:22} {result[name]:8.3f}   bar {bar}\n")


if __name__ == "__main__":
    main()
