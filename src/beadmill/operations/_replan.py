"""Whose turn it is to change a plan that is being built: a person's, while nothing of it works."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.beads import Beads
from beadmill.domain.bead import BeadState, status
from beadmill.domain.machine import Hold, RunState, VisitState
from beadmill.domain.values import Actor, Event, VisitRef
from beadmill.errors import BeadmillError, Conflict
from beadmill.operations import _rows
from beadmill.operations.runs import graph_of
from beadmill.store import blobs
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import attempts, moves

OPEN = (VisitState.READY, VisitState.RUNNING, VisitState.PARKED)
BUILD = "build"  # the kind of node that works a plan off


@dataclass(frozen=True, slots=True)
class Standing:
    """The plan that holds, where it is being built, and the beads that have landed."""

    row: int
    sha: str
    plan: Beads
    visit: str
    done: frozenset[str]


def standing(conn: Connection, run: str) -> Standing:
    """Raises Conflict when the run is over, builds nothing now, or is not paused."""
    row = _rows.run_row(conn, run)
    newest = blobs.newest(conn, run, Beads.kind)
    visit = _building(conn, run, row.sop_body)
    if row.state != RunState.ACTIVE or newest is None or not visit:
        raise Conflict(
            "this plan is not being built now",
            code="NOT_BUILDING",
            kept="your input",
            next="edit it at its gate; after the build, send the run back to build with a comment",
        )
    if row.hold == Hold.NONE and not _blocked(conn, visit):
        raise Conflict(
            "agents work by this plan",
            code="NOT_PAUSED",
            kept="your input",
            next=f"beadmill run pause {run}, then change it, then beadmill run resume {run}",
        )
    plan = Beads.parse(blobs.get_blob(conn, newest.ref.sha256))
    states = status(plan.beads, attempts.listed(conn, run))
    landed = frozenset(b.id for b in plan.beads if states[b.id] is BeadState.DONE and not b.skipped)
    return Standing(newest.ref.row, newest.ref.sha256, plan, visit, landed)


def at_work(conn: Connection, run: str) -> bool:
    """Is the run's plan being built, paused or not?"""
    row = _rows.run_row(conn, run)
    return row.state == RunState.ACTIVE and bool(_building(conn, run, row.sop_body))


def possible(conn: Connection, run: str, row: int) -> bool:
    """Would an edit of this version be taken now?"""
    try:
        return standing(conn, run).row == row
    except BeadmillError:
        return False


def save(tx: Tx, here: Standing, made: Beads, *, actor: Actor, note: str, changes: Sequence[str]) -> int:
    """The new version's row. Raises Conflict while an agent still works at a bead that would change."""
    before = {bead.id: bead.sha for bead in here.plan.beads}
    after = {bead.id: bead.sha for bead in made.beads}
    _at_rest(tx.conn, here.visit, {name for name, sha in before.items() if after.get(name) != sha})
    run = VisitRef.parse(here.visit).run
    new = blobs.put_document(tx, made, run=run, visit=here.visit, author=str(actor), parent=here.row)
    event = Event("plan.changed", {"row": new.row, "changes": list(changes), "note": note})
    tx.emit(event, run=run, visit=here.visit, ticket=moves.ticket_key(tx, run), actor=actor)
    return new.row


def _building(conn: Connection, run: str, body: str) -> str:
    nodes = [node.id for node in graph_of(body).nodes.values() if node.kind == BUILD]
    v = t.visits.c
    query = sa.select(v.id).where(v.run_id == run, v.node.in_(nodes), v.state.in_(OPEN)).order_by(v.n.desc())
    return conn.execute(query).scalar() or ""


def _blocked(conn: Connection, visit: str) -> bool:
    g = t.gates.c
    query = sa.select(g.id).where(g.visit_id == visit, g.state == "open", g.kind == "blocked")
    return conn.execute(query).first() is not None


def _at_rest(conn: Connection, visit: str, names: Collection[str]) -> None:
    s = t.sessions.c
    query = sa.select(s.token).where(s.ended.is_(None), s.token.startswith(f"{visit}/", autoescape=True))
    for (token,) in conn.execute(query):
        bead = str(token).removeprefix(f"{visit}/").partition("@")[0]
        if bead in names:
            raise Conflict(
                f"an agent still works at {bead}",
                code="BEAD_AT_WORK",
                kept="your input",
                next="wait until its turn has ended, or pause with --now",
            )


def notes(conn: Connection, run: str) -> dict[int, Any]:
    """What was said with each version that changed a plan at work, by its row."""
    e = t.events.c
    query = sa.select(e.data).where(e.run_id == run, e.kind == "plan.changed")
    return {int(data["row"]): data for (data,) in conn.execute(query)}
