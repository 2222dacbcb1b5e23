from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from beadmill.errors import Unavailable
from beadmill.store import migrate, tables
from beadmill.store.db import Store


def test_the_migrations_end_at_the_tables_of_the_code(store: Store) -> None:
    with store.engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": False})
        differences = compare_metadata(context, tables.metadata)

    assert differences == []
    assert migrate.current(store.engine) == migrate.HEAD


def test_migrating_again_changes_nothing_and_makes_no_copy(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    store.migrate(tmp_path / "backups")

    store.migrate(tmp_path / "backups")

    assert not (tmp_path / "backups").exists()
    store.close()


def test_an_older_schema_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    store.migrate()
    with store.engine.begin() as conn:
        conn.execute(sa.text("insert into settings (key, value) values ('kept', '1')"))
        conn.execute(sa.text("update alembic_version set version_num = '0000'"))
        conn.commit()

    with pytest.raises(Exception, match="0000"):
        store.migrate(tmp_path / "backups")

    (copy,) = (tmp_path / "backups").iterdir()
    old = sa.create_engine(f"sqlite:///{copy}")
    with old.connect() as conn:
        assert conn.execute(sa.text("select key from settings")).scalars().all() == ["kept"]
    old.dispose()
    store.close()


def test_a_damaged_database_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)

    damaged = Store(f"sqlite:///{path}")
    with pytest.raises(Unavailable, match="damaged"):
        damaged.check()
    damaged.close()
