"""SIGTERM while work goes on: of the daemon it is a detaching, of a runner a stop that is made good."""

from __future__ import annotations

import json
import os
import signal

from beadmill.processes.session import FolderSession
from tests.deliver.daemon_world import DaemonWorld, until
from tests.survival import slow

STARTED = "select token from sessions"


async def at_work(world: DaemonWorld) -> FolderSession:
    await world.start()
    slow.publish(world)
    await world.prepare(sop="slow", sandbox="host")  # in a box the file that it waits for would be hidden
    await world.reach(STARTED)
    token = world.one(STARTED)
    await until(lambda: world.sessions().find(token) is not None)  # the row comes before the folder
    session = world.sessions().find(token)
    assert session is not None
    await until(lambda: len(session.running()) > 1)
    return session


async def test_a_daemon_told_to_end_leaves_the_work_to_its_runner_and_the_next_one_meets_it_again(
    world: DaemonWorld,
) -> None:
    session = await at_work(world)
    world.terminate()
    assert world.process is not None
    assert (world.process.returncode, session.live(), world.one("select state from visits")) == (0, True, "parked")
    await world.start()
    slow.go(world)
    await world.go_on(lambda: False)
    assert (world.one("select state from runs"), slow.ran(world)) == ("completed", ["ran"])
    assert world.tokens() == [session.token]


async def test_work_that_ends_while_no_daemon_runs_is_booked_by_the_next_one(world: DaemonWorld) -> None:
    session = await at_work(world)
    world.terminate()
    slow.go(world)
    await session.wait()
    await world.start()
    await world.go_on(lambda: False)
    assert (world.one("select state from runs"), slow.ran(world)) == ("completed", ["ran"])
    assert world.tokens() == [session.token]


async def test_a_runner_told_to_end_takes_its_command_along_and_the_command_runs_once_more(world: DaemonWorld) -> None:
    session = await at_work(world)
    os.kill(json.loads((session.folder / "owner.json").read_text())["pid"], signal.SIGTERM)
    await until(lambda: session.running() == set())
    slow.go(world)
    await world.go_on(lambda: False)
    assert (world.one("select state from runs"), slow.ran(world)) == ("completed", ["ran"])
    assert world.tokens() == [session.token, session.token.removesuffix("1") + "2"]
