"""A SQLite store with the newest schema, made once per process of tests and copied."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from beadmill.store.db import Store


@cache
def _schema() -> bytes:
    with TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/beadmill.db")
        store.migrate()
        with store.engine.connect() as conn:
            conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        return (Path(folder) / "beadmill.db").read_bytes()


def store_at(path: Path) -> Store:
    """As ``migrate`` would make it; a database that is there already is only opened."""
    if not path.exists():
        path.write_bytes(_schema())
    store = Store(f"sqlite:///{path}")
    store.migrate()
    return store
