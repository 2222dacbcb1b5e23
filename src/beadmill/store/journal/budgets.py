"""What a run may spend, with what people added, and what it has spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from beadmill.domain.budget import WARN_AT, Spent, spent
from beadmill.domain.values import Event, GateKind, Json
from beadmill.settings import BudgetSettings, RunSettings
from beadmill.store import tables
from beadmill.store.db import Tx

r, g, d = tables.runs, tables.gates, tables.decisions


@dataclass(frozen=True, slots=True)
class Spending:
    """``limits`` are the run's with the newest that people gave, ``times`` how often they did. ``unpriced`` turns are
    not in ``usd``."""

    usd: float | None
    tokens: int
    minutes: float
    limits: BudgetSettings
    times: int
    unpriced: int = 0

    @property
    def spent(self) -> Spent:
        return spent(self.limits, self.usd, self.tokens, self.minutes, turns=self.unpriced)


def spending(conn: sa.Connection, run: str) -> Spending:
    columns = (r.c.cost_usd, r.c.tokens, r.c.agent_seconds, r.c.settings, r.c.unpriced)
    row = conn.execute(sa.select(*columns).where(r.c.id == run)).one()
    query = (
        sa.select(d.c.payload)
        .join(g, g.c.id == d.c.gate_id)
        .where(g.c.run_id == run, g.c.kind == GateKind.BUDGET)
        .order_by(d.c.at)
    )
    answers = [x[0] or {} for x in conn.execute(query)]
    limits = RunSettings.thawed(row.settings).budget
    for payload in answers:
        limits = limits.model_copy(update=_usable(payload))
    return Spending(row.cost_usd, row.tokens, row.agent_seconds / 60, limits, len(answers), row.unpriced)


def _usable(payload: Mapping[str, Json]) -> dict[str, float]:
    """What is no limit (nothing, negative, not a number) changes none."""
    given = {k: payload[k] for k in ("usd", "tokens", "minutes") if isinstance(payload.get(k), int | float)}
    good = {k: x for k, x in given.items() if math.isfinite(x) and x > 0}
    return {k: math.ceil(x) if k == "tokens" else float(x) for k, x in good.items()}


def warn(tx: Tx, run: str, before: Spent, *, ticket: str | None) -> None:
    """Once when 80 % of a limit are used, and once when a limit in USD stops seeing everything."""
    found = spending(tx.conn, run)
    now = found.spent
    if now.share >= WARN_AT > before.share:
        data = {"what": now.what, "share": round(now.share, 3), "unpriced": now.unpriced}
        tx.emit(Event("budget.warning", data), run=run, ticket=ticket)
    if now.unpriced and not before.unpriced:
        tx.emit(Event("budget.unpriced", {"usd": found.limits.usd, "turns": found.unpriced}), run=run, ticket=ticket)
