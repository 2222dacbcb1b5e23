"""Tokens become visits: start, supersede, send back, rerun. The routing itself is domain.flow."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain import flow
from beadmill.domain.flow import Key, Moves, Past, Start
from beadmill.domain.machine import VisitState, first_phase
from beadmill.domain.sop import Graph
from beadmill.domain.values import SYSTEM, Actor, Event, RunId, VisitRef
from beadmill.errors import Conflict, NotFound, Refused
from beadmill.store import blobs, tables
from beadmill.store.db import Tx
from beadmill.store.journal import gates, moves

v, w = tables.visits, tables.waits
g = tables.gates


def visit_id(run: str, key: Key) -> str:
    return str(VisitRef(RunId(run), *key))


def past(conn: Connection, run: str) -> tuple[Past, ...]:
    """The run's whole history as the token machine reads it."""
    rows = conn.execute(sa.select(v).where(v.c.run_id == run).order_by(v.c.created, v.c.n)).mappings()
    return tuple(
        Past(row["node"], row["n"], VisitState(row["state"]), row["outcome"] or "", _keys(row["came_from"]))
        for row in rows
    )


def _keys(ids: Sequence[str]) -> tuple[Key, ...]:
    refs = [VisitRef.parse(i) for i in ids]
    return tuple((ref.node, ref.n) for ref in refs)


def start(
    tx: Tx, run: str, graph: Graph, starts: Sequence[Start], *, after: Sequence[str] = (), comment: str = ""
) -> None:
    """Inserts the visits; with ``after`` they wait until the engine has proven those visits stopped."""
    for one in starts:
        visit = visit_id(run, (one.node, one.n))
        tx.run(
            sa.insert(v).values(
                id=visit,
                run_id=run,
                node=one.node,
                n=one.n,
                activation=1,
                comment=comment,
                phase=first_phase(graph.nodes[one.node].kind),
                created=tx.now,
                state=VisitState.PARKED if after else VisitState.READY,
                came_from=[visit_id(run, k) for k in one.came_from],
            )
        )
        for old in after:
            tx.run(sa.insert(w).values(visit_id=visit, kind="stop", key=old))
        tx.emit(
            Event("visit.created", {"node": one.node, "n": one.n}),
            run=run,
            visit=visit,
            ticket=moves.ticket_key(tx, run),
        )


def close_visit(tx: Tx, visit: str, to: VisitState) -> bool:
    """Supersedes or cancels a visit: fenced, gates withdrawn, waits void. True when it had been open."""
    row = tx.run(sa.select(v.c.state, v.c.run_id).where(v.c.id == visit)).one()
    if not moves.move(tx, visit, to, ended=tx.now):
        return False
    gates.withdraw(tx, visit)
    tx.run(sa.delete(w).where(w.c.visit_id == visit))
    tx.emit(Event(f"visit.{to}"), run=row.run_id, visit=visit)
    return VisitState(row.state).open


def apply(tx: Tx, run: str, graph: Graph, found: Moves, *, comment: str = "") -> tuple[str, ...]:
    """Carries out what the token machine said. Returns visits that were open and must be proven stopped."""
    gone = [visit_id(run, k) for k in found.supersede]
    # A visit that still waits for others to stop hands that on: its heir must not start beside them either.
    query = sa.select(w.c.key).where(w.c.kind == "stop", w.c.visit_id.in_(gone)).order_by(w.c.key)
    awaited = [row[0] for row in tx.run(query)]
    closed = [visit for visit in gone if close_visit(tx, visit, VisitState.SUPERSEDED)]
    stopping = tuple(dict.fromkeys([*closed, *awaited]))
    start(tx, run, graph, found.start, after=stopping, comment=comment)
    for one in found.start:
        before = max((n for node, n in found.supersede if node == one.node), default=0)
        if before:
            blobs.hand_over(tx, visit_id(run, (one.node, before)), to=visit_id(run, (one.node, one.n)))
    return stopping


def send_back(
    tx: Tx, run: str, graph: Graph, node: str, *, comment: str, actor: Actor = SYSTEM, gate: str = "", key: str = ""
) -> tuple[str, ...]:
    """The one way back: visits downstream of ``node`` are superseded and ``node`` gets its next visit. ``gate`` is the
    one it was said at: this is its decision, the node never sees it (rule 7).

    Raises NotFound for an unknown node, Conflict when the run has ended or the node was never reached.
    """
    row = moves.run_row(tx, run)
    if row["state"] != "active":
        raise Conflict(f"The run has ended: {row['state']}", code="RUN_ENDED", next="rerun it from that node")
    if node not in graph.nodes:
        raise NotFound(
            f"The SOP has no node {node}", code="NODE_NOT_FOUND", next=f"its nodes: {', '.join(graph.nodes)}"
        )
    history = past(tx.conn, run)
    if not any(p.node == node for p in history):
        reached = [name for name in graph.nodes if any(p.node == name for p in history)]
        raise Conflict(
            f"{node} was not reached yet",
            code="NODE_NOT_REACHED",
            kept="nothing was changed",
            next=f"reached so far: {', '.join(reached)}",
        )
    if sealed := flow.sealed_by(graph, history, node):
        raise Refused(
            f"The run has passed {sealed}: it no longer goes back to {node}",
            code="SEALED",
            kept="nothing was changed",
            next=f"rerun from {node} instead: that is a new run",
        )
    if gate:
        _answer(tx, gate, comment=comment, actor=actor, key=key)
    stopping = apply(tx, run, graph, flow.send_back(graph, history, node), comment=comment)
    tx.emit(
        Event("run.sent_back", {"node": node, "comment": comment}),
        run=run,
        ticket=moves.ticket_key(tx, run),
        actor=actor,
    )
    moves.project(tx, run, actor=actor)
    return stopping


def _answer(tx: Tx, gate: str, *, comment: str, actor: Actor, key: str) -> None:
    row = tx.run(sa.select(g).where(g.c.id == gate, g.c.state == "open")).mappings().first()
    if row is None:
        return
    decision = {"gate_id": gate, "choice": "send_back", "saw": row["shows"], "note": comment, "at": tx.now}
    who = {"actor": str(actor), "door": actor.door, "key": key or f"send_back:{gate}"}
    tx.run(sa.insert(tables.decisions).values(**decision, **who))
    tx.run(sa.update(g).where(g.c.id == gate).values(state="answered"))
    tx.emit(
        Event("gate.answered", {"gate": gate, "kind": row["kind"], "choice": "send_back"}),
        run=row["run_id"],
        visit=row["visit_id"],
        ticket=moves.ticket_key(tx, row["run_id"]),
        actor=actor,
    )
