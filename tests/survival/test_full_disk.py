"""A full disk makes work wait, with words that say so. When there is room again, it goes on and nothing is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Replied
from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from beadmill.errors import BeadmillError, Unwritable
from beadmill.processes.spec import EventKind
from beadmill.store import blobs, tables
from beadmill.store.db import Store
from tests.deliver.daemon_world import DaemonWorld
from tests.engine.bench import Bench, one
from tests.processes.session_world import World, until
from tests.survival.disk import Disk

WAITS = "while [ ! -e go ]; do sleep 0.02; done"


async def test_a_session_that_ends_on_a_full_disk_keeps_its_reply_until_there_is_room(
    disk: Disk, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.root = disk.path / "sessions"
    world.sessions = world.open()
    words = [{"say": f"{n} " + "x" * 9_000} for n in range(20)]
    world.play({"shell": WAITS}, *words, {"reply": "done"})
    session = await world.start("t", world.task())
    await until(lambda: len(session.running()) > 1)
    disk.fill()
    (world.tree / "go").touch()
    await until(lambda: len(session.running()) == 1)
    assert (session.live(), session.ended()) == (True, None)
    disk.make_room()
    end = await session.wait()
    said = [e.data["text"] async for _, e in session.events() if e.kind is EventKind.TEXT]
    assert isinstance(end, Replied)
    assert (end.text, said[:-1]) == ("done", [step["say"] for step in words])
    world.close()


async def test_c86_c87_a_step_that_cannot_be_recorded_waits_and_blocks_nobody(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("beadmill.engine.dispatch.RESCAN", 0.05)
    store = Store(f"sqlite:///{disk.path / 'journal.db'}")
    store.migrate()
    bench = Bench(store, tmp_path)

    async def fills(text: str) -> str:
        if not bench.calls:
            disk.fill()
        return await bench.act(text)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.step("big", fills, "big" * 200_000)
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await until(lambda: "its disk is full" in caplog.text)
        disk.make_room()
        await bench.until(lambda: bench.run_state() == "completed")
    assert (len(bench.calls) > 1, bench.events("gate."), bench.events("step.done")) == (True, [], ["step.done"])
    store.close()


async def test_an_answer_on_a_full_disk_is_refused_with_what_to_do_and_works_later(disk: Disk, tmp_path: Path) -> None:
    world = await DaemonWorld.make(disk.path / "world")
    await world.start()
    await world.prepare(sop="hello")
    await world.reach("select id from gates where state = 'open'")
    disk.fill()
    async with world.api() as api:
        (gate,) = (await api.call("gates.listing"))["items"]
        body = {"choice": "approved", "note": "x" * 20_000}
        with pytest.raises(BeadmillError) as refused:
            await api.call("gates.answer", gate=gate["id"], body=body, etag=gate["etag"], once="1")
    assert (refused.value.code, refused.value.next) == ("DISK_FULL", "make room there; work goes on by itself")
    disk.make_room()
    await world.go_on(lambda: False)
    assert world.rows("select choice from decisions") == [("approved",)]
    world.terminate()


def test_c86_c87_a_store_on_a_full_disk_says_so_and_has_recorded_nothing(disk: Disk) -> None:
    store = Store(f"sqlite:///{disk.path / 'journal.db'}")
    store.migrate()
    disk.fill()
    with pytest.raises(Unwritable, match="its disk is full"):
        store.write_now(lambda tx: blobs.put_blob(tx, b"x" * 500_000))
    disk.make_room()
    b = tables.blobs
    assert store.read_now(lambda conn: conn.execute(sa.select(sa.func.count()).select_from(b)).scalar()) == 0
    store.close()
