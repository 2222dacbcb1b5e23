"""Alembic's entry: uses the connection that migrate.py hands over."""

from __future__ import annotations

from alembic import context

from beadmill.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
