"""One scripted ``deliver`` is crashed in process after each durable name in turn; the end must be the same (rule 12)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from beadmill import crashpoints
from beadmill.app import House
from beadmill.crashpoints import Crashed
from beadmill.engine.dispatch import Dispatcher
from beadmill.processes.sessions import FolderSessions
from beadmill.store import tables
from tests.conftest import Git
from tests.deliver.deliver_world import World, run_state, through

SAME = re.compile(
    r"(?<=seat-)\d+|(?<=try-)\d+|(?<=pass-)\d+|(?<=build/)[\w-]+@[0-9a-f]+"
    r"|(interview|prd|beads)(?=/(draft|vote|refine|cover|quorum|put council))"
)


class EachNameOnce:
    """Crashes the process at the first pass of every name that lies behind an act; of seats, beads, tries and councils that
    do the same, at one: ``benchmarks/chaos.py --instances`` aims at each."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def __call__(self, name: str) -> None:
        call = SAME.sub("#", name)
        if name.startswith(("before ", "runner.")) or call in self.reached:
            return
        self.reached.append(call)
        raise Crashed(name)


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[EachNameOnce]:
    monkeypatch.setenv("BEADMILL_TESTING", "1")
    plan = EachNameOnce()
    crashpoints.on_reach = plan
    yield plan
    crashpoints.on_reach = None


async def live(house: House) -> bool:
    """Serves and answers until the run has ended (True) or the process crashed (False)."""
    assert isinstance(house.ports.engine, Dispatcher)
    serving = asyncio.ensure_future(house.ports.engine.serve())
    person = asyncio.ensure_future(through(house))
    await asyncio.wait([serving, person], return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, person):
        task.cancel()
    await asyncio.wait([serving, person])
    errors = [t.exception() for t in (serving, person) if not t.cancelled()]
    for error in errors:
        if error is not None and not _crash(error):
            raise error
    return run_state(house) != "active"


def _crash(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(Crashed)[1] is None
    return isinstance(error, Crashed)


@pytest.mark.deliver
@pytest.mark.timeout(600)
async def test_a_run_crashed_after_each_name_ends_as_if_nothing_had_happened(
    tmp_path: Path, crashes: EachNameOnce, git: Git
) -> None:
    world = await World.make(tmp_path / "world")
    house = world.house()
    house.store.migrate()
    crashpoints.on_reach = None
    await world.begin(house)
    crashpoints.on_reach = crashes
    while not await live(house):
        house.store.close()
        house = world.house()

    assert run_state(house) == "completed"
    assert repeated(house) == {}
    assert merges(world, git) == 1
    assert orphans(house) == []
    assert len(crashes.reached) > 150
    house.store.close()


def orphans(house: House) -> list[str]:
    """Sessions of which anything still runs."""
    sessions = FolderSessions(house.settings.home / "sessions", adapters={}, sandboxes={})
    return [session.token for session in sessions.all() if session.running()]


def tokens(house: House) -> list[str]:
    s = tables.sessions
    return house.store.read_now(lambda conn: [row[0] for row in conn.execute(sa.select(s.c.token))])


def repeated(house: House) -> dict[str, int]:
    """Agent turns and command batches that ran more than once: same visit, name and round, another turn number."""
    names = Counter(token.rpartition("/")[0] for token in tokens(house))
    return {name: n for name, n in names.items() if n > 1}


def merges(world: World, git: Git) -> int:
    return len(git(world.place.origin, "log", "--merges", "--format=%H", "main").splitlines())
