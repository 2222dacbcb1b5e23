from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_for_tests import store_at

from beadmill.store import tables
from beadmill.store.db import Store
from tests.engine.bench import Bench


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One suite over both databases; each worker has one schema on PostgreSQL, empty when a test begins."""
    made = store_at(tmp_path / "journal.db") if request.param == "sqlite" else Store(_emptied())
    made.migrate()
    yield made
    made.close()


def _emptied() -> str:
    url, first = _migrated()
    engine = sa.create_engine(url)
    with engine.begin() as conn:
        conn.execute(sa.text(f"truncate {', '.join(table.name for table in first)} restart identity"))
        for table, rows in first.items():
            if rows:
                conn.execute(sa.insert(table), [dict(row) for row in rows])
    engine.dispose()
    return url


@functools.cache
def _migrated() -> tuple[str, Mapping[sa.Table, Sequence[sa.RowMapping]]]:
    """A schema of this process, and the rows that the migrations leave in each table."""
    url = schema_url()
    store = Store(url)
    store.migrate()
    with store.engine.connect() as conn:
        rows = {t: conn.execute(sa.select(t)).mappings().all() for t in tables.metadata.sorted_tables}
    store.close()
    return url, rows


def schema_url() -> str:
    """Of a new, empty schema."""
    base = os.environ.get("BEADMILL_TEST_POSTGRES", "")
    assert base, "test.sh starts PostgreSQL and sets BEADMILL_TEST_POSTGRES"
    name = f"t{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(base)
    with engine.begin() as conn:
        conn.execute(sa.text(f"create schema {name}"))
    engine.dispose()
    return f"{base}?options=-csearch_path%3D{name}"


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Bench:
    return Bench(store, tmp_path)
