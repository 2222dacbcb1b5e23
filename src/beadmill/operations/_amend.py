"""Save and approve in one action: at the open gate, or after the approval, with what follows made anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy.engine import Connection

from beadmill.artifacts.base import Document
from beadmill.artifacts.interview import Interview
from beadmill.artifacts.prd import Prd
from beadmill.domain import flow
from beadmill.domain.machine import RunState
from beadmill.domain.values import Actor, GateKind, VisitRef
from beadmill.errors import Conflict, Invalid, Stale
from beadmill.operations import _rows
from beadmill.operations.runs import graph_of
from beadmill.store import blobs
from beadmill.store.blobs import ArtifactRow
from beadmill.store.db import Tx
from beadmill.store.journal import amends, tokens
from beadmill.store.journal import gates as journal

AMENDED = (Interview.kind, Prd.kind)  # the plan of work only in its own gate: what comes after it builds on it


def holds(conn: Connection, row: Any) -> bool:
    """Is it the version that the run goes by?"""
    newest = blobs.newest(conn, row.run_id, row.kind)
    return newest is not None and newest.ref.row == row.id


def amendable(conn: Connection, row: Any) -> bool:
    """Whether an edit of this approved version would be taken: it holds, its run is alive and not past the seal."""
    run = _rows.run_row(conn, row.run_id)
    if row.kind not in AMENDED or run.state != RunState.ACTIVE or not holds(conn, row):
        return False
    node = VisitRef.parse(row.visit_id).node
    return not flow.sealed_by(graph_of(run.sop_body), tokens.past(conn, row.run_id), node)


def way(conn: Connection, row: Any) -> str:
    """How a document is edited that no open gate shows."""
    if row.kind in AMENDED and holds(conn, row):
        return (
            f"save and approve it in one action: beadmill artifact edit {row.id} --approve; what follows is made anew"
        )
    return "send the run back to the node that makes it, then edit it at its gate"


def after_approval(tx: Tx, row: Any, doc: Document, *, actor: Actor, note: str, key: str) -> dict[str, Any]:
    """The new row, the gate that is the receipt, the visits that begin.

    Raises Conflict for a kind that is only edited at its gate, Stale when another version holds, Invalid without a
    change, and what ``amends.amend`` raises.
    """
    old = blobs.artifact(tx.conn, row.id)
    if row.kind not in AMENDED:
        raise Conflict(
            f"the {row.kind.replace('_', ' ')} can only be edited while its gate is open",
            code="NOT_AT_A_GATE",
            kept="your input",
            next="send the run back to the node that makes it, then edit it at its gate",
        )
    if not holds(tx.conn, row):
        raise _stale(tx.conn, row)
    if doc.sha256 == old.ref.sha256:
        raise Invalid("this is the version that stands approved", code="NOT_CHANGED", kept="nothing was changed")
    graph = graph_of(_rows.run_row(tx.conn, row.run_id).sop_body)
    new, gate, begun = amends.amend(tx, graph, old, doc, actor=actor, note=note, key=key)
    return {"row": new.row, "gates": [gate], "restarted": list(begun)}


def _stale(conn: Connection, row: Any) -> Stale:
    """Raised with who saved what holds."""
    newest: ArtifactRow | None = blobs.newest(conn, row.run_id, row.kind)
    said = (
        f"{newest.author} saved version {newest.version} of it at {newest.created}" if newest else "it was superseded"
    )
    details = {"row": newest.ref.row, "sha256": newest.ref.sha256, "by": newest.author} if newest else {}
    return Stale(
        f"this {row.kind} does not hold any more: {said}",
        code="ARTIFACT_STALE",
        details=details,
        kept="your input",
        next=f"compare: beadmill artifact diff {newest.ref.row}" if newest else "look at the ticket again",
    )


def at_gates(tx: Tx, gates: Sequence[str], *, actor: Actor, note: str, key: str) -> None:
    """Approves what was just saved. Raises Conflict when a gate offers no plain approval, or shows more than that: what
    nobody looked at is not approved on the way."""
    for gate in gates:
        row = journal.row_of(tx, gate)
        if len(row["shows"]) > 1:
            raise Conflict(
                f"this gate approves {' and '.join(kind.replace('_', ' ') for kind, *_ in row['shows'])} together",
                code="SHOWS_MORE",
                kept="your input; nothing was saved",
                next="save it, look at all that the gate shows, then answer the gate",
            )
        if row["kind"] != GateKind.APPROVE or "approve" not in row["choices"]:
            raise Conflict(
                f"it cannot be approved in the same action: this gate takes {', '.join(row['choices'])}",
                code="NO_PLAIN_APPROVAL",
                details={"gaps": journal.acknowledged(row["detail"]), "choices": row["choices"]},
                kept="your input; nothing was saved",
                next="save it, then answer the gate",
            )
        once = f"{key or uuid4().hex}:{gate}"
        journal.answer(tx, gate, choice="approve", etag=row["etag"], note=note, key=once, actor=actor)
