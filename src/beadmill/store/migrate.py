"""Alembic, driven from code: no ini file, no environment of its own. Imported only when a schema is behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

HEAD = "0002"


def current(engine: Engine) -> str:
    """The schema's revision, "" for an empty database."""
    with engine.connect() as conn:
        if not sa.inspect(conn).has_table("alembic_version"):
            return ""
        return str(conn.execute(sa.text("select version_num from alembic_version")).scalar() or "")


def upgrade(engine: Engine, before: Callable[[str], None] = lambda _revision: None) -> None:
    """Brings the schema to HEAD; ``before`` is called with the old revision when a schema exists and is older."""
    revision = current(engine)
    if revision == HEAD:
        return
    if revision:
        before(revision)
    from alembic.command import upgrade as run
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    with engine.connect() as conn:
        config.attributes["connection"] = conn
        if conn.dialect.name == "sqlite":  # DDL is transactional there: a killed migration leaves the old schema
            conn.exec_driver_sql("BEGIN IMMEDIATE")
        run(config, "head")
        conn.commit()
