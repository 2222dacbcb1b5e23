"""The session watcher: books each end once, and lets a visit go on when what it replaces has provably stopped."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import sqlalchemy as sa

from beadmill.domain.ended import Ended, Lost, Ran, SessionRef, Stopped
from beadmill.domain.values import Usage
from beadmill.processes.contract import Session, Sessions
from beadmill.processes.wire import encode_end
from beadmill.store import tables
from beadmill.store.db import Store
from beadmill.store.journal import moves, sessions

log = logging.getLogger(__name__)
QUICK, SLOW = 0.05, 1.0  # seconds between looks at folders: while sessions run, and while none does


@dataclass(slots=True)
class Watcher:
    """One per daemon. Looks at the folders of its own open sessions only; parked runs cost nothing."""

    store: Store
    sessions: Sessions
    host: str
    ring: Callable[[], None]
    halt: Callable[[str, str], Awaitable[None]]
    _busy: bool = False

    async def serve(self) -> None:
        async for _ in self.store.events.subscribe(every=lambda: QUICK if self._busy else SLOW):
            await self._release_stopped()
            self._busy = await self._look()

    async def _look(self) -> bool:
        """Books what ended. True while any session of ours is open."""
        tokens = await self.store.read(lambda conn: sessions.open_tokens(conn, host=self.host))
        for token in tokens:
            session = self.sessions.find(token)
            if session is not None and session.ended() is not None:
                if isinstance(session.ended(), Lost):
                    await session.stop("its runner is gone")  # nothing may go on in a tree that somebody else gets
                await self.book(token, session)
        return bool(tokens)

    async def book(self, token: str, session: Session | None) -> None:
        """Never started (no folder) counts as stopped."""
        end = session.ended() if session is not None else None
        booked: Ended | Ran | Lost = end if end is not None else Stopped(session=SessionRef(token))
        usage, seconds = _bill(booked)
        if await self.store.write(
            lambda tx: sessions.book(tx, token, encode_end(booked), usage=usage, seconds=seconds)
        ):
            self.ring()

    async def _release_stopped(self) -> None:
        """Visits that wait for the proven stop of what they replace."""
        w = tables.waits
        query = sa.select(w.c.key).where(w.c.kind == "stop").distinct()
        for visit in await self.store.read(lambda conn: [row[0] for row in conn.execute(query)]):
            await self.halt(visit, "the run was sent back")
            await self.store.write(lambda tx, visit=visit: moves.stop_proven(tx, visit))  # type: ignore[misc]
            self.ring()


def _bill(end: Ended | Ran | Lost) -> tuple[Usage, float]:
    if isinstance(end, Ran):
        return Usage(), sum(r.seconds for r in end.results)
    if isinstance(end, Lost):
        return Usage(), 0.0
    return end.usage, end.worked.total_seconds()
