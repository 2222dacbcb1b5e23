"""Processes that agents leave behind, freeze or kill: all found, all ended, and nothing else touched."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.domain.ended import Failed, Lost, Ran, Replied, Stopped, Why
from beadmill.errors import Unavailable
from beadmill.processes import procs
from beadmill.processes.folder import State, state
from tests.processes.bad_agents import FOREVER, RESULT, STARTED
from tests.processes.bad_world import BadWorld, brief, ended, runner_of, warnings
from tests.processes.session_world import until

SECOND = timedelta(seconds=1)

# Each says that it is up by a file, and would stay for ever.
IGNORES_TERM = "(trap '' TERM; touch up; while :; do sleep 300; done) & "
LEAVES_THE_GROUP = "setsid sh -c \"trap '' TERM HUP; touch up; while :; do sleep 300; done\" & "
DOUBLE_FORK = "(setsid sh -c '(touch up; exec sleep 300) & exit 0' &) ; "
FORGETS_ITS_MARK = "(env -i /usr/bin/setsid /bin/sh -c '(touch up; exec /bin/sleep 300) & exit 0' &) ; "
HOLDS_THE_PIPE = "(setsid sh -c 'touch up; while :; do echo more; sleep 0.2; done' &) ; "
WAIT = "while [ ! -e up ]; do sleep 0.01; done; "
SURVIVORS = {
    "ignores TERM": IGNORES_TERM,
    "leaves the group": LEAVES_THE_GROUP,
    "double fork": DOUBLE_FORK,
    "forgets its mark": FORGETS_ITS_MARK,
    "holds the pipe": HOLDS_THE_PIPE,
}


@pytest.mark.parametrize("leave", SURVIVORS.values(), ids=SURVIVORS)
async def test_what_an_agent_leaves_behind_ends_with_its_session(bad: BadWorld, leave: str) -> None:
    end, _ = await bad.turn(STARTED + leave + WAIT + RESULT + "exit 0")
    assert brief(end) == "done"


@pytest.mark.parametrize("leave", SURVIVORS.values(), ids=SURVIVORS)
async def test_a_stop_ends_them_too(bad: BadWorld, leave: str) -> None:
    session = await bad.begin(STARTED + leave + WAIT + FOREVER)
    await until((bad.tree / "up").exists)
    await session.stop("canceled")
    assert (type(session.ended()), session.running()) == (Stopped, set())


async def test_c46_fifteen_sessions_leave_no_helpers(bad: BadWorld) -> None:
    sessions = [await bad.begin(DOUBLE_FORK + RESULT, token=f"t{n}") for n in range(15)]
    ends = await asyncio.gather(*(s.wait() for s in sessions))
    assert [type(end) for end in ends] == [Replied] * 15
    await until(lambda: [p for n in range(15) for p in bad.running(f"t{n}")] == [])


# --- servers --------------------------------------------------------------------------------------------------------
SERVER = """
import os, socket, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
s = socket.create_server(("127.0.0.1", 0))
open("port.new", "w").write(str(s.getsockname()[1]))
os.rename("port.new", "up")
while True: s.accept()
"""


def free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


async def test_c45_a_server_left_listening_is_named_and_its_port_is_free_at_the_end(bad: BadWorld) -> None:
    (bad.tree / "server.py").write_text(SERVER)
    session = await bad.begin(STARTED + "python3 server.py; " + WAIT + RESULT)
    end, events = await ended(session)
    port = int((bad.tree / "up").read_text())
    (said,) = warnings(events)
    assert (brief(end), free(port), said.startswith("python3 (")) == ("done", True, True)
    assert said.endswith(f") still listened on {port}: it is ended")


async def test_a_server_of_a_stopped_agent_is_named_too(bad: BadWorld) -> None:
    (bad.tree / "server.py").write_text(SERVER)
    session = await bad.begin(STARTED + "python3 server.py; " + WAIT + FOREVER)
    await until((bad.tree / "up").exists)
    await session.stop("canceled")
    port = int((bad.tree / "up").read_text())
    _, events = await ended(session)
    assert free(port)
    assert [f"listened on {port}" in said for said in warnings(events)] == [True]


async def test_a_server_left_by_a_batch_is_named_and_gone(bad: BadWorld) -> None:
    (bad.tree / "server.py").write_text(SERVER)
    session = await bad.start("b", bad.shell("python3 server.py; " + WAIT))
    events = [event async for _, event in session.events()]
    port = int((bad.tree / "up").read_text())
    assert free(port)
    assert [f"listened on {port}" in said for said in warnings(events)] == [True]


async def test_a_server_that_talks_on_and_on_does_not_hold_up_the_next_command(bad: BadWorld) -> None:
    ran = await bad.run("b", bad.shell("(setsid yes 'GET /' &) ; echo started", "echo next"))
    assert isinstance(ran, Ran)
    assert [r.exit for r in ran.results] == [0, 0]
    assert ran.results[1].output == "next\n"


# --- frozen ---------------------------------------------------------------------------------------------------------
FREEZES = STARTED + "kill -STOP $$; " + RESULT
FREEZES_ALL = STARTED + "(sh -c 'touch up; kill -STOP $$; sleep 300' &) ; " + WAIT + "kill -STOP $$"


@pytest.mark.parametrize("program", [FREEZES, FREEZES_ALL])
async def test_a_frozen_agent_is_idle_and_ends(bad: BadWorld, program: str) -> None:
    end, _ = await bad.turn(program, idle=SECOND)
    assert brief(end) == "idle"


async def test_a_stop_wakes_a_frozen_agent_so_that_it_can_tidy_up(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + "trap 'touch tidy; exit' TERM; echo $$ > pid; kill -STOP $$; sleep 300")
    await until(lambda: (bad.tree / "pid").exists() and frozen(int((bad.tree / "pid").read_text() or 0)))
    await session.stop("canceled")
    assert ((bad.tree / "tidy").exists(), session.running()) == (True, set())


async def test_an_agent_that_a_person_froze_for_a_while_goes_on(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; " + RESULT)
    agent = await until(lambda: (bad.tree / "pid").exists() and procs.look(int((bad.tree / "pid").read_text() or 0)))
    procs.send(agent, signal.SIGSTOP)
    await until(lambda: frozen(agent.pid))
    (bad.tree / "go").touch()
    procs.send(agent, signal.SIGCONT)
    end, _ = await ended(session)
    assert brief(end) == "done"


async def test_time_in_which_the_runner_was_frozen_is_neither_work_nor_silence(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + "touch up; while [ ! -e go ]; do sleep 0.02; done; " + RESULT, idle=4 * SECOND)
    await until((bad.tree / "up").exists)
    runner = await runner_of(session)
    procs.send(runner, signal.SIGSTOP)
    since = time.monotonic()
    await until(lambda: time.monotonic() > since + 6)
    procs.send(runner, signal.SIGCONT)
    (bad.tree / "go").touch()
    end, _ = await ended(session)
    assert isinstance(end, Replied)
    assert end.worked < 3 * SECOND


async def test_a_frozen_runner_is_woken(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + "kill -STOP $PPID; touch up; " + RESULT)
    await until((bad.tree / "up").exists)
    runner = await runner_of(session)
    await until(lambda: frozen(runner.pid))
    assert [session.wake(), session.wake()] == [True, False]
    end, _ = await ended(session)
    assert brief(end) == "done"


def frozen(pid: int) -> bool:
    found = procs.look(pid)
    return found is not None and found.frozen


# --- storms ---------------------------------------------------------------------------------------------------------
COMETS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
last = time.monotonic() + 40
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < last:
            open("beat", "w").close()
            if os.fork(): os._exit(0)
        os._exit(0)
while not os.path.exists("beat"): pass
print('{"type": "result", "text": "done"}', flush=True)
if STAY: time.sleep(300)
"""
SPREAD = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"type": "start", "conversation": "c"}', flush=True)
for n in range(2000):
    if n == 300: open("up", "w").close()
    if os.fork() == 0:
        time.sleep(100)
        os._exit(0)
    time.sleep(0.003)
time.sleep(300)
"""


@pytest.mark.parametrize("stay", [True, False])
async def test_processes_that_fork_and_vanish_all_the_time_are_caught(bad: BadWorld, stay: bool) -> None:
    session = await bad.begin(python=COMETS.replace("STAY", str(stay)), grace=0.5)
    end, events = await ended(session)
    beat, since = bad.tree / "beat", time.monotonic()
    beat.unlink()
    await until(lambda: time.monotonic() > since + 0.5)
    assert (brief(end), beat.exists()) == ("done", False)
    assert [said for said in warnings(events) if "could not be ended" in said] == []


async def test_a_storm_of_forks_gets_no_time_to_grow(bad: BadWorld) -> None:
    session = await bad.begin(python=SPREAD)
    await until((bad.tree / "up").exists)
    begun = time.monotonic()
    await session.stop("canceled")
    assert session.running() == set()
    assert time.monotonic() - begun < 20


# --- the runner -----------------------------------------------------------------------------------------------------
async def test_an_agent_that_kills_its_runner_is_lost_and_swept(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + LEAVES_THE_GROUP + WAIT + "kill -9 $PPID; " + FOREVER)
    assert await session.wait() == Lost()
    await session.stop("its runner is gone")
    assert session.running() == set()


async def test_an_agent_that_terminates_its_runner_ends_with_it(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + LEAVES_THE_GROUP + WAIT + "kill $PPID; " + FOREVER)
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (Why.LOST, True)


async def test_an_agent_that_deletes_its_session_folder_is_swept_by_its_token(bad: BadWorld) -> None:
    shell = STARTED + LEAVES_THE_GROUP + WAIT + f"rm -rf {bad.root}; touch deleted; " + FOREVER
    session = await bad.begin(shell)
    mark = session.mark
    await until((bad.tree / "deleted").exists)
    assert (bad.sessions.find("t"), procs.of_mark(mark) != set()) == (None, True)
    await bad.sessions.sweep_gone("t")
    assert procs.of_mark(mark) == set()


async def test_a_runner_whose_folder_is_gone_ends_and_takes_everything_along(bad: BadWorld) -> None:
    session = await bad.begin(STARTED + LEAVES_THE_GROUP + WAIT + f"rm -rf {bad.root}; " + RESULT)
    mark = session.mark
    await until(lambda: procs.of_mark(mark) == set())
    assert state(session.folder) is State.NEW


async def test_a_workspace_that_an_agent_removed_costs_no_result(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + LEAVES_THE_GROUP + WAIT + f"rm -rf {bad.workspace}; " + RESULT)
    assert brief(end) == "done"


async def test_a_home_that_lies_elsewhere_is_never_swept(bad: BadWorld, tmp_path: Path) -> None:
    session = await bad.begin(STARTED + "touch up; " + FOREVER)
    await until((bad.tree / "up").exists)
    bad.root = tmp_path / "copied" / "sessions"
    await bad.open().sweep_gone("t")
    assert session.live()
    await session.stop("the test ends")


# --- silence --------------------------------------------------------------------------------------------------------
async def test_c42_a_silent_agent_whose_processes_work_is_not_idle(bad: BadWorld) -> None:
    busy = "touch up; while [ ! -e go ]; do :; done; "
    session = await bad.begin(STARTED + busy + RESULT, idle=1.5 * SECOND)
    since = time.monotonic()
    await until(lambda: time.monotonic() > since + 3)
    (bad.tree / "go").touch()
    end, _ = await ended(session)
    assert brief(end) == "done"


async def test_a_silent_agent_that_spins_for_ever_meets_its_budget(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + "while :; do :; done", idle=SECOND / 2, budget=2 * SECOND)
    assert brief(end) == "budget"


def test_a_system_without_proc_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(procs, "_PROC", tmp_path)
    with pytest.raises(Unavailable, match="this system has no /proc"):
        procs.require()
