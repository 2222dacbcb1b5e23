"""Agent sessions and command batches as rows: opened with their lease, booked once by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from beadmill.domain.machine import Hold, Phase
from beadmill.domain.price import Price, Source
from beadmill.domain.values import Event, Json, Usage
from beadmill.errors import Superseded
from beadmill.store import tables
from beadmill.store.blobs import insert_ignore, put_blob
from beadmill.store.db import Tx
from beadmill.store.journal import budgets, leases, limits, moves, visits
from beadmill.store.journal.moves import Wait

s, r = tables.sessions, tables.runs


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a session before it starts. ``slots`` 0 = needs no lease (command batches)."""

    token: str
    kind: str
    host: str
    seat: str = ""
    agent: str = ""
    model: str = ""
    template: str = ""
    subject: str = ""
    ledger: Sequence[Json] = ()
    prompt: str = ""
    pool: str = ""  # resource of the agent_slots lease: the project
    slots: int = 0


def open_session(tx: Tx, visit: str, owner: str, opening: Opening, *, phase: Phase | None) -> Wait | None:
    """Inserts the row with its lease; a Wait comes back instead when the run is held, the provider's account is closed
    until its limit resets, or no slot is free.

    Raises Superseded.
    """
    if not moves.owned(tx, visit, owner):
        raise Superseded(visit)
    run = visits.run_of(tx, visit)
    visits.set_phase(tx, visit, phase)
    if tx.run(sa.select(r.c.hold).where(r.c.id == run)).scalar() != Hold.NONE:
        return Wait("hold", run)
    if opening.kind == "agent":
        account, call = limits.account_of(opening.seat), opening.token.rpartition("/")[0]
        until = limits.closed_until(tx.conn, account, now=tx.moment, call=call)
        if until:
            return Wait("limit", account, until)
    if opening.slots and not leases.take(
        tx, "agent_slots", opening.pool, opening.token, limit=opening.slots, host=opening.host
    ):
        return Wait("lease", f"agent_slots/{opening.pool}:{opening.slots}")
    values = {
        "token": opening.token,
        "run_id": run,
        "visit_id": visit,
        "kind": opening.kind,
        "host": opening.host,
        "seat": opening.seat,
        "agent": opening.agent,
        "model": opening.model,
        "template": opening.template,
        "subject": opening.subject,
        "ledger": list(opening.ledger),
        "lease": int(bool(opening.slots)),
        "started": tx.now,
        "prompt_sha": put_blob(tx, opening.prompt.encode()) if opening.prompt else None,
    }
    insert_ignore(tx, s, **values, input=0, cached=0, output=0, reasoning=0, seconds=0)
    tx.emit(
        Event(
            "session.started",
            {
                "token": opening.token,
                "kind": opening.kind,
                "seat": opening.seat,
                "template": opening.template,
                "subject": opening.subject,
            },
        ),
        run=run,
        visit=visit,
        ticket=moves.ticket_key(tx, run),
    )
    return None


def seat_of(conn: sa.Connection, token: str) -> tuple[str, str]:
    """Agent and model that the session was opened with."""
    row = conn.execute(sa.select(s.c.agent, s.c.model).where(s.c.token == token)).first()
    return (row.agent, row.model) if row is not None else ("", "")


def book(tx: Tx, token: str, end: Json, *, usage: Usage, price: Price, seconds: float) -> bool:
    """The end, once: usage to the run, the lease back, the visit ready. False when it was booked already."""
    values: dict[str, Any] = {
        "ended": tx.now,
        "end": end,
        "input": usage.input,
        "cached": usage.cached,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "cost_usd": price.usd,
        "cost_source": price.source,
        "model": price.model,
        "seconds": seconds,
    }
    query = sa.update(s).where(s.c.token == token, s.c.ended.is_(None)).values(**values)
    row = tx.run(query.returning(s.c.run_id, s.c.visit_id, s.c.kind, s.c.seat)).first()
    if row is None:
        return False
    agent = row.kind == "agent"
    totals = {"tokens": r.c.tokens + usage.tokens, "agent_seconds": r.c.agent_seconds + (seconds if agent else 0)}
    if price.usd is not None:
        totals["cost_usd"] = sa.func.coalesce(r.c.cost_usd, 0) + price.usd
    if price.source is Source.UNPRICED:
        totals["unpriced"] = r.c.unpriced + 1
    before, ticket = budgets.spending(tx.conn, row.run_id).spent, moves.ticket_key(tx, row.run_id)
    tx.run(sa.update(r).where(r.c.id == row.run_id).values(**totals))
    budgets.warn(tx, row.run_id, before, ticket=ticket)
    tx.emit(
        Event(
            "session.ended",
            {
                "token": token,
                "kind": row.kind,
                "seat": row.seat,
                "end": end.get("type", ""),
                "tokens": usage.tokens,
                "cost_usd": price.usd,
                "cost_source": price.source,
                "model": price.model,
                "seconds": round(seconds, 3),
            },
        ),
        run=row.run_id,
        visit=row.visit_id,
        ticket=ticket,
    )
    leases.free(tx, token)
    moves.woken(tx, "session", token)
    if agent and end.get("type") not in ("Limited", *limits.SILENT):
        limits.answered(tx, limits.account_of(row.seat))
    moves.project(tx, row.run_id)
    return True


def stuck(tx: Tx, token: str, processes: Sequence[Json]) -> None:
    """Says what of a session could not be ended. Its row stays open: nobody gets its tree, nothing is called stopped."""
    row = tx.run(sa.select(s.c.run_id, s.c.visit_id).where(s.c.token == token)).first()
    if row is not None:
        told = Event("session.stuck", {"token": token, "processes": list(processes)})
        tx.emit(told, run=row.run_id, visit=row.visit_id, ticket=moves.ticket_key(tx, row.run_id))


def open_tokens(conn: sa.Connection, *, visit: str | None = None, host: str | None = None) -> Sequence[str]:
    query = sa.select(s.c.token).where(s.c.ended.is_(None))
    if visit is not None:
        query = query.where(s.c.visit_id == visit)
    if host is not None:
        query = query.where(s.c.host == host)
    return [x[0] for x in conn.execute(query)]
