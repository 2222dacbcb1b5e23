"""Rows to views: the joins that several nouns share. Plain reads on one connection."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain import machine
from beadmill.domain.machine import AttemptState, Phase
from beadmill.domain.price import Source
from beadmill.errors import NotFound
from beadmill.operations import views
from beadmill.store import tables as t

OPEN = "open"


def spend(row: Any) -> views.Spend:
    """Of a run's row; all null when there is no run."""
    return views.Spend(
        tokens=row.tokens or 0,
        cost_usd=row.cost_usd,
        unpriced=row.unpriced or 0,
        agent_seconds=row.agent_seconds or 0,
    )


def spend_by(conn: Connection, column: sa.ColumnElement[str], *where: sa.ColumnElement[bool]) -> dict[str, views.Spend]:
    """What sessions spent, summed by ``column``."""
    s = t.sessions.c
    unpriced = sa.func.sum(sa.case((s.cost_source == Source.UNPRICED, 1), else_=0))
    sums = (sa.func.sum(s.input + s.cached + s.output), sa.func.sum(s.cost_usd), unpriced, sa.func.sum(s.seconds))
    return {
        name: views.Spend(tokens=tokens or 0, cost_usd=usd, unpriced=blind or 0, agent_seconds=seconds or 0)
        for name, tokens, usd, blind, seconds in conn.execute(sa.select(column, *sums).where(*where).group_by(column))
    }


def total(parts: Iterable[views.Spend]) -> views.Spend:
    every = list(parts)
    priced = [p.cost_usd for p in every if p.cost_usd is not None]
    return views.Spend(
        tokens=sum(p.tokens for p in every),
        cost_usd=sum(priced) if priced else None,
        unpriced=sum(p.unpriced for p in every),
        agent_seconds=sum(p.agent_seconds for p in every),
    )


# --- tickets ------------------------------------------------------------------------------------------------------
def ticket_query() -> sa.Select[Any]:
    return (
        sa.select(
            t.tickets,
            t.projects.c.short,
            t.runs.c.hold,
            t.runs.c.tokens,
            t.runs.c.cost_usd,
            t.runs.c.unpriced,
            t.runs.c.agent_seconds,
        )
        .join(t.projects, t.projects.c.id == t.tickets.c.project_id)
        .outerjoin(t.runs, t.runs.c.id == t.tickets.c.run_id)
    )


def ticket_row(conn: Connection, key: str) -> Any:
    row = conn.execute(ticket_query().where(t.tickets.c.key == key)).first()
    if row is None:
        raise NotFound(f"there is no ticket {key}", code="TICKET_NOT_FOUND", next="beadmill ticket list")
    return row


def ticket_lines(conn: Connection, rows: Sequence[Any]) -> list[views.TicketLine]:
    runs = [row.run_id for row in rows if row.run_id]
    waits = open_gate_counts(conn, runs)
    beads = bead_counts(conn, runs)
    return [_ticket_line(row, waits.get(row.run_id, 0), beads.get(row.run_id, views.BeadCount())) for row in rows]


def _ticket_line(row: Any, waits: int, beads: views.BeadCount) -> views.TicketLine:
    return views.TicketLine(
        key=row.key,
        project=row.short,
        title=row.title,
        priority=row.priority,
        sop=row.sop,
        state=row.state,
        status=row.status,
        column=column_of(row.status, asked=waits > 0),
        run=row.run_id,
        hold=row.hold or "none",
        beads=beads,
        spend=spend(row),
        waits=waits,
        created=row.created,
        updated=row.updated,
    )


def column_of(status: str, *, asked: bool) -> views.Column:
    """An unknown stored status is kept and shown under what is in progress, never guessed away."""
    known = status in {p.value for p in Phase}
    return machine.column(Phase(status) if known else Phase.CODING, asked=asked)


def asked() -> sa.ColumnElement[bool]:
    """A gate of the ticket's current run is open."""
    return sa.exists().where(t.gates.c.run_id == t.tickets.c.run_id, t.gates.c.state == OPEN)


def in_column(column: views.Column) -> sa.ColumnElement[bool]:
    """As ``column_of``, in SQL."""
    status = t.tickets.c.status
    elsewhere = [p for p in Phase if machine.column(p) != "in_progress"]
    mine = [p for p in Phase if machine.column(p) == column]
    if column == "in_progress":
        return sa.and_(status.not_in(elsewhere), sa.not_(asked()))
    if column == "needs_input":
        return sa.or_(status.in_(mine), sa.and_(status.not_in(elsewhere), asked()))
    return status.in_(mine)


def open_gate_counts(conn: Connection, runs: Sequence[str]) -> dict[str, int]:
    query = (
        sa.select(t.gates.c.run_id, sa.func.count())
        .where(t.gates.c.run_id.in_(runs), t.gates.c.state == OPEN)
        .group_by(t.gates.c.run_id)
    )
    return {row[0]: row[1] for row in conn.execute(query)}


# --- beads --------------------------------------------------------------------------------------------------------
def plan_of(conn: Connection, run: str) -> list[dict[str, Any]]:
    """The newest plan as JSON records, [] before there is one."""
    row = _plans(conn, [run]).get(run)
    return row or []


def _plans(conn: Connection, runs: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    newest = (
        sa.select(t.artifacts.c.run_id, sa.func.max(t.artifacts.c.version).label("version"))
        .join(t.visits, t.visits.c.id == t.artifacts.c.visit_id)
        .where(t.artifacts.c.run_id.in_(runs), t.artifacts.c.kind == "beads", t.visits.c.state != "superseded")
        .group_by(t.artifacts.c.run_id)
        .subquery()
    )
    query = (
        sa.select(t.artifacts.c.run_id, t.blobs.c.data)
        .join(newest, sa.and_(newest.c.run_id == t.artifacts.c.run_id, newest.c.version == t.artifacts.c.version))
        .join(t.blobs, t.blobs.c.sha256 == t.artifacts.c.sha256)
        .where(t.artifacts.c.kind == "beads")
    )
    return {run: json.loads(data)["beads"] for run, data in conn.execute(query)}


def bead_counts(conn: Connection, runs: Sequence[str]) -> dict[str, views.BeadCount]:
    """Done of total per run. Done is an attempt that is done; the hash is compared on the bead pages only."""
    if not runs:
        return {}
    done: dict[str, set[str]] = defaultdict(set)
    query = sa.select(t.bead_attempts.c.run_id, t.bead_attempts.c.bead).where(
        t.bead_attempts.c.run_id.in_(runs), t.bead_attempts.c.state == AttemptState.DONE
    )
    for run, bead in conn.execute(query):
        done[run].add(bead)
    return {run: _count(plan, done[run]) for run, plan in _plans(conn, runs).items()}


def _count(plan: Iterable[dict[str, Any]], done: set[str]) -> views.BeadCount:
    beads = list(plan)
    finished = sum(1 for b in beads if b.get("skipped") or b["id"] in done)
    return views.BeadCount(done=finished, total=len(beads))


# --- gates --------------------------------------------------------------------------------------------------------
def gate_query() -> sa.Select[Any]:
    return (
        sa.select(t.gates, t.visits.c.node, t.tickets.c.key, t.projects.c.short)
        .join(t.visits, t.visits.c.id == t.gates.c.visit_id)
        .join(t.runs, t.runs.c.id == t.gates.c.run_id)
        .outerjoin(t.tickets, t.tickets.c.id == t.runs.c.ticket_id)
        .outerjoin(t.projects, t.projects.c.id == t.runs.c.project_id)
    )


def gate_row(conn: Connection, gate: str) -> Any:
    row = conn.execute(gate_query().where(t.gates.c.id == gate)).first()
    if row is None:
        raise NotFound(f"there is no gate {gate}", code="GATE_NOT_FOUND", next="beadmill gate list")
    return row


def gate_line(row: Any) -> views.GateLine:
    return views.GateLine(**gate_fields(row))


def gate_fields(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "title": row.title,
        "ticket": row.key,
        "project": row.short,
        "run": row.run_id,
        "node": row.node,
        "choices": tuple(row.choices),
        "state": row.state,
        "etag": row.etag,
        "lapse": row.lapse,
        "lapse_at": row.lapse_at,
        "created": row.created,
        "answer_with": answer_with(row),
    }


def answer_with(row: Any) -> str:
    """The command a person types to answer this gate."""
    if row.kind == "interview" and row.key:
        return f"beadmill interview answer {quote(row.key)}"
    if row.kind == "qa" and row.key:
        return f"beadmill qa show {quote(row.key)}"
    first = row.choices[0] if row.choices else "approve"
    return f"beadmill gate answer {quote(row.id)} {quote(first)}"


def open_gates(conn: Connection, *where: sa.ColumnElement[bool]) -> list[views.GateLine]:
    query = gate_query().where(t.gates.c.state == OPEN, *where).order_by(t.gates.c.created, t.gates.c.id)
    return [gate_line(row) for row in conn.execute(query)]


def shown(conn: Connection, shows: Sequence[Sequence[Any]]) -> tuple[views.ShownArtifact, ...]:
    """``shows`` is [[kind, row, sha256], …] as gates and decisions keep it."""
    ids = [int(row) for _kind, row, _sha in shows]
    rows = {r.id: r for r in conn.execute(sa.select(t.artifacts).where(t.artifacts.c.id.in_(ids)))}
    return tuple(
        views.ShownArtifact(
            row=i,
            kind=rows[i].kind,
            version=rows[i].version,
            sha256=rows[i].sha256,
            author=rows[i].author,
            created=rows[i].created,
        )
        for i in ids
        if i in rows
    )


# --- runs ---------------------------------------------------------------------------------------------------------
def run_query() -> sa.Select[Any]:
    return (
        sa.select(t.runs, t.tickets.c.key, t.projects.c.short)
        .outerjoin(t.tickets, t.tickets.c.id == t.runs.c.ticket_id)
        .outerjoin(t.projects, t.projects.c.id == t.runs.c.project_id)
    )


def run_row(conn: Connection, run: str) -> Any:
    row = conn.execute(run_query().where(t.runs.c.id == run)).first()
    if row is None:
        raise NotFound(f"there is no run {run}", code="RUN_NOT_FOUND", next="beadmill run list")
    return row


def run_fields(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "ticket": row.key,
        "project": row.short,
        "sop": row.sop,
        "state": row.state,
        "hold": row.hold,
        "parent": row.parent,
        "spend": spend(row),
        "created": row.created,
        "ended": row.ended,
    }


def run_line(row: Any) -> views.RunLine:
    return views.RunLine(**run_fields(row))


def last_seq(conn: Connection) -> int:
    return conn.execute(sa.select(t.counters.c.value).where(t.counters.c.name == "events")).scalar() or 0
