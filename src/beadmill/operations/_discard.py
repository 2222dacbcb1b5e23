"""What a canceled ticket leaves, removed because a person asked: its worktrees, its logs, or the ticket itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.machine import TicketState
from beadmill.domain.values import Actor, Event
from beadmill.errors import Conflict
from beadmill.operations import _ended, _rows, _stored, _survey, clean
from beadmill.operations._survey import Candidate
from beadmill.operations.ports import Ports
from beadmill.store import tables as t
from beadmill.store.db import Tx

Part = Literal["content", "log", "ticket"]


def check(conn: Connection, ticket: str, parts: Sequence[Part]) -> None:
    """Before anything is canceled. Raises Conflict when the ticket itself shall go and has run."""
    row = _rows.ticket_row(conn, ticket)
    if "ticket" in parts and row.run_id is not None:
        raise Conflict(
            f"{ticket} has run: its decisions and documents stay",
            code="TICKET_HAS_RUN",
            kept="nothing was changed",
            next=f"beadmill ticket cancel {ticket} --delete content --delete log",
        )


async def discard(ports: Ports, ticket: str, parts: Sequence[Part], *, actor: Actor) -> None:
    """Of a canceled ticket. Commits and uncommitted work stay on branches and undo refs. Done twice, nothing is left to
    do. Raises Conflict naming what had to stay."""
    owners = {key: one for key, one in (await ports.store.read(_ended.owners)).items() if key == ticket}
    found: list[Candidate] = []
    if "content" in parts:
        there = [place for place in _survey.places(ports, owners) if place.key == ticket]
        found += [one for place in there async for one in _survey.of_place(place)]
    if "log" in parts:
        found += [one async for one in _stored.logs(ports, owners, 0)]
    lines = [await clean.remove(ports, one.item.id, one.item.mark, one, lose=True, actor=actor) for one in found]
    stays = [line for line in lines if not line.removed]
    if stays:
        raise Conflict(
            f"{ticket} is canceled; not all of it could be removed: {'; '.join(f'{s.path}: {s.said}' for s in stays)}",
            code="NOT_ALL_REMOVED",
            kept=f"{len(stays)} of {len(lines)} things",
            next="beadmill clean",
        )
    if "ticket" in parts:
        await ports.store.write(lambda tx: _drop(tx, ticket, actor))


def _drop(tx: Tx, ticket: str, actor: Actor) -> None:
    k = t.tickets.c
    gone = tx.run(
        sa.delete(t.tickets).where(k.key == ticket, k.state == TicketState.CANCELED, k.run_id.is_(None))
    ).rowcount
    if gone:
        tx.emit(Event("ticket.removed", {}), ticket=ticket, actor=actor)
