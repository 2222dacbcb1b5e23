"""State changes of visits, and the ticket's projected status: what every other module of the journal builds on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from beadmill.domain import machine
from beadmill.domain.machine import Hold, Phase, RunState, TicketState, VisitState
from beadmill.domain.values import SYSTEM, Actor, Event
from beadmill.errors import NotFound
from beadmill.store import tables
from beadmill.store.db import Tx

r, v, w, g, t = tables.runs, tables.visits, tables.waits, tables.gates, tables.tickets
sc = tables.scopes


@dataclass(frozen=True, slots=True, order=True)
class Wait:
    """``kind``: gate, time, lease, session, hold, stop, limit. ``at`` only for time and limit."""

    kind: str
    key: str
    at: str | None = None


def run_row(tx: Tx, run: str) -> sa.RowMapping:
    """Raises NotFound."""
    found = tx.run(sa.select(r).where(r.c.id == run)).mappings().first()
    if found is None:
        raise NotFound(f"There is no run {run}", code="RUN_NOT_FOUND")
    return found


def move(
    tx: Tx,
    visit: str,
    to: VisitState,
    *,
    only: frozenset[VisitState] | None = None,
    owner: str | None = None,
    activation: int | None = None,
    owner_now: str | None = None,
    **values: Any,
) -> bool:
    """Conditional transition; False when the row was not in an allowed state (or not ``owner``'s, not at ``activation``)."""
    allowed = frozenset(s for s, targets in machine.VISIT.items() if to in targets)
    query = sa.update(v).where(v.c.id == visit, v.c.state.in_((only or allowed) & allowed))
    if to is VisitState.RUNNING:
        values["owner"] = owner_now
    else:  # whoever held it is fenced
        values = {"owner": None, "activation": v.c.activation + 1, **values}
    if owner is not None:
        query = query.where(v.c.owner == owner)
    if activation is not None:
        query = query.where(v.c.activation == activation)
    return tx.run(query.values(state=to, **values)).rowcount == 1


def make_ready(tx: Tx, visit: str) -> bool:
    """A parked visit may go on: activation + 1, its waits are void."""
    query = (
        sa.update(v)
        .where(v.c.id == visit, v.c.state == VisitState.PARKED)
        .values(state=VisitState.READY, activation=v.c.activation + 1, owner=None, wake_at=None)
    )
    if tx.run(query).rowcount != 1:
        return False
    tx.run(sa.delete(w).where(w.c.visit_id == visit))
    return True


def owned(tx: Tx, visit: str, owner: str) -> bool:
    """Does this activation still own its visit?"""
    query = sa.select(v.c.id).where(v.c.id == visit, v.c.owner == owner, v.c.state == VisitState.RUNNING)
    return tx.run(query).first() is not None


def woken(tx: Tx, kind: str, key: str, *, prefix: bool = False) -> list[str]:
    """Marks every visit ready that waits for this (lease keys carry their limit: there the key is a prefix)."""
    wanted = w.c.key.startswith(key, autoescape=True) if prefix else w.c.key == key
    visits = [row[0] for row in tx.run(sa.select(w.c.visit_id).where(w.c.kind == kind, wanted).distinct())]
    return [visit for visit in visits if make_ready(tx, visit)]


def forget(tx: Tx, visit: str, scope: str) -> None:
    """One round more: what is recorded below ``scope`` stays as history, out of the memo."""
    query = sa.update(sc).where(sc.c.visit_id == visit, sc.c.scope == scope)
    if tx.run(query.values(round=sc.c.round + 1)).rowcount != 1:
        tx.run(sa.insert(sc).values(visit_id=visit, scope=scope, round=1))


def stop_proven(tx: Tx, visit: str) -> None:
    """Nothing of ``visit`` runs any more: whoever waited for that may start, unless it waits for others too."""
    waiting = [row[0] for row in tx.run(sa.select(w.c.visit_id).where(w.c.kind == "stop", w.c.key == visit))]
    tx.run(sa.delete(w).where(w.c.kind == "stop", w.c.key == visit))
    for one in waiting:
        if tx.run(sa.select(w.c.key).where(w.c.visit_id == one)).first() is None:
            make_ready(tx, one)


def project(tx: Tx, run: str, *, actor: Actor = SYSTEM) -> None:
    """Recomputes the ticket's status word in this commit and emits ``ticket.status`` when it changed."""
    row = tx.run(sa.select(r.c.ticket_id, r.c.state, r.c.hold).where(r.c.id == run)).first()
    if row is None or row.ticket_id is None:
        return
    ticket = tx.run(sa.select(t.c.key, t.c.state, t.c.status, t.c.run_id).where(t.c.id == row.ticket_id)).one()
    if ticket.run_id not in (run, None):
        return
    status = _status(tx, run, TicketState(ticket.state), RunState(row.state), Hold(row.hold))
    if status == ticket.status:
        return
    tx.run(sa.update(t).where(t.c.id == row.ticket_id).values(status=status, updated=tx.now))
    tx.emit(
        Event("ticket.status", {"from": ticket.status, "to": status, "column": machine.column(status)}),
        run=run,
        ticket=ticket.key,
        actor=actor,
    )


def _status(tx: Tx, run: str, ticket: TicketState, state: RunState, hold: Hold) -> Phase:
    query = sa.select(v.c.id, v.c.state, v.c.phase, v.c.wake_at).where(
        v.c.run_id == run, v.c.state.in_([VisitState.READY, VisitState.RUNNING, VisitState.PARKED])
    )
    open_gates = {
        (row.visit_id, row.kind)
        for row in tx.run(sa.select(g.c.visit_id, g.c.kind).where(g.c.run_id == run, g.c.state == "open"))
    }
    visits = [
        (
            VisitState(row.state),
            Phase(row.phase) if row.phase else None,
            (row.id, "blocked") in open_gates,
            any(visit == row.id for visit, _kind in open_gates),
            row.wake_at,
        )
        for row in tx.run(query)
    ]
    return machine.ticket_status(ticket, state, hold, visits)


def ticket_key(tx: Tx, run: str) -> str | None:
    query = sa.select(t.c.key).join(r, r.c.ticket_id == t.c.id).where(r.c.id == run)
    return tx.run(query).scalar()
