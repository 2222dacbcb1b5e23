"""Canceled is said behind a proven stop; until then the run can be canceled again and says what still lives."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from house_for_tests import until

from beadmill import app
from beadmill.domain.values import Actor
from beadmill.errors import Unavailable
from beadmill.operations import events, runs, tickets
from beadmill.operations.ports import Ports
from beadmill.processes import procs
from beadmill.processes.contract import Session
from beadmill.processes.folder import read_json
from beadmill.processes.session import FolderSession
from beadmill.processes.sessions import FolderSessions
from beadmill.store import tables as t
from tests.processes import session_world

pytestmark = pytest.mark.usefixtures("project")

SOP = """
format: 1
title: Long
description: Runs for long.
start: work
nodes:
  - id: work
    kind: script
    config: {script: "touch up; sleep 300; sleep 300"}
    ends: [failed, ok]
"""


def publish(tx: Any) -> None:
    made = tx.run(sa.insert(t.definitions).values(kind="sop", name="long").returning(t.definitions.c.id)).scalar_one()
    version = {"version": 1, "state": "published", "body": SOP, "sha256": "", "created": tx.now}
    tx.run(sa.insert(t.definition_versions).values(definition_id=made, **version))


async def working(ports: Ports, owner: Actor) -> tuple[str, FolderSession]:
    """A ticket whose script runs, and its session."""
    await ports.store.write(publish)
    ticket = await tickets.create(ports, "API", title="Do it", sop="long", overrides={"sandbox": "host"}, actor=owner)
    await tickets.start(ports, ticket.key, actor=owner)
    await session_world.until(lambda: list(ports.settings.home.glob("workspaces/*/*/tree/up")))
    (token,) = ports.store.read_now(lambda conn: [row[0] for row in conn.execute(sa.select(t.sessions.c.token))])
    session: Session | None = ports.sessions.find(token)
    assert isinstance(session, FolderSession)
    return ticket.key, session


@pytest.fixture
def nothing_ends(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What processes in uninterruptible sleep are like: no signal reaches anything. ``undo`` gives way."""
    for name in ("procs.KILL_GRACE", "procs.TERM_GRACE", "session.STOP_PATIENCE"):
        monkeypatch.setattr(f"beadmill.processes.{name}", 0.1)
    monkeypatch.setattr("beadmill.processes.procs.send", lambda *_: None)
    return monkeypatch


async def test_a_run_that_cannot_be_stopped_is_not_canceled_and_names_what_lives(
    ports: Ports, owner: Actor, nothing_ends: pytest.MonkeyPatch
) -> None:
    key, session = await working(ports, owner)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
    with pytest.raises(Unavailable) as alive:
        await tickets.cancel(ports, key, actor=owner)
    named = {(p["pid"], p["command"]) for p in alive.value.details["processes"]}
    assert named == {(p.pid, p.command) for p in session.running()} != set()
    assert (await tickets.show(ports, key, actor=owner)).state == "active"

    nothing_ends.undo()
    canceled = await tickets.cancel(ports, key, actor=owner)
    assert (canceled.state, session.running()) == ("canceled", set())


async def test_what_lives_stands_among_the_events_of_its_ticket(
    ports: Ports, owner: Actor, nothing_ends: pytest.MonkeyPatch
) -> None:
    key, session = await working(ports, owner)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
    with pytest.raises(Unavailable):
        await tickets.cancel(ports, key, actor=owner)
    seen = await events.since(ports, actor=owner, topics=(f"ticket:{key}",))
    told = [e.data["processes"] for e in seen.events if e.kind == "session.stuck"]
    assert {p["pid"] for p in told[-1]} == {p.pid for p in session.running()}
    nothing_ends.undo()
    await tickets.cancel(ports, key, actor=owner)


async def test_a_run_whose_stop_failed_can_also_go_on(
    ports: Ports, owner: Actor, nothing_ends: pytest.MonkeyPatch
) -> None:
    key, session = await working(ports, owner)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
    with pytest.raises(Unavailable):
        await tickets.cancel(ports, key, actor=owner)
    nothing_ends.undo()
    run = await tickets.current_run(ports, key)
    await runs.resume(ports, run, actor=owner)
    await until(ports, key, lambda found: found.hold == "none")
    await tickets.cancel(ports, key, actor=owner)
    assert [s for s in session_folders(ports) if FolderSession(s, "").running()] == []


def session_folders(ports: Ports) -> list[Path]:
    return [path.parent for path in (ports.settings.home / "sessions").glob("*/spec.json")]


async def test_a_start_ends_what_nobody_owns_and_leaves_alone_what_somebody_does(
    ports: Ports, house: app.House, owner: Actor
) -> None:
    key, session = await working(ports, owner)
    assert isinstance(ports.sessions, FolderSessions)
    await app.sweep(ports.store, ports.sessions, ports.settings.home)
    assert session.live()
    await ports.store.write(lambda tx: tx.run(sa.delete(t.sessions)))
    await app.sweep(ports.store, ports.sessions, ports.settings.home)
    assert (session.live(), session.running()) == (False, set())
    await tickets.cancel(ports, key, actor=owner)


async def test_a_system_that_cannot_follow_processes_is_refused_at_the_start(
    house: app.House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(procs, "_PROC", tmp_path)
    with pytest.raises(Unavailable, match="this system has no /proc"):
        house.open()
