"""Alembic, driven from code: no ini file, no environment of its own. Imported only when a schema is behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from beadmill import __version__
from beadmill.errors import Unavailable

MIGRATIONS: Final = Path(__file__).parent / "migrations"
HEAD = "0004"


def current(engine: Engine) -> str:
    """The schema's revision, "" for an empty database."""
    with engine.connect() as conn:
        if not sa.inspect(conn).has_table("alembic_version"):
            return ""
        return str(conn.execute(sa.text("select version_num from alembic_version")).scalar() or "")


def upgrade(engine: Engine, before: Callable[[str], None] = lambda _revision: None) -> None:
    """Brings the schema to HEAD; ``before`` is called with the old revision when a schema exists and is older.

    Raises Unavailable, and changes nothing, when the schema is of a release that this one does not know.
    """
    revision = current(engine)
    if revision == HEAD:
        return
    if revision:
        _refuse_foreign(revision)
        before(revision)
    to(engine, HEAD)


def to(engine: Engine, revision: str) -> None:
    """Migrates to exactly this revision, in one transaction."""
    from alembic.command import upgrade as run
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with engine.connect() as conn:
        config.attributes["connection"] = conn
        if conn.dialect.name == "sqlite":  # DDL is transactional there: a killed migration leaves the old schema
            conn.exec_driver_sql("BEGIN IMMEDIATE")
        run(config, revision)
        conn.commit()


def _refuse_foreign(revision: str) -> None:
    """Revisions are numbered, so a file's name says which one it is."""
    known = {path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}
    if revision in known:
        return
    raise Unavailable(
        f"the database has schema {revision}, which Beadmill {__version__} does not know (its own is {HEAD}): "
        "it was made by a newer release",
        code="SCHEMA_UNKNOWN",
        details={"schema": revision, "newest": HEAD},
        kept="the database was not touched",
        next="install that release again; or, to go back for good, stop and put the newest copy with an older schema "
        "from the backups folder in its place (what was done since is not in it)",
    )
