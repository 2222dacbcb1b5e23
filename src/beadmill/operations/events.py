"""Events since a sequence number: what every live view resumes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Permission
from beadmill.errors import Invalid
from beadmill.operations import _rows, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t

e = t.events.c
MOST = 500


async def since(
    ports: Ports, *, actor: Actor, topics: Sequence[str] = ("board",), seq: int = 0, limit: int = MOST
) -> views.EventsView:
    """Events of ``topics`` behind ``seq``, oldest first.

    A topic is ``board`` (tickets, gates, runs, projects), ``agents``, ``run:<id>``, ``ticket:<key>`` or ``all``. ``gap`` is set when
    ``seq`` lies in the future or before the oldest event kept: the caller reads its page anew. Raises Invalid.
    """
    require(actor, Permission.READ)
    wanted = where(topics)
    return await ports.store.read(lambda conn: _since(conn, wanted, seq, min(limit, MOST)))


async def newest(ports: Ports, *, actor: Actor) -> int:
    """The newest sequence number: a page that is read now follows behind it."""
    require(actor, Permission.READ)
    return await ports.store.read(_rows.last_seq)


def where(topics: Sequence[str]) -> sa.ColumnElement[bool]:
    options = [_topic(topic) for topic in topics]
    if not options:
        raise Invalid("name at least one topic", code="TOPICS", next="board, agents, run:<id>, ticket:<key> or all")
    return sa.or_(*options)


BOARD = ("ticket.%", "gate.%", "run.%", "project.%")


def _topic(topic: str) -> sa.ColumnElement[bool]:
    kind, _, value = topic.partition(":")
    match kind, bool(value):
        case "all", False:
            return sa.true()
        case "board", False:
            return sa.or_(*(e.kind.like(pattern) for pattern in BOARD))
        case "agents", False:
            return e.kind.like("agent.%")
        case "run", True:
            return e.run_id == value
        case "ticket", True:
            return e.ticket == value
    raise Invalid(f"{topic!r} is not a topic", code="TOPICS", next="board, agents, run:<id>, ticket:<key> or all")


def _since(conn: Connection, wanted: sa.ColumnElement[bool], seq: int, limit: int) -> views.EventsView:
    last = _rows.last_seq(conn)
    oldest = conn.execute(sa.select(sa.func.min(e.seq))).scalar() or last + 1
    gap = seq > last or (seq > 0 and seq < oldest - 1)
    if gap:
        return views.EventsView(events=(), seq=last, gap=True)
    query = sa.select(t.events).where(e.seq > seq, e.seq <= last, wanted).order_by(e.seq).limit(limit + 1)
    rows = list(conn.execute(query))
    found = tuple(_view(row) for row in rows[:limit])
    return views.EventsView(events=found, seq=found[-1].seq if len(rows) > limit else last, gap=False)


def _view(row: Any) -> views.EventView:
    return views.EventView(
        seq=row.seq,
        kind=row.kind,
        run=row.run_id,
        visit=row.visit_id,
        ticket=row.ticket,
        actor=row.actor,
        data=row.data,
        at=row.at,
    )
