"""Runs: start, hold, end."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from beadmill.domain import machine
from beadmill.domain.flow import begin
from beadmill.domain.machine import Hold, RunState, TicketState, VisitState
from beadmill.domain.sop import Graph
from beadmill.domain.values import Actor, Event, Json
from beadmill.errors import Conflict
from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import leases, moves, tokens

OPEN = [state for state in VisitState if state.open]
r, v, t, w, s = tables.runs, tables.visits, tables.tickets, tables.waits, tables.sessions
g = tables.gates


def start(
    tx: Tx,
    *,
    run: str,
    ticket_id: int | None,
    project_id: int | None,
    sop: str,
    body: str,
    graph: Graph,
    settings: dict[str, Json],
    work: dict[str, Json],
    actor: Actor,
    parent: str | None = None,
) -> None:
    """Creates the run with its first visits. Raises Conflict when the ticket has a live run already."""
    _claim_ticket(tx, ticket_id, run, replaces=parent)
    tx.run(
        sa.insert(r).values(
            id=run,
            ticket_id=ticket_id,
            project_id=project_id,
            sop=sop,
            sop_body=body,
            state=RunState.ACTIVE,
            hold=Hold.NONE,
            settings=settings,
            work=work,
            parent=parent,
            tokens=0,
            agent_seconds=0,
            created=tx.now,
        )
    )
    data = {"sop": sop, **({"parent": parent} if parent else {})}
    tx.emit(Event("run.started", data), run=run, ticket=moves.ticket_key(tx, run), actor=actor)
    if parent is None:
        tokens.start(tx, run, graph, begin(graph).start)
    moves.project(tx, run, actor=actor)


def _claim_ticket(tx: Tx, ticket_id: int | None, run: str, *, replaces: str | None) -> None:
    if ticket_id is None:
        return
    fresh = sa.update(t).where(t.c.id == ticket_id)
    fresh = fresh.where(t.c.run_id == replaces) if replaces else fresh.where(t.c.state == TicketState.DRAFT)
    if tx.run(fresh.values(state=TicketState.ACTIVE, run_id=run, updated=tx.now)).rowcount != 1:
        raise Conflict("The ticket was already started", code="ALREADY_STARTED", kept="the running one is untouched")


def _move(tx: Tx, run: str, to: RunState, actor: Actor, **values: Any) -> bool:
    allowed = [s for s, targets in machine.RUN.items() if to in targets]
    query = sa.update(r).where(r.c.id == run, r.c.state.in_(allowed)).values(state=to, ended=tx.now, **values)
    if tx.run(query).rowcount != 1:
        return False
    tx.emit(Event(f"run.{to}"), run=run, ticket=moves.ticket_key(tx, run), actor=actor)
    return True


def end(tx: Tx, run: str, to: RunState, *, actor: Actor) -> bool:
    """Completed, closed, canceled or superseded; the ticket follows, but for a superseded run."""
    if not _move(tx, run, to, actor):
        return False
    ticket = {
        RunState.COMPLETED: TicketState.COMPLETED,
        RunState.CLOSED: TicketState.COMPLETED,
        RunState.CANCELED: TicketState.CANCELED,
    }.get(to)
    if ticket is not None:
        tx.run(sa.update(t).where(t.c.run_id == run).values(state=ticket, updated=tx.now))
    leases.free(tx, run)
    leases.drop(tx, leases.LANE, run)
    moves.project(tx, run, actor=actor)
    return True


def _over(run: str, state: str) -> Conflict:
    again = f"beadmill run rerun {run} <node> starts a new run from there" if state != RunState.SUPERSEDED else ""
    return Conflict(f"The run has ended: {state}", code="RUN_ENDED", kept="everything it made", next=again)


def _stop_countdowns(tx: Tx, run: str) -> None:
    """Whoever pauses is there: open questions wait for an answer from now on."""
    tx.run(sa.update(g).where(g.c.run_id == run, g.c.state == "open").values(lapse_at=None))


def pause(tx: Tx, run: str, *, actor: Actor, kind: Hold = Hold.PAUSED) -> None:
    """Running turns end by themselves; nothing is activated until resume. Raises Conflict on an ended run."""
    row = moves.run_row(tx, run)
    if row["state"] != RunState.ACTIVE:
        raise _over(run, row["state"])
    if row["hold"] == kind:
        return
    tx.run(sa.update(r).where(r.c.id == run).values(hold=kind))
    _stop_countdowns(tx, run)
    tx.emit(Event("run.held", {"hold": kind}), run=run, ticket=moves.ticket_key(tx, run), actor=actor)
    moves.project(tx, run, actor=actor)


def resume(tx: Tx, run: str, *, actor: Actor) -> None:
    """Raises Conflict on an ended run. A run that is not held is left as it is."""
    row = moves.run_row(tx, run)
    if row["state"] != RunState.ACTIVE:
        raise _over(run, row["state"])
    if row["hold"] == Hold.NONE:
        return
    tx.run(sa.update(r).where(r.c.id == run).values(hold=Hold.NONE))
    tx.emit(Event("run.resumed"), run=run, ticket=moves.ticket_key(tx, run), actor=actor)
    moves.woken(tx, "hold", run)
    moves.project(tx, run, actor=actor)


def fence(tx: Tx, run: str, *, actor: Actor, reason: str = "") -> tuple[str, ...]:
    """First half of cancel and of pause --now: no activation owns anything any more. Returns the visits of which the
    engine stops what runs; only then may ``cancel`` follow."""
    row = moves.run_row(tx, run)
    if row["state"] != RunState.ACTIVE:
        raise _over(run, row["state"])
    tx.run(sa.update(r).where(r.c.id == run).values(hold=Hold.PAUSED))
    _stop_countdowns(tx, run)
    running = sa.update(v).where(v.c.run_id == run, v.c.state.in_([VisitState.RUNNING, VisitState.READY]))
    for visit in [
        x[0]
        for x in tx.run(
            running.values(state=VisitState.PARKED, owner=None, activation=v.c.activation + 1).returning(v.c.id)
        )
    ]:
        tx.run(sa.insert(w).values(visit_id=visit, kind="hold", key=run))
    tx.emit(Event("run.stopping", {"reason": reason}), run=run, ticket=moves.ticket_key(tx, run), actor=actor)
    moves.project(tx, run, actor=actor)
    return _to_stop(tx, run)


def _to_stop(tx: Tx, run: str) -> tuple[str, ...]:
    """Open visits, and superseded ones of which something may still run."""
    opened = sa.select(v.c.id).where(v.c.run_id == run, v.c.state.in_(OPEN))
    awaited = sa.select(w.c.key).join(v, v.c.id == w.c.visit_id).where(w.c.kind == "stop", v.c.run_id == run)
    working = sa.select(s.c.visit_id).where(s.c.run_id == run, s.c.ended.is_(None))
    return tuple(dict.fromkeys(row[0] for query in (opened, awaited, working) for row in tx.run(query)))


def cancel(tx: Tx, run: str, *, actor: Actor, reason: str = "") -> None:
    """Second half, after the proven stop: visits canceled, gates withdrawn, run and ticket canceled.

    Raises Conflict when a session runs again: somebody has resumed the run in between.
    """
    if tx.run(sa.select(s.c.token).where(s.c.run_id == run, s.c.ended.is_(None))).first() is not None:
        raise Conflict("The run was resumed meanwhile", code="RESUMED", kept="the run", next="cancel it again")
    for (visit,) in tx.run(sa.select(v.c.id).where(v.c.run_id == run, v.c.state.in_(OPEN))).all():
        tokens.close_visit(tx, visit, VisitState.CANCELED)
    if reason:
        tx.emit(Event("run.reason", {"reason": reason}), run=run, actor=actor)
    if end(tx, run, RunState.CANCELED, actor=actor):
        tx.run(sa.update(r).where(r.c.id == run).values(hold=Hold.NONE))  # the fence has done its work
