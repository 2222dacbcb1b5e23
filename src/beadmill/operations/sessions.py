"""Agent sessions and command batches: what they were given, how they ended, their log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Permission
from beadmill.errors import NotFound
from beadmill.operations import views
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import blobs
from beadmill.store import tables as t

s = t.sessions.c
CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class LogPart:
    """Whole lines of the log from ``start`` up to ``end`` (byte offsets); ``ended`` when the session is over."""

    lines: tuple[str, ...]
    start: int
    end: int
    ended: bool


async def listing(
    ports: Ports,
    *,
    actor: Actor,
    run: str = "",
    visit: str = "",
    live: bool = False,
    cursor: str = "",
    limit: int | None = None,
) -> Page[views.SessionLine]:
    """Newest first. ``live`` = only those that have not ended."""
    require(actor, Permission.READ)
    most = bounded(limit)
    columns = [(s.started, True), (s.token, True)]
    query = sa.select(t.sessions).order_by(s.started.desc(), s.token.desc()).limit(most + 1)
    for column, value in ((s.run_id, run), (s.visit_id, visit)):
        query = query.where(column == value) if value else query
    if live:
        query = query.where(s.ended.is_(None))
    if cursor:
        query = query.where(beyond(columns, decode(cursor, 2)))

    def read(conn: Connection) -> Page[views.SessionLine]:
        rows, after = cut(list(conn.execute(query)), most, ["started", "token"])
        return Page(items=tuple(views.SessionLine(**_fields(row)) for row in rows), next=after)

    return await ports.store.read(read)


def _fields(row: Any) -> dict[str, Any]:
    return {
        "token": row.token,
        "run": row.run_id,
        "visit": row.visit_id,
        "kind": row.kind,
        "seat": row.seat,
        "template": row.template,
        "subject": row.subject,
        "started": row.started,
        "ended": row.ended,
        "end": row.end.get("type") if row.end else None,
        "tokens": row.input + row.cached + row.output,
        "cost_usd": row.cost_usd,
        "cost_source": row.cost_source,
        "model": row.model,
        "seconds": row.seconds,
    }


async def show(ports: Ports, token: str, *, actor: Actor) -> views.SessionView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    size = await asyncio.to_thread(_size, log_path(ports, token))

    def read(conn: Connection) -> views.SessionView:
        row = _row(conn, token)
        brief = blobs.get_blob(conn, row.prompt_sha).decode() if row.prompt_sha else ""
        return views.SessionView(**_fields(row), ledger=row.ledger, brief=brief, result=row.end, log_bytes=size)

    return await ports.store.read(read)


def _row(conn: Connection, token: str) -> Any:
    row = conn.execute(sa.select(t.sessions).where(s.token == token)).first()
    if row is None:
        raise NotFound(f"there is no session {token}", code="SESSION_NOT_FOUND", next="beadmill session list")
    return row


async def log(ports: Ports, token: str, *, actor: Actor, after: int = 0, most: int = CHUNK) -> LogPart:
    """The lines behind byte ``after``, whole ones only, at most ``most`` bytes. Raises NotFound."""
    require(actor, Permission.READ)
    row = await ports.store.read(lambda conn: _row(conn, token))
    return await asyncio.to_thread(_part, log_path(ports, token), after, most, row.ended is not None)


def log_path(ports: Ports, token: str) -> Path | None:
    """``events.jsonl`` in the session's folder; None when it never started here."""
    session = ports.sessions.find(token)
    return session.folder / "events.jsonl" if session else None


def _size(path: Path | None) -> int:
    return path.stat().st_size if path and path.exists() else 0


def _part(path: Path | None, after: int, most: int, ended: bool) -> LogPart:
    if path is None or not path.exists():
        return LogPart((), after, after, ended)
    with path.open("rb") as file:
        file.seek(after)
        data = file.read(most)
    cut_at = data.rfind(b"\n") + 1
    lines = data[:cut_at].decode(errors="replace").splitlines()
    return LogPart(tuple(lines), after, after + cut_at, ended and cut_at == len(data) < most)


async def ticket_of_run(ports: Ports, run: str) -> str:
    """The ticket's key, "" when the run has none."""
    query = sa.select(t.tickets.c.key).join(t.runs, t.runs.c.ticket_id == t.tickets.c.id).where(t.runs.c.id == run)
    return await ports.store.read(lambda conn: conn.execute(query).scalar()) or ""
