"""Whose a folder is, and whether anything of it may still be needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.machine import RunState, TicketState
from beadmill.errors import Conflict
from beadmill.store import tables as t

k, r, s = t.tickets.c, t.runs.c, t.sessions.c


@dataclass(frozen=True, slots=True)
class Owner:
    """A ticket with its runs. ``busy`` says why it may still need what it has; "" = it has ended. ``ended`` is when."""

    key: str
    repository: str
    workspace: str
    busy: str
    ended: str
    merged: str  # the commit that brought the change to the base, "" = it was not merged
    base: str


def owners(conn: Connection, key: str = "") -> Mapping[str, Owner]:
    """By the ticket's key: every ticket that has run, or the one."""
    query = sa.select(t.runs, k.key, k.state.label("ticket_state")).join(t.tickets, k.id == r.ticket_id)
    query = query.where(k.key == key) if key else query
    live = {run for (run,) in conn.execute(sa.select(s.run_id).where(s.ended.is_(None)).distinct())}
    changes = sa.select(t.changes.c.run_id, t.changes.c.merge_sha, t.changes.c.base)
    merged = {run: (sha or "", base) for run, sha, base in conn.execute(changes)}
    rows: dict[str, list[Any]] = {}
    for row in conn.execute(query.order_by(r.created, r.id)):
        rows.setdefault(row.key, []).append(row)
    return {one: _owner(one, found, live, merged) for one, found in rows.items()}


def _owner(key: str, runs: Sequence[Any], live: set[str], merged: Mapping[str, tuple[str, str]]) -> Owner:
    last = runs[-1]
    busy = ""
    if last.ticket_state not in (TicketState.COMPLETED, TicketState.CANCELED):
        busy = f"{key} has not ended"
    elif any(run.state == RunState.ACTIVE or run.id in live for run in runs):
        busy = f"something of {key} still runs"
    done = last.state == RunState.COMPLETED
    sha, base = merged.get(last.id, ("", ""))
    return Owner(
        key=key,
        repository=last.work.get("repository", ""),
        workspace=last.work.get("workspace", ""),
        busy=busy,
        ended=max((run.ended or "" for run in runs), default=""),
        merged=sha if done else "",
        base=base,
    )


def check_ended(conn: Connection, key: str) -> None:
    """Raises Conflict when the ticket may need again what it has. A ticket that no row knows has ended."""
    found = owners(conn, key).get(key)
    if found is not None and found.busy:
        raise Conflict(found.busy, code="BUSY")
