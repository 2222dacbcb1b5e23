"""An installation with the real store, journal and dispatcher, and one node kind that makes a document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from beadmill import app
from beadmill.domain.values import Actor
from beadmill.operations import projects, tickets, views
from beadmill.operations.ports import Ports
from beadmill.settings import Settings
from beadmill.store import tables as t
from operations.nodes_for_tests import SOP, WriteNode

OWNER = Actor("user", "owner", "cli")


@pytest.fixture
def owner() -> Actor:
    return OWNER


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[app.House]:
    """Served on the test's own loop."""
    built = app.build(Settings(home=tmp_path / "home"), more={"write": WriteNode()})
    built.ports.store.migrate()
    await built.ports.store.write(_publish)
    serving = asyncio.create_task(built.engine.serve())
    yield built
    serving.cancel()
    await asyncio.wait([serving])
    built.ports.store.close()


def _publish(tx: Any) -> None:
    made = tx.run(insert(t.definitions).values(kind="sop", name="write").returning(t.definitions.c.id)).scalar_one()
    version = {"version": 1, "state": "published", "body": SOP, "sha256": "", "created": tx.now}
    tx.run(insert(t.definition_versions).values(definition_id=made, **version))


@pytest.fixture
def ports(house: app.House) -> Ports:
    return house.ports


@pytest.fixture
async def project(ports: Ports, repo: Path, owner: Actor) -> views.ProjectView:
    return await projects.add(ports, str(repo), short="API", actor=owner)


Starter = Callable[..., Any]


@pytest.fixture
def started(ports: Ports, project: views.ProjectView, owner: Actor) -> Starter:
    """A started ticket whose first gate is open: ``await started()``."""

    async def start(sop: str = "write") -> views.TicketView:
        ticket = await tickets.create(ports, "API", title="Do it", sop=sop, actor=owner)
        await tickets.start(ports, ticket.key, actor=owner)
        return await until(ports, ticket.key, lambda found: found.waits > 0)

    return start


async def until(ports: Ports, key: str, holds: Callable[[views.TicketView], bool]) -> views.TicketView:
    """The ticket once it is so; looks after every event, within 20 s."""
    async with asyncio.timeout(20):
        async for _ in ports.store.events.subscribe():
            found = await tickets.show(ports, key, actor=OWNER)
            if holds(found):
                return found
    raise AssertionError("the events ended")
