"""A ticket begins as a draft with the next key of its project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from beadmill.domain.machine import Phase, TicketState
from beadmill.domain.values import Actor, Event
from beadmill.store import tables
from beadmill.store.db import Tx

p, t = tables.projects, tables.tickets


def insert(tx: Tx, project: int, short: str, values: Mapping[str, Any], *, actor: Actor) -> str:
    """``values`` are title, description, acceptance, priority, sop, overrides. Returns the key."""
    number = tx.run(
        sa.update(p).where(p.c.id == project).values(counter=p.c.counter + 1).returning(p.c.counter)
    ).scalar_one()
    ticket = f"{short}-{number}"
    state = {"state": TicketState.DRAFT, "status": Phase.DRAFT, "created": tx.now, "updated": tx.now}
    tx.run(sa.insert(t).values(project_id=project, key=ticket, **values, **state))
    tx.emit(Event("ticket.created", {"title": values["title"]}), ticket=ticket, actor=actor)
    return ticket
