"""A home of an earlier release, with a run waiting at each kind of gate and one at work, under this release."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from beadmill.demo import material
from beadmill.processes.session import FolderSession
from beadmill.settings import RunSettings
from beadmill.store import migrate
from tests.deliver.daemon_world import DaemonWorld, until
from tests.survival import homes, slow

ANSWERS: dict[str, dict[str, Any]] = {
    "approve": {"choice": "approve"},
    "question": {"choice": "answer", "payload": {"answer": "Kelvin, too."}},
    "blocked": {"choice": "retry"},
    "merge": {"choice": "merge"},
    "budget": {"choice": "raise", "payload": {"tokens": 10_000_000}},
}
OPEN = "select kind from gates where state = 'open' order by kind"
AT_WORK = "select token from sessions where ended is null"


@pytest.fixture
async def old(tmp_path: Path) -> AsyncIterator[DaemonWorld]:
    """The home as the release of schema 0001 left it; no daemon yet."""
    homes.unpack(homes.HOMES / "0001.tar.xz", tmp_path / "world")
    world = DaemonWorld(material.Place(tmp_path / "world"))
    yield world
    if world.process is not None and not world.dead:
        world.kill()
    for session in world.sessions().all():
        if session.live():
            await session.stop("the test is over")


async def still_at_work(world: DaemonWorld) -> FolderSession:
    """The old daemon's command goes on: its runner is started from the folder, which says all it needs."""
    session = world.sessions().find(world.one(AT_WORK))
    assert session is not None
    for name in ("started", "owner.json", "events.jsonl", "lock"):
        (session.folder / name).unlink()
    nothing: Any = None  # the folder has its spec, and the first wins
    await world.sessions().attach(session.token, nothing, nothing)
    await until(lambda: len(session.running()) > 1)
    return session


async def go_on(world: DaemonWorld, kind: str) -> None:
    """Answers the gate of this kind; returns when its run has done something behind the answer."""
    gate, run = world.rows(f"select id, run_id from gates where kind = '{kind}' and state = 'open'")[0]
    async with world.api() as api:
        if kind == "interview":
            view = await api.call("interviews.show", key=run.removesuffix("-r1"))
            said = {q["id"]: {"skipped": True, "skip_reason": "as you like"} for q in view["questions"]}
            etag = view["gate"]["etag"]
            await api.call(
                "interviews.answer", key=run.removesuffix("-r1"), body={"answers": said}, etag=etag, once=gate
            )
        else:
            found = next(g for g in (await api.call("gates.listing"))["items"] if g["id"] == gate)
            await api.call("gates.answer", gate=gate, body=ANSWERS[kind], etag=found["etag"], once=gate)
    answered = f"(select max(seq) from events where run_id = '{run}' and kind = 'gate.answered')"
    acts = "('step.done', 'visit.done', 'session.started', 'turn.ended')"
    done = f"select count(*) from events where run_id = '{run}' and kind in {acts} and seq > {answered}"
    await until(lambda: bool(world.one(done)), seconds=90)


@pytest.mark.timeout(300)
async def test_every_run_of_the_older_release_waits_where_it_waited_and_goes_on_when_answered(old: DaemonWorld) -> None:
    before = old.rows("select id, kind, etag from gates where state = 'open' order by id")
    session = await still_at_work(old)
    await old.start()
    assert old.rows("select version_num from alembic_version") == [(migrate.HEAD,)]
    assert old.rows("select id, kind, etag from gates where state = 'open' order by id") == before
    assert sorted(kind for _, kind, _ in before) == sorted([*ANSWERS, "interview"])
    assert (session.live(), old.one(AT_WORK)) == (True, session.token)
    slow.go(old)
    await until(lambda: old.one("select state from runs where sop = 'slow'") == "completed")
    assert slow.ran(old) == ["ran"]
    for kind in ("interview", *ANSWERS):
        await go_on(old, kind)
    internal = "select title from gates where json_extract(detail, '$.code') = 'INTERNAL'"
    assert old.rows(internal) == []


async def test_a_command_whose_runner_died_with_the_older_daemon_runs_once_more(old: DaemonWorld) -> None:
    lost = old.one(AT_WORK)
    slow.go(old)
    await old.start()
    await until(lambda: old.one("select state from runs where sop = 'slow'") == "completed")
    tokens = old.rows(
        "select token, json_extract(end, '$.type') from sessions where visit_id like '%/wait.1' order by 1"
    )
    assert (tokens[0], len(tokens), slow.ran(old)) == ((lost, "Lost"), 2, ["ran"])


async def test_the_copy_made_before_the_upgrade_is_the_older_home_to_go_back_to(old: DaemonWorld) -> None:
    before = old.rows("select count(*), max(seq) from events")
    await old.start()
    old.terminate()
    (copy,) = (old.place.home / "backups").iterdir()
    assert copy.name.startswith("beadmill-0001-")
    with closing(sqlite3.connect(copy)) as conn:
        assert conn.execute("select count(*), max(seq) from events").fetchall() == before
        assert conn.execute("select version_num from alembic_version").fetchall() == [("0001",)]


async def test_a_backup_that_finds_no_room_stops_the_upgrade_before_anything_changes(
    old: DaemonWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beadmill.errors import Unavailable
    from beadmill.store.db import Store

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    monkeypatch.setattr(shutil, "copy2", full)
    store = Store(f"sqlite:///{old.place.home / 'beadmill.db'}")
    with pytest.raises(Unavailable, match="No space left") as refused:
        store.migrate(old.place.home / "backups")
    store.close()
    assert (refused.value.code, refused.value.kept) == ("BACKUP_FAILED", "the database was not touched")
    assert old.rows("select version_num from alembic_version") == [("0001",)]
    assert list((old.place.home / "backups").iterdir()) == []


def test_settings_that_an_older_or_newer_release_froze_are_thawed_without_what_is_unknown() -> None:
    frozen = RunSettings().model_dump(mode="json")
    frozen |= {"gone": 1, "build": {**frozen["build"], "gone": {"deep": 2}, "attempts": 7}}
    thawed = RunSettings.thawed(frozen)
    assert thawed == RunSettings().overlaid({"build": {"attempts": 7}})
