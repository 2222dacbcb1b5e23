"""What a run may spend, with what people added, and what it has spent."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from beadmill.domain.values import GateKind
from beadmill.store import tables

r, g, d = tables.runs, tables.gates, tables.decisions


@dataclass(frozen=True, slots=True)
class Spending:
    """``raised`` holds the newest limits people gave, ``times`` how often they did."""

    usd: float | None
    tokens: int
    minutes: float
    raised: dict[str, float]
    times: int


def spending(conn: sa.Connection, run: str) -> Spending:
    row = conn.execute(sa.select(r.c.cost_usd, r.c.tokens, r.c.agent_seconds).where(r.c.id == run)).one()
    query = (
        sa.select(d.c.payload)
        .join(g, g.c.id == d.c.gate_id)
        .where(g.c.run_id == run, g.c.kind == GateKind.BUDGET)
        .order_by(d.c.at)
    )
    answers = [x[0] or {} for x in conn.execute(query)]
    raised: dict[str, float] = {}
    for payload in answers:
        raised |= {k: v for k, v in payload.items() if k in ("usd", "tokens", "minutes") and v}
    return Spending(row.cost_usd, row.tokens, row.agent_seconds / 60, raised, len(answers))
