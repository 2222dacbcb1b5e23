"""Rows that were written before costs had a source keep their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from beadmill.store import migrate
from beadmill.store.db import Store
from tests.engine.conftest import schema_url

OLD = {
    "reported": ("agent", "codex/gpt-5/high", "2026-01-02", 10, 0.25),
    "unpriced": ("agent", "codex/gpt-5", "2026-01-02", 10, None),
    "silent": ("agent", "codex", "2026-01-02", 0, None),
    "running": ("agent", "scripted/a", None, 0, None),
    "batch": ("batch", "", "2026-01-02", 0, None),
}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store at the first schema, with one session of every sort."""
    made = Store(f"sqlite:///{tmp_path / 'old.db'}" if request.param == "sqlite" else schema_url())
    with made.engine.connect() as conn:
        _to(conn, "0001")
        conn.exec_driver_sql("BEGIN" if not made.postgres else "SELECT 1")
        _fill(conn)
        conn.exec_driver_sql("COMMIT")
    yield made
    made.close()


def _to(conn: sa.Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    command.upgrade(config, revision)
    conn.commit()


def _fill(conn: sa.Connection) -> None:
    old = sa.MetaData()
    old.reflect(conn)
    at = "2026-01-01"
    run = {"id": "r", "sop": "s", "sop_body": "", "state": "active", "hold": "none", "host": "", "settings": {}}
    conn.execute(
        sa.insert(old.tables["runs"]).values(**run, work={}, tokens=20, cost_usd=0.25, agent_seconds=0, created=at)
    )
    visit = {"id": "r/n.1", "run_id": "r", "node": "n", "n": 1, "state": "done", "activation": 1, "note": ""}
    conn.execute(sa.insert(old.tables["visits"]).values(**visit, made=[], came_from=[], comment="", created=at))
    same = {
        "run_id": "r",
        "visit_id": "r/n.1",
        "host": "local",
        "template": "",
        "subject": "",
        "ledger": [],
        "lease": 0,
    }
    for token, (kind, seat, ended, tokens, usd) in OLD.items():
        spent = {"input": tokens, "cached": 0, "output": 0, "reasoning": 0, "cost_usd": usd, "seconds": 0}
        row: dict[str, Any] = {
            "token": token,
            "kind": kind,
            "seat": seat,
            "started": at,
            "ended": ended,
            **same,
            **spent,
        }
        conn.execute(sa.insert(old.tables["sessions"]).values(row))


def test_old_sessions_are_given_the_source_of_their_cost_and_their_seat(old: Store) -> None:
    old.migrate()
    with old.engine.connect() as conn:
        rows = conn.execute(sa.text("select token, cost_source, agent, model, cost_usd from sessions")).all()
    assert {row.token: tuple(row)[1:] for row in rows} == {
        "reported": ("reported", "codex", "gpt-5", 0.25),
        "unpriced": ("unpriced", "codex", "gpt-5", None),
        "silent": ("", "codex", "", None),
        "running": ("", "scripted", "a", None),
        "batch": ("", "", "", None),
    }


def test_old_runs_count_their_turns_without_a_price(old: Store) -> None:
    old.migrate()
    with old.engine.connect() as conn:
        assert conn.execute(sa.text("select cost_usd, unpriced from runs")).one() == (0.25, 1)


def test_the_migrated_schema_is_the_one_of_the_code(old: Store) -> None:
    old.migrate()
    assert migrate.current(old.engine) == migrate.HEAD
