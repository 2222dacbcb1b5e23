"""The countdown of questions: one per visit, shared by all who ask (reference §8.4).

A new asker sets a running one to full. Whoever deals with one of the questions stops it for good: then every question
of the visit has a ``lapse`` without a ``lapse_at``, which is how a stopped countdown is kept. Times are absolute, so a
restart keeps what is left.
"""

from __future__ import annotations

import sqlalchemy as sa

from beadmill.domain.values import Actor, Event, GateKind, GateRequest
from beadmill.store import tables
from beadmill.store.db import Tx, stamp
from beadmill.store.journal import moves

g, s = tables.gates, tables.sessions
QUESTION = g.c.kind == GateKind.QUESTION


def deadline(tx: Tx, visit: str, request: GateRequest) -> str | None:
    """When a gate that opens now lapses; None = never by itself."""
    if request.within is None or not request.lapse:
        return None
    until = stamp(tx.moment + request.within)
    if request.kind is not GateKind.QUESTION:
        return until
    of_visit = sa.and_(g.c.visit_id == visit, QUESTION, g.c.lapse.is_not(None))
    if tx.run(sa.select(g.c.id).where(of_visit, g.c.lapse_at.is_(None))).first() is not None:
        return None
    tx.run(sa.update(g).where(of_visit, g.c.state == "open").values(lapse_at=until))
    return until


def stop(tx: Tx, gate: str, *, actor: Actor) -> bool:
    """A person deals with a question: no question of its visit lapses any more. False when none would have. Any other
    gate is left as it is."""
    found = tx.run(sa.select(g.c.visit_id, g.c.run_id).where(g.c.id == gate, QUESTION)).first()
    if found is None:
        return False
    running = sa.update(g).where(g.c.visit_id == found.visit_id, QUESTION, g.c.lapse_at.is_not(None))
    if not tx.run(running.values(lapse_at=None)).rowcount:
        return False
    tx.emit(
        Event("gate.held", {"gate": gate}),
        run=found.run_id,
        visit=found.visit_id,
        ticket=moves.ticket_key(tx, found.run_id),
        actor=actor,
    )
    return True


def clocks(conn: sa.Connection, *, host: str) -> dict[str, bool]:
    """Open agent sessions of a host, and whether their working time stands still: while a question of their visit is
    open."""
    asked = sa.select(g.c.id).where(g.c.visit_id == s.c.visit_id, g.c.state == "open", QUESTION).exists()
    query = sa.select(s.c.token, asked).where(s.c.ended.is_(None), s.c.kind == "agent", s.c.host == host)
    return {token: bool(held) for token, held in conn.execute(query)}
