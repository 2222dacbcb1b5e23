"""kill -9 of the real daemon is an ordinary event: at each point of a short SOP, and five times in one demo run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from beadmill.demo.material import Place
from tests.deliver.daemon_world import DaemonWorld, until

Git = Callable[..., str]
POINTS = [
    "claimed",
    "commit@6",
    "after greet/where",
    "after greet/run:opened",
    "session.spawned",
    "after greet/run:attached",
    "after greet:park",
    "after review:finish",
]
NEXT_TO_THEM = [
    "committed@6",
    "before greet/where",
    "before greet/run",
    "session.spec",
    "after greet/run",
    "after greet:finish",
    "after review:park",
]
CODING = "while a bead is coded"
MOMENTS = {
    "while seats draft questions": "select count(*) from sessions where template = 'interview_draft'",
    "while the interview waits": "select count(*) from gates where kind = 'interview' and state = 'open'",
    CODING: "select count(*) from sessions where template = 'coding' and ended is null",
    "while Beadmill runs the final test": "select count(*) from sessions where visit_id like '%verify.1'",
    "when the change is open": "select count(*) from changes",
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[DaemonWorld]:
    made = await DaemonWorld.make(tmp_path / "world")
    yield made
    if not made.dead:
        made.kill()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The place of a world with a ticket that is not started, and a copy of all its files: paths are stored in it."""
    root = tmp_path_factory.mktemp("killed")

    async def write() -> None:
        world = await DaemonWorld.make(root / "world")
        await world.start()
        await world.prepare(sop="hello")
        world.kill()

    asyncio.run(write())
    shutil.copytree(root / "world", root / "copy", symlinks=True)
    return root / "world", root / "copy"


@pytest.fixture
def short(written: tuple[Path, Path]) -> Iterator[DaemonWorld]:
    """As it was written, whatever the case before has left."""
    at, copy = written
    shutil.rmtree(at)
    shutil.copytree(copy, at, symlinks=True)
    made = DaemonWorld(Place(at))
    yield made
    if not made.dead:
        made.kill()


@pytest.mark.parametrize("point", [*POINTS, *(pytest.param(name, marks=pytest.mark.long) for name in NEXT_TO_THEM)])
async def test_a_short_sop_ends_the_same_when_the_daemon_is_killed_at(point: str, short: DaemonWorld) -> None:
    world = short
    await world.start(crash=point)
    await world.go_on(lambda: False)
    died = world.dead
    if died:
        await world.start()
        await world.go_on(lambda: False)

    assert died, f"the daemon never reached {point}"
    assert world.rows("select state from runs") == [("completed",)]
    assert world.tokens() == ["DEMO-1-r1/greet.1/run#0/1"]
    assert world.rows("select node, n, state from visits order by created") == [
        ("greet", 1, "done"),
        ("review", 1, "done"),
    ]
    assert world.rows("select choice from decisions") == [("approved",)]


@pytest.mark.deliver
@pytest.mark.timeout(400)
async def test_c39_a_run_whose_daemon_dies_five_times_and_a_runner_once_is_merged_once_with_nothing_repeated(
    world: DaemonWorld, git: Git
) -> None:
    world.slow_down("coding", seconds=6)
    await world.start()
    await world.prepare(sop="deliver", council={"seats": [f"scripted/{m}" for m in ("alpha", "beta", "gamma")]})
    for moment, query in MOMENTS.items():
        await world.reach(query)
        if moment == CODING:
            await kill_runner(world)
        world.kill()
        await world.start()
    await world.go_on(lambda: False)

    assert world.rows("select state from runs") == [("completed",)]
    assert repeated(world) == {}
    assert orphans(world) == []
    assert len(git(world.place.origin, "log", "--merges", "--format=%H", "main").splitlines()) == 1
    assert world.rows("select bead, n, state from bead_attempts order by started")[:2] == [
        ("temperature-scales", 1, "failed"),  # the killed one
        ("temperature-scales", 2, "done"),
    ]


async def kill_runner(world: DaemonWorld) -> None:
    """The runner of the coding session alone; its agent must not go on behind our back."""
    token = world.one("select token from sessions where template = 'coding'")
    sessions = world.sessions()
    await until(lambda: (found := sessions.find(token)) is not None and (found.folder / "owner.json").exists())
    session = sessions.find(token)
    assert session is not None
    owner = json.loads((session.folder / "owner.json").read_text())
    os.kill(owner["pid"], signal.SIGKILL)


def orphans(world: DaemonWorld) -> list[str]:
    return [session.token for session in world.sessions().all() if session.running()]


def repeated(world: DaemonWorld) -> dict[str, int]:
    """Turns and batches that ran more than once: the same visit, name and round with another turn number."""
    names = Counter(token.rpartition("/")[0] for token in world.tokens())
    return {name: n for name, n in names.items() if n > 1}
