"""Every way to start a runner does the same: one conformance suite, and what only the fork server can get wrong."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from beadmill.domain.ended import Ran
from beadmill.processes import procs
from beadmill.processes.environment import MARK_VARIABLE
from beadmill.processes.folder import read_json
from beadmill.processes.forks import SERVE, Forks
from beadmill.processes.session import FolderSession
from beadmill.processes.starting import PIPE, SOURCE, Programs, Starter, Starting
from tests.processes.session_world import World, until

FAILING = "import sys; from beadmill.processes import runner; runner.main = lambda: sys.exit('no luck today'); "

DYING = "from beadmill.processes.forkserver import Server; Server._fork = lambda *_: sys.exit()"


@pytest.fixture(params=[Programs, Forks])
def starter(request: pytest.FixtureRequest) -> Starter:
    made: Starter = request.param()
    return made


@pytest.fixture
def started(world: World, starter: Starter) -> World:
    world.starter = starter
    world.sessions = world.open()
    return world


async def said(world: World, script: str, token: str = "t") -> str:
    ran = await world.run(token, world.shell(script))
    assert isinstance(ran, Ran)
    return ran.results[0].output.strip()


@contextlib.asynccontextmanager
async def sleeping(world: World) -> AsyncIterator[FolderSession]:
    session = await world.start("sleeping", world.shell("sleep 300"))
    await until((session.folder / "owner.json").exists)
    yield session
    await session.stop("the test is over")


def environment(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


def runner_of(session: FolderSession) -> int:
    pid = read_json(session.folder / "owner.json")["pid"]
    assert isinstance(pid, int)
    return pid


class TestEveryWay:
    async def test_the_runner_has_the_environment_of_its_own_session_only(
        self, started: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LC_FIRST", "yes")
        assert await said(started, "echo $LC_FIRST") == "yes"
        monkeypatch.delenv("LC_FIRST")
        assert await said(started, "echo ${LC_FIRST-gone}", "u") == "gone"

    async def test_a_sweep_finds_the_runner_by_its_mark(self, started: World) -> None:
        async with sleeping(started) as session:
            assert runner_of(session) in {p.pid for p in procs.carrying({MARK_VARIABLE: session.mark}, procs.table())}
            assert f"{MARK_VARIABLE}={session.mark}" in environment(runner_of(session))

    async def test_the_runner_leads_a_process_session_of_its_own(self, started: World) -> None:
        async with sleeping(started) as session:
            assert os.getsid(runner_of(session)) == runner_of(session)

    async def test_secrets_of_the_daemon_are_masked_in_what_the_runner_keeps(
        self, started: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("beadmill.redact.known", lambda: ["a-secret-of-the-daemon"])
        assert "a-secret-of-the-daemon" not in await said(started, "echo a-secret-of-the-daemon")

    async def test_an_environment_beyond_what_a_pipe_takes_arrives_whole(
        self, started: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LC_LONG", "x" * PIPE)
        assert await said(started, "echo ${#LC_LONG}") == str(PIPE)

    async def test_the_exit_code_of_a_runner_that_ended_at_once_is_told(self, starter: Starter, tmp_path: Path) -> None:
        (tmp_path / "started").touch()
        (tmp_path / "lock").touch()
        assert await code(starter.start(tmp_path, {"PATH": os.environ["PATH"]}, (), site=False)) == 0


async def code(starting: Starting) -> int | None:
    await until(lambda: starting.code() is not None)
    return starting.code()


class TestForkServer:
    async def test_a_killed_one_is_replaced_and_takes_no_runner_along(self, world: World) -> None:
        world.starter = forks = Forks()
        world.sessions = world.open()
        async with sleeping(world) as first:
            os.kill(server_of(forks), signal.SIGKILL)
            assert await said(world, "echo second") == "second"
            assert await said(world, "echo third", "u") == "third"
            assert first.live()

    async def test_one_that_dies_with_the_request_in_hand_costs_no_start(self, world: World) -> None:
        world.starter = Forks(SERVE.replace("main()", f"{DYING}; main()"))
        world.sessions = world.open()
        assert await said(world, "echo there") == "there"

    def test_it_ends_with_the_daemon_that_started_it(self) -> None:
        program = "from beadmill.processes.forks import Forks; f = Forks(); f._ready(); print(f._server._pid)"
        done = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, check=True
        )
        asyncio.run(until(lambda: procs.look(int(done.stdout)) is None))

    async def test_what_its_child_raises_is_in_the_log_and_an_exit_code(self, tmp_path: Path) -> None:
        forks = Forks(
            SERVE.replace("from beadmill.processes.forkserver", FAILING + "from beadmill.processes.forkserver")
        )
        assert await code(forks.start(tmp_path, {}, (), site=False)) == 1
        assert "no luck today" in (tmp_path / "runner.log").read_text()


def server_of(forks: Forks) -> int:
    server = forks._server
    assert server is not None
    return server._pid
