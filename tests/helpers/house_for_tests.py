"""Shared by the tests of operations, web and CLI: a node that writes a PRD and asks, its SOP, and a way to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import insert
from store_for_tests import store_at

from beadmill import app
from beadmill.artifacts.prd import Epic, Prd, Product, Story
from beadmill.domain.values import SYSTEM, Actor, GateKind, GateRequest, Outcome
from beadmill.engine.port import Node, NodeSpec, Visit
from beadmill.errors import Blocked
from beadmill.operations import artifacts, gates, tickets, views
from beadmill.operations.ports import Ports
from beadmill.settings import Settings
from beadmill.store import tables as t
from beadmill.store.journal import gates as journal

OWNER = Actor("user", "owner", "cli")
Starter = Callable[..., Any]

SOP = """
format: 1
title: Write
description: Writes a PRD and asks.
start: write
nodes:
  - id: write
    kind: write
  - id: check
    kind: gate
    config: {title: Good?}
    ends: [approved]
edges:
  - {from: write, outcome: approved, to: check}
  - {from: check, outcome: rejected, to: write, kind: rework, max_visits: 3}
"""


SEALED = """
format: 1
title: Write and seal
description: Writes a PRD, asks, and seals.
start: write
nodes:
  - id: write
    kind: write
  - id: check
    kind: gate
    config: {title: Good?}
    ends: [rejected]
  - id: preflight
    kind: gate
    seals: true
    config: {title: Go?}
    ends: [approved, rejected]
edges:
  - {from: write, outcome: approved, to: check}
  - {from: check, outcome: approved, to: preflight}
"""


def prd(problem: str) -> Prd:
    story = Story(id="US-1-1", title="As a user I add", acceptance_criteria=("It adds",))
    epic = Epic(id="EPIC-1", title="Adding", user_stories=(story,))
    return Prd(ticket_id="API-1", product=Product(problem_statement=problem), epics=(epic,))


@dataclass(frozen=True, slots=True)
class Nothing:
    """The node takes no configuration."""


class WriteNode:
    spec = NodeSpec("write", Nothing, frozenset({"approved"}), writes=(Prd,))

    async def visit(self, v: Visit, cfg: Nothing, /) -> Outcome:
        if v.work.title == "Block":
            raise Blocked("NO_LUCK", "it does not work yet", next="retry")
        ref = await v.put(prd(v.work.title), by=SYSTEM)
        gate = GateRequest(GateKind.APPROVE, "Approve the PRD", ("approve",), shows=(ref,))
        answer = await v.ask("approve-1", gate)
        return Outcome("approved", made=answer.saw, note=answer.note)


def publish(tx: Any) -> None:
    for name, body in (("write", SOP), ("sealed", SEALED)):
        made = tx.run(insert(t.definitions).values(kind="sop", name=name).returning(t.definitions.c.id)).scalar_one()
        version = {"version": 1, "state": "published", "body": body, "sha256": "", "created": tx.now}
        tx.run(insert(t.definition_versions).values(definition_id=made, **version))


@cache
def migrated() -> bytes:
    """A database with the newest schema and the test SOP, made once."""
    with TemporaryDirectory() as folder:
        store = store_at(Path(folder) / "beadmill.db")
        store.write_now(publish)
        with store.engine.connect() as conn:
            conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        return (Path(folder) / "beadmill.db").read_bytes()


def _prepare(home: Path) -> None:
    """A home that is there already is taken as it is: a second ``served`` is a restart."""
    if home.exists():
        return
    home.mkdir(mode=0o700)
    (home / "beadmill.db").write_bytes(migrated())


GAP, CLASH = "Nothing says what an empty list gives.", "Q1 says staff, Q2 says everybody."


async def opened(ports: Ports, near: Any, **more: Any) -> Any:
    """Another approval of the visit of gate ``near``, as a node would open it."""
    name = f"{near.id.rpartition('/')[0]}/{more.pop('name', 'second')}#0"
    request = GateRequest(GateKind.APPROVE, "Approve", **{"choices": ("approve",), **more})
    visit = near.id.removesuffix("/approve-1#0")
    await ports.store.write(lambda tx: journal.open_gate(tx, name, visit, request))
    return await gates.show(ports, name, actor=OWNER)


async def gappy(ports: Ports, near: Any, *, gaps: tuple[str, ...] = (GAP,)) -> Any:
    """One with open gaps and one undecided contradiction."""
    detail = {"gaps": list(gaps), "unresolved": [{"gap": CLASH, "rationale": "Which one?"}]}
    return await opened(ports, near, choices=("fix_gaps", "approve_with_gaps"), detail=detail)


@asynccontextmanager
async def served(home: Path, node: Node | None = None) -> AsyncIterator[app.House]:
    """The installation of ``home``, its engine on the test's own loop; ``node`` works in place of WriteNode."""
    _prepare(home)
    built = app.build(Settings(home=home), more={"write": node or WriteNode()})
    serving = asyncio.create_task(built.ports.engine.serve())
    yield built
    serving.cancel()
    await asyncio.wait([serving])
    built.ports.store.close()


def starter(ports: Ports) -> Starter:
    """A started ticket whose first gate is open: ``await starter(ports)()``."""

    async def start(sop: str = "write", title: str = "Do it") -> Any:
        ticket = await tickets.create(ports, "API", title=title, sop=sop, actor=OWNER)
        await tickets.start(ports, ticket.key, actor=OWNER)
        return await until(ports, ticket.key, lambda found: found.waits > 0)

    return start


async def until(ports: Ports, key: str, holds: Callable[[Any], bool]) -> Any:
    """The ticket once it is so; looks after every event, within 20 s."""
    async with asyncio.timeout(20):
        async for _ in ports.store.events.subscribe():
            found = await tickets.show(ports, key, actor=OWNER)
            if holds(found):
                return found
    raise AssertionError("the events ended")


async def approve(ports: Ports, key: str = "API-1") -> Any:
    """Says yes to the one open gate; the ticket when the next one is open."""
    (line,) = (await gates.listing(ports, ticket=key, actor=OWNER)).items
    await gates.answer(ports, line.id, line.choices[0], etag=line.etag, actor=OWNER)
    return await until(ports, key, lambda t: any(g.id != line.id for g in t.current.gates))


async def approved(ports: Ports, started: Starter, sop: str = "write") -> views.ArtifactView:
    """The PRD of a ticket that is past its approval and waits at the node behind it."""
    await started(sop=sop)
    await approve(ports)
    (line,) = (await artifacts.listing(ports, ticket="API-1", kind="prd", actor=OWNER)).items
    return await artifacts.show(ports, line.row, actor=OWNER)
