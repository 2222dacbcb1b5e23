"""Rows → the councils of a project, with what became of what they made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.base import KINDS, Document
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.council import CouncilDrafts, CouncilRefined, CouncilVotes
from beadmill.artifacts.prd import Prd
from beadmill.council.record import Held
from beadmill.domain.change import ChangeStatus
from beadmill.domain.machine import AttemptState, VisitState
from beadmill.operations import _rows, views
from beadmill.store import tables as t

a, v = t.artifacts.c, t.visits.c
LEFT = (CouncilDrafts.kind, CouncilVotes.kind, CouncilRefined.kind)


@dataclass(frozen=True, slots=True)
class Found:
    """``run`` and ``visit`` are those in which the council sat."""

    ticket: str | None
    run: str
    node: str
    visit: str
    created: str
    held: Held


@dataclass(frozen=True, slots=True)
class _Sat:
    """``first`` is the row of the visit that sat, ``last`` of the newest run that stands on it (a rerun keeps it)."""

    first: Any
    last: Any

    @property
    def made(self) -> Sequence[int]:
        return self.last.made if VisitState(self.last.state).counts else ()


def found(conn: Connection, project: int, *, most: int) -> tuple[tuple[Found, ...], bool]:
    """Newest first, and whether older ones were left out."""
    sat = _sat(conn, project)
    chosen, more = sat[:most], len(sat) > most
    left = _left(conn, [one.first.visit_id for one in chosen])
    approved = _approved(conn, [row for one in chosen for row in one.made])
    landed = _landed(conn, {one.last.run_id for one in chosen})
    out = []
    for one in chosen:
        documents = left[one.first.visit_id]
        held = Held(
            drafts=documents[CouncilDrafts.kind],
            votes=documents.get(CouncilVotes.kind),
            refined=documents.get(CouncilRefined.kind),
            approved=next((approved[row] for row in one.made if row in approved), None),
            landed=landed.get(one.last.run_id, {}),
        )
        first = one.first
        out.append(Found(first.key, first.run_id, first.node, first.visit_id, first.created, held))
    return tuple(out), more


def _sat(conn: Connection, project: int) -> list[_Sat]:
    """Every council of the project, newest first. A rerun copies what it keeps: a copy names the row it came from."""
    query = (
        sa.select(a.id, a.parent, a.visit_id, a.run_id, v.node, v.state, v.made, v.created, t.tickets.c.key)
        .join(t.visits, v.id == a.visit_id)
        .join(t.runs, t.runs.c.id == a.run_id)
        .outerjoin(t.tickets, t.tickets.c.id == t.runs.c.ticket_id)
        .where(t.runs.c.project_id == project, a.kind == CouncilDrafts.kind)
        .order_by(a.id)
    )
    rows = {row.visit_id: row for row in conn.execute(query)}  # the newest of each visit
    root: dict[int, int] = {}
    sat: dict[int, _Sat] = {}
    for row in sorted(rows.values(), key=lambda one: one.id):
        root[row.id] = root.get(row.parent, row.id)
        first = sat.get(root[row.id])
        sat[root[row.id]] = _Sat(first.first if first else row, row)
    return sorted(sat.values(), key=lambda one: one.first.id, reverse=True)


def _left(conn: Connection, visits: Sequence[str]) -> Mapping[str, dict[str, Any]]:
    """By visit and kind, the newest of each."""
    out: dict[str, dict[str, Any]] = defaultdict(dict)
    query = sa.select(a.visit_id, sa.func.max(a.id)).where(a.visit_id.in_(visits), a.kind.in_(LEFT))
    newest = {row: visit for visit, row in conn.execute(query.group_by(a.visit_id, a.kind))}
    for row, document in _documents(conn, newest).items():
        out[newest[row]][document.kind] = document
    return out


def _documents(conn: Connection, rows: Iterable[int], kinds: Sequence[str] = LEFT) -> dict[int, Document]:
    query = sa.select(a.id, a.kind, t.blobs.c.data).join(t.blobs, t.blobs.c.sha256 == a.sha256)
    query = query.where(a.id.in_(list(rows)), a.kind.in_(kinds))
    return {row: KINDS[kind].parse(data) for row, kind, data in conn.execute(query)}


def _approved(conn: Connection, rows: Iterable[int]) -> dict[int, Document]:
    """What the councils' visits stand for."""
    return _documents(conn, rows, (Prd.kind, Beads.kind))


def _landed(conn: Connection, runs: Iterable[str]) -> dict[str, dict[str, frozenset[str]]]:
    """By run that was merged: each bead that landed, with what it refers to in any plan of the run."""
    c, b = t.changes.c, t.bead_attempts.c
    merged = sa.select(c.run_id).where(c.run_id.in_(list(runs)), c.state == ChangeStatus.MERGED)
    done = sa.select(b.run_id, b.bead).where(b.run_id.in_(merged), b.state == AttemptState.DONE)
    out: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for run, bead in conn.execute(done):
        out[run][bead] = frozenset()
    for run, plan in _plans(conn, list(out)):
        for one in plan.beads:
            if one.id in out[run]:
                out[run][one.id] |= frozenset(one.prd_refs)
    return out


def _plans(conn: Connection, runs: Sequence[str]) -> Iterable[tuple[str, Beads]]:
    """What finished visits stand for."""
    living = sa.select(v.run_id, v.made).where(v.run_id.in_(runs), v.state.in_([s for s in VisitState if s.counts]))
    of = {row: run for run, made in conn.execute(living) for row in made}
    for row, plan in _documents(conn, of, (Beads.kind,)).items():
        if isinstance(plan, Beads):
            yield of[row], plan


def spent(conn: Connection, councils: Sequence[Found]) -> dict[str, views.Spend]:
    """By label."""
    s = t.sessions.c
    return _rows.spend_by(conn, s.seat, s.visit_id.in_([one.visit for one in councils]))
