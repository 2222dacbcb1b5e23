"""What stopped a run, one after the other, and how it went on: a view over its blocked gates. And the note of a retry."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, GateKind, Permission
from beadmill.errors import Unprocessable
from beadmill.operations import _rows, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t

MOST_OF_A_NOTE: Final = 20_000  # characters (reference §1.4)
g, d, v = t.gates, t.decisions, t.visits


async def listing(ports: Ports, run: str, *, actor: Actor) -> tuple[views.OccurrenceView, ...]:
    """Oldest first; what was resolved stays. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: found(conn, run))


def found(conn: Connection, run: str) -> tuple[views.OccurrenceView, ...]:
    state = _rows.run_row(conn, run).state
    query = (
        sa.select(
            g.c.id, g.c.visit_id, g.c.detail, g.c.title, g.c.state, g.c.created,
            v.c.node, d.c.choice, d.c.actor, d.c.note, d.c.at,
        )
        .join(v, v.c.id == g.c.visit_id)
        .outerjoin(d, d.c.gate_id == g.c.id)
        .where(g.c.run_id == run, g.c.kind == GateKind.BLOCKED)
        .order_by(g.c.created, g.c.id)
    )  # fmt: skip
    begun: dict[str, str] = {
        row.created: row.node for row in conn.execute(sa.select(v.c.created, v.c.node).where(v.c.run_id == run))
    }
    return tuple(_one(n, row, begun, state) for n, row in enumerate(conn.execute(query), 1))


def _one(number: int, row: Any, begun: dict[str, str], state: str) -> views.OccurrenceView:
    detail = row.detail if isinstance(row.detail, dict) else {}
    went_back = row.choice == "send_back"
    return views.OccurrenceView(
        number=number,
        gate=row.id,
        node=row.node,
        visit=row.visit_id,
        phase=detail.get("phase"),
        code=str(detail.get("code") or ""),
        message=str(detail.get("message") or row.title),
        details=detail.get("details") or {},
        kept=str(detail.get("kept") or ""),
        at=row.created,
        state=row.state,
        resolution=row.choice or ("" if row.state == "open" else "canceled" if state == "canceled" else "withdrawn"),
        note=row.note or "",
        by=row.actor or "",
        resolved_at=row.at,
        resumed_to=None if row.choice is None else begun.get(row.at, row.node) if went_back else row.node,
    )


def checked(note: str) -> str:
    """A note for the next try, word for word. Raises Unprocessable for one of whitespace alone, or too long."""
    if note and not note.strip():
        raise Unprocessable(
            "the note holds nothing but whitespace",
            code="NOTE",
            kept="nothing was tried",
            next="write it, or retry without",
        )
    if len(note) > MOST_OF_A_NOTE:
        raise Unprocessable(
            f"the note has {len(note):,} characters, more than {MOST_OF_A_NOTE:,}",
            code="NOTE",
            kept="your input, and nothing was tried",
            next="shorten it; what is longer belongs into the ticket",
        )
    return note
