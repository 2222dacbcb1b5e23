"""what a visit reads of the settings that a run does not freeze. Visits that began before keep what their run froze."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("visits", sa.Column("settings", sa.JSON(), nullable=True))
