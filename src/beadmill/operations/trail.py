"""The trail: every decision, edit and skip of a run or ticket, a view over what the journal keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Permission, VisitRef
from beadmill.errors import Invalid
from beadmill.operations import _replan, _rows, _skips, gates, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t

a, d, e, g = t.artifacts.c, t.decisions.c, t.events.c, t.gates.c
COURSE = {"run.held": "hold", "run.resumed": "resume", "run.canceled": "cancel", "run.sent_back": "send_back"}


async def listing(ports: Ports, *, actor: Actor, run: str = "", ticket: str = "") -> views.TrailView:
    """Oldest first: of one run, or of all runs of a ticket. Raises NotFound, Invalid without either."""
    require(actor, Permission.READ)
    if not run and not ticket:
        raise Invalid("say which run or ticket", code="TRAIL_OF_WHAT", next="run=… or ticket=…")
    return await ports.store.read(lambda conn: _trail(conn, run, ticket))


def _trail(conn: Connection, run: str, ticket: str) -> views.TrailView:
    runs = [run] if run else _runs(conn, ticket)
    if run:
        _rows.run_row(conn, run)
    lines = [line for one in runs for line in (*_edits(conn, one), *_skips.skips(conn, one), *_decisions(conn, one))]
    lines += [line for one in runs for line in _course(conn, one)]
    return views.TrailView(run=run or None, ticket=ticket or None, lines=tuple(sorted(lines, key=lambda line: line.at)))


def _runs(conn: Connection, ticket: str) -> list[str]:
    row = _rows.ticket_row(conn, ticket)
    query = sa.select(t.runs.c.id).where(t.runs.c.ticket_id == row.id).order_by(t.runs.c.created)
    return [str(one) for (one,) in conn.execute(query)]


def _decisions(conn: Connection, run: str) -> Iterator[views.TrailLine]:
    """A send back is told by its event, which knows where to."""
    query = sa.select(t.decisions, g.title, t.visits.c.node).join(t.gates, g.id == d.gate_id)
    query = query.join(t.visits, t.visits.c.id == g.visit_id)
    kinds: dict[str, views.TrailKind] = {"policy": "automatic", "timeout": "expiry", "person": "decision"}
    for row in conn.execute(query.where(g.run_id == run, d.choice != "send_back").order_by(d.at)):
        yield views.TrailLine(
            kind=kinds[gates.made_by(row)],
            at=row.at,
            by=row.actor,
            door=row.door,
            run=run,
            node=row.node,
            gate=row.gate_id,
            title=row.title,
            choice=row.choice,
            reason=row.note,
            saw=_rows.shown(conn, row.saw),
            acknowledged=gates.acknowledged(row),
            details=_said(row),
        )


def _said(row: Any) -> dict[str, Any]:
    """What was answered, where it is short enough to be read in a line: decided contradictions, limits, words."""
    payload = row.payload if isinstance(row.payload, dict) else {}
    return {
        name: payload[name] for name in ("decisions", "text", "answer", "usd", "tokens", "minutes") if name in payload
    }


def _edits(conn: Connection, run: str) -> Iterator[views.TrailLine]:
    """Versions that people saved. ``after_ai``: the text they edited goes back to one that Beadmill or an agent made."""
    rows = {row.id: row for row in conn.execute(sa.select(t.artifacts).where(a.run_id == run).order_by(a.id))}
    plans = _replan.notes(conn, run)
    for row in rows.values():
        parent = rows.get(row.parent)
        if not row.author.startswith("user:") or parent is None:
            continue
        yield views.TrailLine(
            kind="edit",
            at=row.created,
            by=row.author,
            run=run,
            node=VisitRef.parse(row.visit_id).node,
            title=row.kind,
            reason=str(plans.get(row.id, {}).get("note", "")),
            details={
                **({"changes": plans[row.id]["changes"]} if row.id in plans else {}),
                "row": row.id,
                "version": row.version,
                "before": parent.sha256,
                "after": row.sha256,
                "from_row": parent.id,
                "after_ai": any(not one.author.startswith("user:") for one in _line(rows, parent)),
            },
        )


def _line(rows: dict[int, Any], row: Any) -> Iterator[Any]:
    """The row and what it came from. A parent is older than its child, so this ends."""
    at: Any = row
    while at is not None:
        yield at
        at = rows.get(at.parent) if at.parent is not None and at.parent < at.id else None


def _course(conn: Connection, run: str) -> Iterator[views.TrailLine]:
    """Where the run was sent, held, started anew or ended by somebody."""
    wanted = (*COURSE, "run.started", "run.reason")
    query = sa.select(t.events).where(e.run_id == run, e.kind.in_(wanted)).order_by(e.seq)
    events = list(conn.execute(query))
    reasons = {one.at: one.data.get("reason", "") for one in events if one.kind == "run.reason"}
    sent = _sent(conn, run)
    for one in events:
        kind = _kind(one)
        if kind is None:
            continue
        details = {"to": one.data["node"]} if kind == "send_back" else {}
        yield views.TrailLine(
            kind=kind,
            at=one.at,
            by=one.actor,
            run=run,
            gate=sent.get(one.at) if kind == "send_back" else None,
            choice=str(one.data.get("hold", "")),
            reason=str(one.data.get("comment") or reasons.get(one.at, "")),
            details={"parent": one.data["parent"]} if kind == "rerun" else details,
        )


def _kind(event: Any) -> views.TrailKind | None:
    if event.kind == "run.started":
        return "rerun" if event.data.get("parent") else None
    found: views.TrailKind | None = COURSE.get(event.kind)  # type: ignore[assignment]
    return found


def _sent(conn: Connection, run: str) -> dict[str, str]:
    """The moment of a send back → the gate at which it was said: both are written in one commit."""
    query = sa.select(d.at, d.gate_id).join(t.gates, g.id == d.gate_id).where(g.run_id == run, d.choice == "send_back")
    return {row.at: row.gate_id for row in conn.execute(query)}
