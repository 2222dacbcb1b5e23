"""Servers are sessions that others share: started once, kept while used, ended when not, and never in the way."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.domain.ended import Failed, Lapsed, Lost, Replied, Stopped, Why
from beadmill.domain.values import Access
from beadmill.errors import Unavailable
from beadmill.processes.servers import is_server
from beadmill.processes.spec import Policy
from tests.processes.session_world import until
from tests.processes.shared_world import SharedWorld, kill_runner

FOREVER = "touch up; sleep 300; sleep 300"


async def test_sessions_of_one_run_and_access_share_a_server(shared: SharedWorld) -> None:
    pids = await asyncio.gather(*(shared.pid(f"run/code.1/a#0/{n}") for n in range(1, 5)))
    other = await shared.pid("run/code.1/b#0/1", access=Access.READ)
    assert (len(set(pids)), other in pids, len(shared.sessions.servers.live())) == (1, False, 2)


async def test_two_daemons_that_race_start_one_server(shared: SharedWorld) -> None:
    shared.serves(boot=0.3)
    other = shared.open()
    tasks = [shared.begin("true", "run/a.1/x#0/1"), other.attach("run/a.1/y#0/1", shared.task("true"), shared.box)]
    ends = [await session.wait() for session in await asyncio.gather(*tasks)]
    assert len({end.text for end in ends if not isinstance(end, Lost)}) == 1  # type: ignore[union-attr]


async def test_a_server_ends_when_nobody_used_it_for_a_while_and_the_next_session_gets_another(
    shared: SharedWorld,
) -> None:
    shared.serves(idle=0.4)
    first = await shared.pid()
    server = shared.server
    assert isinstance(await server.wait(), Stopped)
    assert server.running() == set()
    assert await shared.pid("run/code.1/b#0/1") != first


async def test_a_server_in_use_outlives_its_idle_time(shared: SharedWorld) -> None:
    shared.serves(idle=0.3)
    assert isinstance(await (await shared.begin("sleep 1.5")).wait(), Replied)


async def test_stop_of_a_session_ends_its_processes_and_leaves_the_server(shared: SharedWorld) -> None:
    session = await shared.begin(f"(setsid sh -c '{FOREVER}' &) ; {FOREVER}")
    await until((shared.tree / "up").exists)
    await session.stop("canceled")
    assert isinstance(session.ended(), Stopped)
    assert session.running() == set()
    assert shared.server.live()


async def test_a_spent_budget_ends_the_processes_on_the_server(shared: SharedWorld) -> None:
    session = await shared.begin(FOREVER, budget=timedelta(seconds=1))
    assert isinstance(await session.wait(), Lapsed)
    assert session.running() == set()


async def test_what_a_killed_session_left_running_is_ended_by_the_server(shared: SharedWorld) -> None:
    session = await shared.begin(f"{FOREVER} # no trap")
    await until((shared.tree / "up").exists)
    kill_runner(session)
    assert await session.wait() == Lost()
    await until(lambda: not list((shared.server.folder / "users").iterdir()))
    await session.stop("lost")
    assert session.running() == set()


async def test_a_server_that_cannot_let_go_of_a_killed_sessions_work_is_ended(
    shared: SharedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.processes.services.LET_GO", 0.5)
    session = await shared.begin(FOREVER)
    await until((shared.tree / "up").exists)
    server = shared.server
    for proc in server.running():
        if proc.command.startswith("python") and "shared_server" in _command(proc.pid):
            os.kill(proc.pid, signal.SIGSTOP)
    kill_runner(session)
    await session.wait()
    await session.stop("lost")
    assert (server.live(), server.running(), session.running()) == (False, set(), set())


async def test_a_server_killed_in_the_middle_of_a_turn_fails_it_and_leaves_nothing(shared: SharedWorld) -> None:
    session = await shared.begin(FOREVER)
    await until((shared.tree / "up").exists)
    server = shared.server
    for proc in server.running():
        if "shared_server" in _command(proc.pid):
            os.kill(proc.pid, signal.SIGKILL)
    end = await session.wait()
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (Why.TRANSPORT, True)
    assert session.running() == set()
    await until(lambda: not server.running())


async def test_a_killed_runner_of_a_server_is_swept_and_the_next_session_gets_another(shared: SharedWorld) -> None:
    first = await shared.pid()
    lost = shared.server
    kill_runner(lost)
    await until(lambda: not lost.live())
    assert await shared.pid("run/code.1/b#0/1") != first
    assert lost.running() == set()


async def test_a_turn_whose_server_went_before_it_was_asked_never_began(shared: SharedWorld) -> None:
    shared.serves(boot=30)
    session = await shared.begin("true")
    await until(shared.server.live)
    await shared.server.stop("for the test")
    end = await session.wait()
    assert isinstance(end, Stopped)
    assert not end.worked


async def test_a_server_that_cannot_start_says_why_to_its_sessions(shared: SharedWorld) -> None:
    shared.serves(missing=True)
    end = await (await shared.begin("true")).wait()
    assert isinstance(end, Failed)
    assert (end.why, end.message) == (Why.MISSING, "there is no such server")


async def test_a_server_is_not_started_where_no_session_could_reach_it(shared: SharedWorld) -> None:
    shared.box = replace(shared.box, policy=Policy(network="allow-list", hosts=("example.org",)))
    with pytest.raises(Unavailable) as caught:
        await shared.begin("true")
    assert (caught.value.code, shared.sessions.servers.live()) == ("SANDBOX_POLICY", [])


async def test_a_restarted_daemon_keeps_servers_and_sweeps_those_that_were_lost(shared: SharedWorld) -> None:
    first = await shared.pid()
    await shared.open().sweep(())
    assert await shared.pid("run/code.1/b#0/1") == first
    lost = shared.server
    kill_runner(lost)
    await until(lambda: not lost.live())
    assert [t for t in await shared.open().sweep(("run/code.1/b#0/1",)) if is_server(t)] == [lost.token]
    assert lost.running() == set()


async def test_the_servers_of_a_run_are_closed_by_its_name(shared: SharedWorld) -> None:
    await shared.pid("one/code.1/a#0/1")
    await shared.pid("two/code.1/a#0/1")
    assert shared.sessions.servers.runs() == {"one", "two"}
    await shared.sessions.servers.close("one", "over")
    assert shared.sessions.servers.runs() == {"two"}


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
