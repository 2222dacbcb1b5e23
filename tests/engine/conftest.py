from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_for_tests import store_at

from beadmill.store.db import Store
from tests.engine.bench import Bench


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One suite over both databases; on PostgreSQL each test has a schema of its own."""
    made = store_at(tmp_path / "journal.db") if request.param == "sqlite" else Store(_schema_url())
    made.migrate()
    yield made
    made.close()


def _schema_url() -> str:
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
