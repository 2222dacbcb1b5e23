"""Activations: claim, park, finish, block; dead workers' visits; due times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import sqlalchemy as sa

from beadmill import redact
from beadmill.domain import flow
from beadmill.domain.machine import Hold, Phase, RunState, VisitState
from beadmill.domain.sop import Graph
from beadmill.domain.values import SYSTEM, Actor, Event, GateKind, GateRequest, Json, Outcome
from beadmill.errors import Blocked, Superseded
from beadmill.store import blobs, tables
from beadmill.store.db import Tx
from beadmill.store.journal import facts, gates, limits, moves, runs, tokens
from beadmill.store.journal.moves import Wait

r, v, w, s, ls = tables.runs, tables.visits, tables.waits, tables.sessions, tables.leases


def ready(conn: sa.Connection, *, limit: int = 50) -> Sequence[tuple[str, int]]:
    """(visit, activation) pairs that may be claimed now."""
    query = (
        sa.select(v.c.id, v.c.activation)
        .join(r, r.c.id == v.c.run_id)
        .where(v.c.state == VisitState.READY, r.c.state == RunState.ACTIVE, r.c.hold == Hold.NONE)
        .order_by(v.c.created, v.c.id)
        .limit(limit)
    )
    return [(row.id, row.activation) for row in conn.execute(query)]


Live = Callable[[sa.Connection, str], "dict[str, Json] | None"]


def claim(tx: Tx, visit: str, activation: int, *, owner: str, worker: str, live: Live | None = None) -> bool:
    """Conditional: only from ready, only this activation, only while the run is active and not held. ``live`` gives
    the settings of a run that are not frozen, as they are now: the first claim records them with the visit."""
    held = tx.run(
        sa.select(r.c.id, v.c.started)
        .join(v, v.c.run_id == r.c.id)
        .where(v.c.id == visit, r.c.state == RunState.ACTIVE, r.c.hold == Hold.NONE)
    ).first()
    if held is None:
        return False
    values: dict[str, Json] = {"worker": worker}
    if held.started is None:
        fresh = live(tx.conn, held.id) if live is not None else None
        values |= {"started": tx.now, **({} if fresh is None else {"settings": fresh})}
    return moves.move(tx, visit, VisitState.RUNNING, activation=activation, owner_now=owner, **values)


def park(tx: Tx, visit: str, owner: str, waits: Iterable[Wait], *, phase: Phase | None) -> None:
    """Stores the union of waits; ready at once when one of them has happened meanwhile. Raises Superseded."""
    if not moves.owned(tx, visit, owner):
        raise Superseded(visit)
    wanted = sorted(set(waits))
    set_phase(tx, visit, phase)
    moves.move(
        tx, visit, VisitState.PARKED, owner=owner, wake_at=min((x.at for x in wanted if x.at is not None), default=None)
    )
    run = run_of(tx, visit)
    if tx.run(sa.select(v.c.phase).where(v.c.id == visit)).scalar() == Phase.WAITING_PR_REVIEW:
        facts.leave(tx, run)
    for one in wanted:
        tx.run(sa.insert(w).values(visit_id=visit, kind=one.kind, key=one.key, at=one.at))
    until = min((x.at for x in wanted if x.at is not None), default=None)
    if until is not None:  # a provider's limit, above all: whoever watches is told until when
        tx.emit(Event("visit.waits", {"until": until}), run=run, visit=visit, ticket=moves.ticket_key(tx, run))
    if any(_happened(tx, run, one) for one in wanted):
        moves.make_ready(tx, visit)
    moves.project(tx, run)


def _happened(tx: Tx, run: str, wait: Wait) -> bool:
    if wait.kind == "gate":
        return (
            tx.run(sa.select(tables.decisions.c.gate_id).where(tables.decisions.c.gate_id == wait.key)).first()
            is not None
        )
    if wait.kind == "session":
        return tx.run(sa.select(s.c.token).where(s.c.token == wait.key, s.c.ended.is_not(None))).first() is not None
    if wait.kind == "time":
        return wait.at is not None and wait.at <= tx.now
    if wait.kind == "lease":
        name, _, limit = wait.key.rpartition(":")
        kind, _, resource = name.partition("/")
        held = sa.select(sa.func.count()).select_from(ls).where(ls.c.kind == kind, ls.c.resource == resource)
        return int(tx.run(held).scalar_one()) < int(limit)
    if wait.kind == "limit":
        return not limits.closed_until(tx.conn, wait.key, now=tx.moment)
    if wait.kind == "hold":
        return tx.run(sa.select(r.c.hold).where(r.c.id == run)).scalar() == Hold.NONE
    return False


def finish(tx: Tx, visit: str, owner: str, graph: Graph, outcome: Outcome) -> None:
    """Done; the token machine runs in this transaction and the next visits are inserted. Raises Superseded."""
    if not moves.owned(tx, visit, owner):
        raise Superseded(visit)
    row = tx.run(sa.select(v.c.run_id, v.c.node, v.c.n).where(v.c.id == visit)).one()
    moves.run_row(tx, row.run_id)
    moves.move(
        tx,
        visit,
        VisitState.DONE,
        owner=owner,
        outcome=outcome.edge,
        note=outcome.note,
        made=[m.row for m in outcome.made],
        ended=tx.now,
        wake_at=None,
    )
    tx.run(sa.delete(w).where(w.c.visit_id == visit))
    gates.withdraw(tx, visit)
    ticket = moves.ticket_key(tx, row.run_id)
    tx.emit(
        Event("visit.done", {"node": row.node, "n": row.n, "outcome": outcome.edge}),
        run=row.run_id,
        visit=visit,
        ticket=ticket,
    )
    found = flow.advance(graph, tokens.past(tx.conn, row.run_id), (row.node, row.n), outcome.edge)
    if found.exhausted is not None:
        _exhausted(tx, visit, found.exhausted.target, found.exhausted.max_visits)
    else:
        tokens.apply(tx, row.run_id, graph, found, comment=outcome.note if found.supersede else "")
        if (row.node, row.n) in found.supersede:  # a way back: what it says is to be done must outlive this visit
            for one in found.start:
                blobs.hand_on(tx, outcome.made, to=tokens.visit_id(row.run_id, (one.node, one.n)))
        if found.ended:
            closed = any(p.outcome == "closed" for p in tokens.past(tx.conn, row.run_id) if p.state.counts)
            runs.end(tx, row.run_id, RunState.CLOSED if closed else RunState.COMPLETED, actor=SYSTEM)
    moves.project(tx, row.run_id)


def _exhausted(tx: Tx, visit: str, target: str, limit: int) -> None:
    """The way back is used up: the visit stays open behind a blocked gate instead of ending in a dead end."""
    tx.run(sa.update(v).where(v.c.id == visit).values(state=VisitState.PARKED, outcome=None, ended=None, made=[]))
    block_gate(
        tx,
        visit,
        Blocked(
            "REWORK_LIMIT_REACHED",
            f"The way back to {target} is used up: it gives up after {limit} visits",
            forget=("",),
            kept="everything that was made",
            next=f"retry does this stage again; or send back to {target} once more, or cancel",
        ),
    )


def block(tx: Tx, visit: str, owner: str, error: Blocked, *, phase: Phase | None) -> None:
    """Opens a blocked gate and parks on it. Raises Superseded."""
    if not moves.owned(tx, visit, owner):
        raise Superseded(visit)
    set_phase(tx, visit, phase)
    run = run_of(tx, visit)
    moves.move(tx, visit, VisitState.PARKED, owner=owner)
    block_gate(tx, visit, error)
    moves.project(tx, run)


def block_gate(tx: Tx, visit: str, error: Blocked) -> None:
    n = tx.run(
        sa.select(sa.func.count())
        .select_from(tables.gates)
        .where(tables.gates.c.visit_id == visit, tables.gates.c.kind == GateKind.BLOCKED)
    ).scalar_one()
    said = {
        "code": error.code,
        "message": error.message,
        "details": error.details,
        "kept": error.kept,
        "next": error.next,
    }
    plain = json.loads(json.dumps(said, default=str))  # whatever a node put there, the gate must open
    shown: Mapping[str, Json] = redact.ours().json(plain)  # tracebacks and output of tools may hold anything
    ways = {"forget": list(error.forget), "continuable": error.continuable, "takes_note": error.takes_note}
    detail = {**shown, **ways, "phase": tx.run(sa.select(v.c.phase).where(v.c.id == visit)).scalar()}
    choices = ("retry", "continue") if error.continuable else ("retry",)
    gate = f"{visit}/blocked#{n}"
    gates.open_gate(tx, gate, visit, GateRequest(GateKind.BLOCKED, shown["message"], choices, detail=detail))
    tx.run(sa.insert(w).values(visit_id=visit, kind="gate", key=gate))


def set_phase(tx: Tx, visit: str, phase: Phase | None) -> None:
    """Phases are written with the next new act or park, so a replay does not fire old ones."""
    if phase is None:
        return
    query = sa.update(v).where(v.c.id == visit, sa.or_(v.c.phase.is_(None), v.c.phase != phase)).values(phase=phase)
    if tx.run(query).rowcount:
        run = run_of(tx, visit)
        tx.emit(Event("visit.phase", {"phase": phase}), run=run, visit=visit, ticket=moves.ticket_key(tx, run))
        moves.project(tx, run)


def run_of(tx: Tx, visit: str) -> str:
    return str(tx.run(sa.select(v.c.run_id).where(v.c.id == visit)).scalar_one())


def release_dead(tx: Tx, workers: Sequence[str] | None = None) -> int:
    """Running visits of dead workers become ready (+1). ``workers`` None = all (embedded, at start)."""
    query = sa.update(v).where(v.c.state == VisitState.RUNNING)
    if workers is not None:
        query = query.where(v.c.worker.in_(workers))
    values = {"state": VisitState.READY, "owner": None, "activation": v.c.activation + 1}
    return tx.run(query.values(**values)).rowcount


def wake_now(tx: Tx, run: str, *, actor: Actor) -> list[str]:
    """A person does not wait for a provider's limit to end: the pause is over. Returns the visits that go on."""
    held = (
        sa.select(w.c.visit_id, w.c.key)
        .join(v, v.c.id == w.c.visit_id)
        .where(v.c.run_id == run, v.c.state == VisitState.PARKED, w.c.kind == "time", w.c.key.contains("/limit-"))
    )
    woken: list[str] = []
    for row in tx.run(held).all():
        visit, key = str(row.visit_id), str(row.key)
        moves.forget(tx, visit, key)
        if moves.make_ready(tx, visit):
            woken.append(visit)
            ticket = moves.ticket_key(tx, run)
            tx.emit(Event("visit.woken", {"pause": key}), run=run, visit=visit, ticket=ticket, actor=actor)
    closed = sa.select(w.c.key).join(v, v.c.id == w.c.visit_id).where(v.c.run_id == run, w.c.kind == "limit").distinct()
    for account in tx.run(closed).scalars().all():
        woken += [row for row in _waiting(tx, run, str(account)) if row not in woken]
        limits.ask_again(tx, str(account))
    moves.project(tx, run)
    return woken


def _waiting(tx: Tx, run: str, account: str) -> list[str]:
    query = sa.select(w.c.visit_id).join(v, v.c.id == w.c.visit_id)
    return [str(x) for (x,) in tx.run(query.where(v.c.run_id == run, w.c.kind == "limit", w.c.key == account))]


def running(conn: sa.Connection, worker: str) -> Sequence[tuple[str, str]]:
    """(visit, owner) of what this worker runs by the books."""
    query = sa.select(v.c.id, v.c.owner).where(v.c.state == VisitState.RUNNING, v.c.worker == worker)
    return [(row.id, row.owner) for row in conn.execute(query)]


def release(tx: Tx, visit: str, owner: str) -> bool:
    """An activation that ended without a word: its visit may go on."""
    return moves.move(tx, visit, VisitState.READY, only=frozenset({VisitState.RUNNING}), owner=owner)


def wake_due(tx: Tx) -> int:
    """Times that have come: sleeping visits become ready, gates with a countdown lapse to their choice."""
    due = [
        x[0]
        for x in tx.run(sa.select(w.c.visit_id).where(w.c.kind.in_(("time", "limit")), w.c.at <= tx.now).distinct())
    ]
    return sum(moves.make_ready(tx, visit) for visit in due) + gates.lapse_due(tx)


def next_due(conn: sa.Connection) -> str | None:
    """The nearest time that somebody waits for."""
    gate = tables.gates
    times = [
        conn.execute(sa.select(sa.func.min(w.c.at)).where(w.c.kind == "time")).scalar(),
        conn.execute(sa.select(sa.func.min(gate.c.lapse_at)).where(gate.c.state == "open")).scalar(),
    ]
    return min((x for x in times if x is not None), default=None)
