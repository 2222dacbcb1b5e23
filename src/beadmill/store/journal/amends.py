"""An approved document is edited before the seal: the edit is approved with it, and what was made from it begins again."""

from __future__ import annotations

import sqlalchemy as sa

from beadmill import redact
from beadmill.artifacts.base import Document
from beadmill.domain import flow
from beadmill.domain.machine import VisitState
from beadmill.domain.sop import Graph
from beadmill.domain.values import Actor, ArtifactRef, Event, GateKind, GateRequest, VisitRef
from beadmill.errors import Conflict, Refused
from beadmill.store import blobs, tables
from beadmill.store.blobs import ArtifactRow
from beadmill.store.db import Tx
from beadmill.store.journal import gates, moves, tokens

v, g = tables.visits, tables.gates


def amend(
    tx: Tx, graph: Graph, old: ArtifactRow, doc: Document, *, actor: Actor, note: str, key: str
) -> tuple[ArtifactRef, str, tuple[str, ...]]:
    """The new version, the gate that is its receipt, and the visits that begin. The node of ``old`` is not done again.

    Raises Conflict when the run has ended or the node is still at work, Refused once the sealing node has begun.
    """
    node = VisitRef.parse(old.visit).node
    history = tokens.past(tx.conn, old.run)
    _may(tx, graph, old, node, history)
    new = blobs.put_anew(tx, doc, run=old.run, visit=old.visit, author=str(actor), parent=old.ref.row)
    gate = _receipt(tx, old, new, actor=actor, note=note, key=key)
    found = flow.after(graph, history, node)
    tokens.apply(tx, old.run, graph, found, comment=note)
    begun = tuple(tokens.visit_id(old.run, (one.node, one.n)) for one in found.start)
    tx.emit(
        Event(
            "run.amended", {"node": node, "kind": doc.kind, "from": old.ref.row, "to": new.row, "begins": list(begun)}
        ),
        run=old.run,
        ticket=moves.ticket_key(tx, old.run),
        actor=actor,
    )
    moves.project(tx, old.run, actor=actor)
    return new, gate, begun


def _may(tx: Tx, graph: Graph, old: ArtifactRow, node: str, history: tuple[flow.Past, ...]) -> None:
    state = moves.run_row(tx, old.run)["state"]
    if state != "active":
        raise Conflict(
            f"The run has ended: {state}",
            code="RUN_ENDED",
            kept="your input",
            next=f"beadmill run rerun {old.run} {node}",
        )
    if sealed := flow.sealed_by(graph, history, node):
        raise Refused(
            f"The run has passed {sealed}: its {old.ref.kind} is read-only from there on",
            code="SEALED",
            kept="your input; nothing was changed",
            next=f"beadmill run cancel {old.run}, then beadmill run rerun {old.run} {_next(graph, node)}: "
            f"in the new run it is edited with --approve until {sealed} begins",
        )
    visit = tx.run(sa.select(v.c.state).where(v.c.id == old.visit)).scalar_one()
    if not VisitState(visit).counts:
        raise Conflict(
            f"{node} is at work on its {old.ref.kind}",
            code="NOT_AT_A_GATE",
            kept="your input; nothing was changed",
            next="wait for its gate, then edit what it shows",
        )


def _next(graph: Graph, node: str) -> str:
    """A rerun from here keeps the document."""
    return next((e.target for e in graph.next_from(node) if e.target in graph.nodes), node)


def _receipt(tx: Tx, old: ArtifactRow, new: ArtifactRef, *, actor: Actor, note: str, key: str) -> str:
    """A gate of its own, answered as it is made: what was approved, by whom, from which version."""
    edits = sa.select(sa.func.count()).select_from(g).where(g.c.visit_id == old.visit, g.c.id.contains("/amend#"))
    gate = f"{old.visit}/amend#{tx.run(edits).scalar_one()}"
    title = f"Edited after its approval: {new.kind.replace('_', ' ')}"
    detail = {"edited": {"from": old.ref.row, "before": old.ref.sha256, "after": new.sha256}}
    request = GateRequest(GateKind.APPROVE, title, ("approve",), shows=(new,), detail=detail)
    gates.insert(tx, gate, old.visit, old.run, request)
    note = redact.ours().work(note)
    gates.decide(tx, gate, choice="approve", payload=None, note=note, key=key or gate, actor=actor)
    return gate
