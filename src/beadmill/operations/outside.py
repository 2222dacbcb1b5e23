"""Changes that other hands merged or closed: the waiting gate is answered by what happened (reference §9.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.change import ChangeRef, ChangeStatus
from beadmill.domain.values import SYSTEM, GateKind
from beadmill.engine.port import Work
from beadmill.errors import BeadmillError
from beadmill.forges.contract import Forge
from beadmill.forges.news import news
from beadmill.operations.ports import Ports
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import gates

log = logging.getLogger("beadmill.outside")
EVERY = 30.0  # seconds
LOOK = "look"
NEWS = "something came up on the forge"
LONGEST = 300.0  # after failures: 60, doubled up to this
CHOICES = {ChangeStatus.MERGED: "merge", ChangeStatus.CLOSED: "close"}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A merge gate that is open, with its change."""

    gate: str
    work: Work
    number: int
    known: str = ""  # digest of the news that the gate shows
    handled: tuple[str, ...] = ()


@dataclass(slots=True)
class Outside:
    """Looks at the forge of every change that waits for a person."""

    ports: Ports
    forge: Callable[[Work], Forge]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    failures: int = field(default=0)

    async def serve(self) -> None:
        while True:
            await self.look()
            await self.pause(min(EVERY * 2 ** min(self.failures, 8), LONGEST))

    async def look(self) -> int:
        """How many gates were answered. A forge that does not answer is asked again later."""
        answered = 0
        failed = False
        for waiting in await self.ports.store.read(_waiting):
            try:
                choice = await self._happened(waiting)
            except (BeadmillError, OSError) as error:
                log.warning("change %s of %s: %s", waiting.number, waiting.work.key, error)
                failed = True
                continue
            if choice:
                answered += await self.ports.store.write(
                    lambda tx, gate=waiting.gate, choice=choice: _answer(tx, gate, choice)  # type: ignore[misc]
                )
        self.failures = self.failures + 1 if failed else 0
        if answered:
            self.ports.engine.ring()
        return answered

    async def _happened(self, waiting: Waiting) -> str:
        """The choice that what happened comes to, "" for nothing. News only make the gate show them: what becomes of
        them is a person's decision."""
        forge, ref = self.forge(waiting.work), ChangeRef(waiting.number)
        state = await forge.read(ref)
        if state.change.status in CHOICES:
            return CHOICES[state.change.status]
        found = await news(forge, ref, state, handled=waiting.handled)
        return LOOK if found.digest not in ("", waiting.known) else ""


def _waiting(conn: Connection) -> list[Waiting]:
    query = (
        sa.select(t.gates.c.id, t.gates.c.detail, t.runs.c.work, t.changes.c.number)
        .join(t.runs, t.runs.c.id == t.gates.c.run_id)
        .join(t.changes, t.changes.c.run_id == t.runs.c.id)
        .where(t.gates.c.kind == GateKind.MERGE, t.gates.c.state == "open")
    )
    return [_one(row) for row in conn.execute(query)]


def _one(row: Any) -> Waiting:
    detail = row.detail or {}
    known = str((detail.get("news") or {}).get("digest", ""))
    return Waiting(row.id, Work(**row.work), row.number, known, tuple(detail.get("handled") or ()))


def _answer(tx: Tx, gate: str, choice: str) -> int:
    """Nothing when a person was faster."""
    row = tx.run(
        sa.select(t.gates.c.etag, t.gates.c.choices).where(t.gates.c.id == gate, t.gates.c.state == "open")
    ).first()
    if row is None or choice not in row.choices:
        return 0
    gates.answer(
        tx,
        gate,
        choice=choice,
        etag=row.etag,
        note=NEWS if choice == LOOK else "done outside Beadmill",
        key=f"outside:{gate}",
        actor=SYSTEM,
    )
    return 1
