"""Facts for the preflight: what was approved, and whether the project has a place for one more ticket."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.settings import RunSettings
from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import leases

r, g, d, ls, t = tables.runs, tables.gates, tables.decisions, tables.leases, tables.tickets
KIND = "parallel_tickets"


@dataclass(frozen=True, slots=True)
class Cost:
    """``usd`` None = nothing of it was priced. ``agent_seconds`` is working time of all sessions together."""

    tokens: int = 0
    usd: float | None = None
    agent_seconds: float = 0


def cost(conn: Connection, run: str) -> Cost:
    return Cost(*conn.execute(sa.select(r.c.tokens, r.c.cost_usd, r.c.agent_seconds).where(r.c.id == run)).one())


def approved(conn: Connection, run: str, kind: str) -> str:
    """sha256 of the document of this kind that the newest approval names, "" when there is none."""
    query = (
        sa.select(d.c.saw)
        .join(g, g.c.id == d.c.gate_id)
        .where(g.c.run_id == run, d.c.choice == "approve", g.c.state == "answered")
        .order_by(d.c.at.desc())
    )
    for (saw,) in conn.execute(query):
        for name, _row, sha in saw:
            if name == kind:
                return str(sha)
    return ""


def place(tx: Tx, run: str) -> str:
    """Takes one of the project's places. "" when the run has it, else who holds them."""
    row = tx.run(sa.select(r.c.project_id, r.c.settings, r.c.host).where(r.c.id == run)).one()
    limit = RunSettings.model_validate(row.settings).parallel_tickets
    if leases.take(tx, KIND, str(row.project_id), run, limit=limit, host=row.host):
        return ""
    query = (
        sa.select(t.c.key)
        .join(r, r.c.ticket_id == t.c.id)
        .join(ls, ls.c.holder == r.c.id)
        .where(ls.c.kind == KIND, ls.c.resource == str(row.project_id))
        .order_by(t.c.key)
    )
    return ", ".join(x[0] for x in tx.run(query))


def leave(tx: Tx, run: str) -> None:
    """A ticket that waits in its review holds no place."""
    leases.give_back(tx, KIND, run)
