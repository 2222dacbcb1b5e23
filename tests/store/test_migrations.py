from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from beadmill.errors import Unavailable
from beadmill.store import blobs, migrate, tables
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


NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{head}", None, None


def upgrade():
    op.add_column("settings", sa.Column("since", sa.String(), nullable=False, server_default="before"))
    {last}
"""


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The code of a release with one migration more; its last statement is the test's."""

    def begin(last: str = "") -> None:
        folder = tmp_path / "migrations"
        shutil.copytree(migrate.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        (folder / "versions" / "9999_next.py").write_text(NEXT.format(head=migrate.HEAD, last=last))
        monkeypatch.setattr(migrate, "MIGRATIONS", folder)
        monkeypatch.setattr(migrate, "HEAD", "9999")

    return begin


def kept(path: Path) -> list[str]:
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as conn:
        found = list(conn.execute(sa.text("select key from settings")).scalars())
    engine.dispose()
    return found


def old(path: Path) -> Store:
    """A store as this release leaves it, with a row."""
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.write_now(lambda tx: tx.run(sa.insert(tables.settings).values(key="kept", value=1)))
    return store


def test_an_older_schema_is_copied_and_then_migrated_with_its_rows(
    tmp_path: Path, next_release: Callable[[str], None]
) -> None:
    store, before = old(tmp_path / "a.db"), migrate.HEAD
    next_release("")

    store.migrate(tmp_path / "backups")

    (copy,) = (tmp_path / "backups").iterdir()
    since = store.read_now(lambda conn: conn.execute(sa.text("select since from settings")).scalar())
    assert (migrate.current(store.engine), since) == ("9999", "before")
    assert (copy.name.split("-")[1], kept(copy)) == (before, ["kept"])
    store.close()


def test_a_migration_that_fails_leaves_the_old_schema_and_can_be_tried_again(
    tmp_path: Path, next_release: Callable[[str], None]
) -> None:
    store, before = old(tmp_path / "a.db"), migrate.HEAD
    next_release("raise RuntimeError('in the middle')")

    with pytest.raises(RuntimeError, match="in the middle"):
        store.migrate(tmp_path / "backups")

    columns = {c["name"] for c in sa.inspect(store.engine).get_columns("settings")}
    assert (migrate.current(store.engine), columns) == (before, {"key", "value"})
    store.close()


def test_a_database_of_a_newer_release_is_refused_untouched_with_the_way_back(
    tmp_path: Path, next_release: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, before = old(tmp_path / "a.db"), (migrate.MIGRATIONS, migrate.HEAD)
    next_release("")
    store.migrate(tmp_path / "backups")
    monkeypatch.setattr(migrate, "MIGRATIONS", before[0])
    monkeypatch.setattr(migrate, "HEAD", before[1])

    with pytest.raises(Unavailable, match=r"schema 9999, which Beadmill .* does not know") as refused:
        store.migrate(tmp_path / "again")

    assert (refused.value.kept, "backups folder" in refused.value.next) == ("the database was not touched", True)
    assert (migrate.current(store.engine), (tmp_path / "again").exists()) == ("9999", False)
    store.close()


def test_c86_a_damaged_database_is_refused_with_its_path(tmp_path: Path) -> None:
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


def test_c86_a_database_whose_first_page_is_zero_is_refused_and_never_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    with path.open("r+b") as file:
        file.write(bytes(4096))
    before = path.read_bytes()
    damaged = Store(f"sqlite:///{path}")
    with pytest.raises(Unavailable) as caught:
        damaged.check()
    damaged.close()
    assert ("backups" in caught.value.next, path.read_bytes() == before) == (True, True)


def test_c86_fifty_writers_at_once_all_write(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    store.migrate()
    with ThreadPoolExecutor(50) as pool:
        made = list(pool.map(lambda n: store.write_now(lambda tx: blobs.put_blob(tx, b"%d" % n)), range(50)))
    store.check()
    assert len(set(made)) == 50
    store.close()


def test_c86_a_database_that_lost_its_log_of_writes_opens_with_what_was_checked_in(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    path.with_name("a.db-wal").unlink(missing_ok=True)
    again = Store(f"sqlite:///{path}")
    again.check()
    assert migrate.current(again.engine) == migrate.HEAD
    again.close()
