"""Somebody else keeps a lock: longer than we wait, or though they are dead."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from beadmill.errors import Unwritable
from beadmill.store import db
from beadmill.store.db import Store
from tests.engine.bench import Bench, one
from tests.processes.session_world import until


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """As a forgotten shell of sqlite3 does it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(db, "BUSY", 50)
    monkeypatch.setattr("beadmill.engine.dispatch.RESCAN", 0.05)
    store = Store(f"sqlite:///{tmp_path / 'journal.db'}")
    store.migrate()
    yield store
    store.close()


async def test_c86_a_step_waits_out_a_database_that_is_locked_for_longer_than_we_wait(
    impatient: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(impatient, tmp_path)

    async def body(v: Visit, _: Any) -> Outcome:
        with locked(tmp_path / "journal.db"):
            if not bench.calls:
                await v.step("s", bench.act, "s")
        return Outcome("ok", note=await v.step("s", bench.act, "s"))

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await until(lambda: "another process keeps it locked" in caplog.text)
        await bench.until(lambda: bench.run_state() == "completed")

    assert (bench.events("gate."), bench.events("step.done")) == ([], ["step.done"])


def test_a_write_on_a_locked_database_says_who_to_look_for(impatient: Store, tmp_path: Path) -> None:
    with locked(tmp_path / "journal.db"), pytest.raises(Unwritable) as refused:
        impatient.write_now(lambda _: None)
    assert (refused.value.code, refused.value.status) == ("DATABASE_BUSY", 503)
