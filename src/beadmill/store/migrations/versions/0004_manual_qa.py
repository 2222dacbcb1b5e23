"""files that people add while they check by hand, and the tickets that come of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "qa_evidence",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("ticket", sa.String(), nullable=False),
        sa.Column("visit_id", sa.String(), sa.ForeignKey("visits.id")),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("media", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("created", sa.String(), nullable=False),
        sa.Column("removed", sa.String()),
        sa.Column("copied_from", sa.String()),
    )
    for column in ("visit_id", "ticket", "sha256"):
        op.create_index(f"qa_evidence_{column.removesuffix('_id')}", "qa_evidence", [column])
    op.create_table(
        "qa_improvements",
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("ticket", sa.String(), nullable=False, unique=True),
        sa.Column("visit_id", sa.String(), sa.ForeignKey("visits.id"), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("origin", sa.JSON(), nullable=False),
        sa.Column("created", sa.String(), nullable=False),
    )
