"""what a turn costs, by whose word, and which model it used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("cost_source", "agent", "model"):
        op.add_column("sessions", sa.Column(name, sa.String(), server_default="", nullable=False))
    op.add_column("runs", sa.Column("unpriced", sa.Integer(), server_default="0", nullable=False))
    _seats()
    _sources()


def _seats() -> None:
    """``codex/gpt-5/high`` → codex, gpt-5."""
    s = sa.table("sessions", *(sa.column(name, sa.String()) for name in ("seat", "agent", "model")))
    conn = op.get_bind()
    for (seat,) in conn.execute(sa.select(s.c.seat).where(s.c.seat != "").distinct()).all():
        agent, _, rest = seat.partition("/")
        values = {"agent": agent, "model": rest.partition("/")[0]}
        conn.execute(sa.update(s).where(s.c.seat == seat).values(**values))


def _sources() -> None:
    """Until now only CLIs said what a turn costs; one that used tokens and said nothing has no price."""
    op.execute("update sessions set cost_source = 'reported' where cost_usd is not null")
    op.execute(
        "update sessions set cost_source = 'unpriced'"
        " where cost_usd is null and ended is not null and kind = 'agent' and input + cached + output > 0"
    )
    op.execute(
        "update runs set unpriced = (select count(*) from sessions"
        " where sessions.run_id = runs.id and sessions.cost_source = 'unpriced')"
    )
