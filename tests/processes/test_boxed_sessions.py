"""The real runner with bubblewrap and with containers: what its box adds, and what must be as without one."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from beadmill.domain.ended import Lost, Ran, Replied
from beadmill.domain.values import Access
from beadmill.processes.folder import read_json
from beadmill.processes.spec import AgentTask, Batch, Policy, Stop
from tests.processes.session_world import World, until

# Deaf to TERM, in sessions of their own, orphaned: what agents leave behind.
STUBBORN = (
    "trap '' TERM; (trap '' TERM; setsid sh -c 'while :; do date >>beat; sleep 0.02; done' &) ; touch up; sleep 300"
)
BOMB = "for i in $(seq 300); do sleep 300 & done; touch up; while :; do (setsid sleep 0.1 &); done"


@pytest.fixture(
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("container", marks=pytest.mark.container),
    ]
)
def boxed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, sandbox=request.param)
    yield made
    made.close()


def kill_runner(world: World, token: str) -> None:
    session = world.sessions.find(token)
    assert session is not None
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)


@pytest.mark.parametrize("kind", ["batch", "agent"])
async def test_what_a_killed_runner_had_started_dies_with_it(boxed: World, kind: str) -> None:
    boxed.play({"shell": STUBBORN}, {"reply": "never"})
    work: AgentTask | Batch = boxed.task() if kind == "agent" else boxed.shell(STUBBORN)
    session = await boxed.start("t", work)
    await until((boxed.tree / "beat").exists)
    kill_runner(boxed, "t")
    assert await session.wait() == Lost()
    await until(lambda: boxed.running("t") == set(), seconds=5)  # nobody sweeps here: the kernel does


async def test_stop_ends_what_does_not_want_to(boxed: World) -> None:
    session = await boxed.start("t", boxed.shell(STUBBORN))
    await until((boxed.tree / "beat").exists)
    await session.stop("enough")
    assert boxed.running("t") == set()


async def test_a_fork_bomb_goes_with_its_box(boxed: World) -> None:
    session = await boxed.start("t", boxed.shell(BOMB))
    await until((boxed.tree / "up").exists)
    await session.stop("enough")
    assert boxed.running("t") == set()


async def test_a_stop_lets_a_command_clean_up(boxed: World) -> None:
    script = "trap 'echo clean >>ended; exit 3' TERM; touch up; while :; do sleep 0.05; done"
    session = await boxed.start("t", boxed.shell(script))
    await until((boxed.tree / "up").exists)
    await session.order(Stop())
    await session.wait()
    assert (boxed.tree / "ended").read_text() == "clean\n"


async def test_a_server_left_in_the_background_serves_later_commands_and_goes_with_the_batch(boxed: World) -> None:
    server = "(while [ ! -e stop ]; do touch alive; sleep 0.02; done; sleep 300) & echo started"
    ran = await boxed.run(
        "b", boxed.shell(server, "rm -f alive; while [ ! -e alive ]; do sleep 0.02; done; touch stop")
    )
    assert [(r.exit, r.output) for r in ran.results] == [(0, "started\n"), (0, "")]
    await until(lambda: boxed.running("b") == set())


async def test_commands_end_as_they_do_without_a_box(boxed: World) -> None:
    ran = await boxed.run("b", boxed.shell("exit 7", "kill -9 $$", "nowhere", "echo 5", stop=False))
    assert [r.exit for r in ran.results] == [7, 137, 127, 0]
    assert (ran.results[2].output.rpartition(": ")[2], ran.results[3].output) == ("not found\n", "5\n")


async def test_a_command_that_takes_too_long_is_ended_with_its_box(boxed: World) -> None:
    ran = await boxed.run("b", boxed.shell("echo here; exec sleep 300", budget=2))
    assert [(r.timed_out, r.output) for r in ran.results] == [(True, "here\n")]


async def test_what_cannot_be_boxed_runs_nothing(boxed: World) -> None:
    boxed.box = replace(boxed.box, policy=Policy(readable=(boxed.root.parent,)))
    ran = await boxed.run("t", boxed.shell("touch ran"))
    assert ([r.cannot_start for r in ran.results], (boxed.tree / "ran").exists()) == ([True], False)


async def test_commands_without_network_do_not_reach_the_host(boxed: World) -> None:
    boxed.box = replace(boxed.box, policy=Policy(network="off"))
    ran = await boxed.run("t", boxed.shell("tail -n +3 /proc/net/dev | cut -d: -f1; echo"))
    assert [line.strip() for line in ran.results[0].output.splitlines()] == ["lo", ""]


@pytest.mark.parametrize(
    ("access", "saw"), [(Access.NONE, False), (Access.READ, False), (Access.WRITE, True), (Access.ONLINE, True)]
)
async def test_the_access_of_a_task_is_held_whatever_the_cli_does(boxed: World, access: Access, *, saw: bool) -> None:
    boxed.play({"shell": f"touch {boxed.tree}/made; touch made; true"}, {"reply": "done"})
    end = await boxed.run("t", boxed.task(access=access))
    assert isinstance(end, Replied)
    assert (boxed.tree / "made").exists() is saw


async def test_the_daemon_s_secrets_are_not_inside(boxed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADMILL_TOKEN", "canary-token")
    (boxed.root.parent / "daemon.json").write_text("canary-token")
    script = f"env; cat {boxed.root.parent}/daemon.json {boxed.root}/*/*; cat /proc/*/environ | tr '\\0' '\\n'; true"
    ran = await boxed.run("t", boxed.shell(script))
    assert isinstance(ran, Ran)
    assert (ran.ok, "canary-token" in ran.results[0].output) == (True, False)


async def test_the_keys_of_the_login_are_not_inside(boxed: World) -> None:
    """As a program that asks the kernel for a key by its name: the runner has left the daemon's keyring."""
    calls = {"x86_64": (248, 249), "aarch64": (217, 218), "riscv64": (217, 218)}
    add, request = calls[os.uname().machine]
    assert ctypes.CDLL(None).syscall(add, b"user", b"beadmill-canary", b"secret", 6, -3) > 0
    ask = f'import ctypes; print(ctypes.CDLL(None).syscall({request}, b"user", b"beadmill-canary", None, 0))'
    ran = await boxed.run("t", boxed.shell(f"python3 -c '{ask}'"))
    assert ran.results[0].output == "-1\n"
