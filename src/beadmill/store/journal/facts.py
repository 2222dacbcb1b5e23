"""What was approved and spent, and the project's places for tickets that are being built."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.settings import RunSettings
from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import leases
from beadmill.store.journal.moves import Wait

r, g, d = tables.runs, tables.gates, tables.decisions
APPROVALS = ("approve", "approve_with_gaps")
KIND = "parallel_tickets"


@dataclass(frozen=True, slots=True)
class Cost:
    """``usd`` None = nothing of it was priced; ``unpriced`` turns are not in it. ``agent_seconds`` is working time of all
    sessions together."""

    tokens: int = 0
    usd: float | None = None
    agent_seconds: float = 0
    unpriced: int = 0


def cost(conn: Connection, run: str) -> Cost:
    columns = (r.c.tokens, r.c.cost_usd, r.c.agent_seconds, r.c.unpriced)
    return Cost(*conn.execute(sa.select(*columns).where(r.c.id == run)).one())


def approved(conn: Connection, run: str, kind: str) -> str:
    """sha256 of the document of this kind that the newest approval names, "" when there is none. A rerun keeps what
    was approved in the runs before it."""
    found, current = "", run
    while current and not found:
        found = _approved(conn, current, kind)
        current = conn.execute(sa.select(r.c.parent).where(r.c.id == current)).scalar() or ""
    return found


def _approved(conn: Connection, run: str, kind: str) -> str:
    query = (
        sa.select(d.c.saw)
        .join(g, g.c.id == d.c.gate_id)
        .where(g.c.run_id == run, d.c.choice.in_(APPROVALS), g.c.state == "answered")
        .order_by(d.c.at.desc())
    )
    return next((str(sha) for (saw,) in conn.execute(query) for name, _row, sha in saw if name == kind), "")


def place(tx: Tx, run: str) -> Wait | None:
    """Takes one of the project's ``parallel_tickets`` places, or says what to wait for. A run that has one keeps it."""
    row = tx.run(sa.select(r.c.project_id, r.c.settings, r.c.host).where(r.c.id == run)).one()
    limit = RunSettings.thawed(row.settings).parallel_tickets
    if leases.take(tx, KIND, str(row.project_id), run, limit=limit, host=row.host):
        return None
    return Wait("lease", f"{KIND}/{row.project_id}:{limit}")


def leave(tx: Tx, run: str) -> None:
    """A ticket that waits in its review holds no place."""
    leases.give_back(tx, KIND, run)
    leases.drop(tx, leases.LANE, run)


def lane(tx: Tx, run: str, holder: str, *, live: Collection[str]) -> int:
    """The lane, from 1, that ``holder`` builds in. ``live`` are the holders that still build: the lanes of others are
    free."""
    host = tx.run(sa.select(r.c.host).where(r.c.id == run)).scalar_one()
    return leases.numbered(tx, leases.LANE, run, holder, live=live, host=host)
