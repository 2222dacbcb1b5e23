"""The session watcher: books each end once, and lets a visit go on when what it replaces has provably stopped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from beadmill.domain.ended import Ended, Lost, Ran, SessionRef, Stopped
from beadmill.domain.machine import RunState
from beadmill.domain.values import Json, Usage
from beadmill.engine.prices import Prices
from beadmill.errors import Unavailable
from beadmill.processes.alive import all_of
from beadmill.processes.contract import Session, Sessions
from beadmill.processes.spec import Hold, Release
from beadmill.processes.wire import encode_end
from beadmill.store import tables
from beadmill.store.db import Store
from beadmill.store.journal import countdown, moves, sessions

log = logging.getLogger(__name__)
QUICK, SLOW = 0.05, 1.0  # seconds between looks at folders: while sessions run, and while none does
REST = 0.1  # seconds between looks at what nobody waits for to the blink
AGAIN = 5.0  # seconds until one that failed is tried again


@dataclass(slots=True)
class Watcher:
    """One per daemon. Looks at the folders of its own open sessions only; parked runs cost nothing."""

    store: Store
    sessions: Sessions
    host: str
    ring: Callable[[], None]
    halt: Callable[[str, str], Awaitable[None]]
    prices: Prices = field(default_factory=Prices)
    _busy: bool = False
    _held: dict[str, bool] = field(default_factory=dict)  # whose clock was told to stand still
    _stuck: dict[str, Json] = field(default_factory=dict)  # what was told of by session
    _not_before: dict[str, float] = field(default_factory=dict)  # of what failed, on the monotonic clock

    async def serve(self) -> None:
        """Loops apart: a stop or an order that takes its time holds up nobody's booking."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._books())
            group.create_task(self._releases())
            group.create_task(self._clocks())

    async def _books(self) -> None:
        async for _ in self.store.events.subscribe(every=lambda: QUICK if self._busy else SLOW, rest=QUICK):
            self._busy = await self._look()

    async def _releases(self) -> None:
        async for _ in self.store.events.subscribe(every=lambda: SLOW, rest=REST):
            await self._wake_frozen()
            await self._release_stopped()
            await self._retire_servers()

    async def _clocks(self) -> None:
        """Working time stands still while a question of the visit is open. What a session was told before this daemon
        started is not known: the first look tells all of them."""
        known = await self.store.read(lambda conn: countdown.clocks(conn, host=self.host))
        self._held = {token: not held for token, held in known.items()}
        async for _ in self.store.events.subscribe(every=lambda: SLOW, rest=REST):
            wanted = await self.store.read(lambda conn: countdown.clocks(conn, host=self.host))
            self._held = {token: self._held.get(token, False) for token in wanted}
            news = [(token, held) for token, held in wanted.items() if self._held[token] != held]
            await all_of([self._apart(f"clock of {token}", self._tell_clock(token, held)) for token, held in news])

    async def _tell_clock(self, token: str, held: bool) -> None:
        session = self.sessions.find(token)
        if session is not None:  # what is not started yet is told at a later look
            await session.order(Hold() if held else Release())
            self._held[token] = held

    async def _retire_servers(self) -> None:
        """Servers of runs that are over. One that nobody uses ends by itself; this one will not be used again."""
        runs = await asyncio.to_thread(self.sessions.servers.runs)
        if not runs:
            return
        r = tables.runs
        query = sa.select(r.c.id).where(r.c.id.in_(runs), r.c.state == RunState.ACTIVE)
        active = await self.store.read(lambda conn: {row[0] for row in conn.execute(query)})
        for run in sorted(runs - active):
            await self._apart(f"servers of {run}", self.sessions.servers.close(run, "the run is over"))

    async def _wake_frozen(self) -> None:
        """An agent that freezes its runner stops the clock by which it would be ended."""
        for token in await self.store.read(lambda conn: sessions.open_tokens(conn, host=self.host)):
            session = self.sessions.find(token)
            if session is not None and session.wake():
                log.warning("the runner of session %s was frozen: it is woken", token)

    async def _look(self) -> bool:
        """Books what ended. True while any session of ours is open."""
        tokens = await self.store.read(lambda conn: sessions.open_tokens(conn, host=self.host))
        for token in tokens:
            await self._apart(token, self._settle(token))
        return bool(tokens)

    async def _settle(self, token: str) -> None:
        session = self.sessions.find(token)
        if session is None:
            return await self._settle_gone(token)
        end = session.ended()
        if end is None:
            return None
        if isinstance(end, Lost) or session.left():
            await self.prove_stopped(token, session, "its runner is gone")  # two must not share a tree
        return await self.book(token, session)

    async def _settle_gone(self, token: str) -> None:
        """A visit parks on a session only behind its start: when there is no folder, somebody has deleted it."""
        w = tables.waits
        query = sa.select(w.c.visit_id).where(w.c.kind == "session", w.c.key == token)
        if await self.store.read(lambda conn: conn.execute(query).first()) is not None:
            await self.prove_stopped(token, None, "its folder is gone")
            await self._book(token, Lost())

    async def prove_stopped(self, token: str, session: Session | None, why: str) -> None:
        """What cannot be ended is told once, until it changes. Raises Unavailable."""
        try:
            await (session.stop(why) if session is not None else self.sessions.sweep_gone(token))
        except Unavailable as error:
            await self._tell(token, error.details.get("processes", []))
            raise
        self._stuck.pop(token, None)

    async def _tell(self, token: str, processes: Json) -> None:
        if self._stuck.get(token) != processes:
            await self.store.write(lambda tx: sessions.stuck(tx, token, processes))
            self._stuck[token] = processes

    async def _apart(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """One that fails is tried again later and holds up no other."""
        if self._not_before.get(name, 0.0) > time.monotonic():
            work.close()
            return
        try:
            await work
        except Exception:  # border: job - a session that cannot be stopped, an end that cannot be booked
            log.exception("%s: tried again in %s s", name, AGAIN)
            self._not_before[name] = time.monotonic() + AGAIN
        else:
            self._not_before.pop(name, None)

    async def book(self, token: str, session: Session | None) -> None:
        """Never started (no folder) counts as stopped."""
        end = session.ended() if session is not None else None
        await self._book(token, end if end is not None else Stopped(session=SessionRef(token)))

    async def _book(self, token: str, booked: Ended | Ran | Lost) -> None:
        usage, seconds = _bill(booked)
        agent, model = await self.store.read(lambda conn: sessions.seat_of(conn, token))
        at = self.store.clock()
        price = await asyncio.to_thread(self.prices.of, booked, agent=agent, model=model, at=at)
        if await self.store.write(
            lambda tx: sessions.book(tx, token, encode_end(booked), usage=usage, price=price, seconds=seconds)
        ):
            self.ring()

    async def _release_stopped(self) -> None:
        """Visits that wait for the proven stop of what they replace."""
        w = tables.waits
        query = sa.select(w.c.key).where(w.c.kind == "stop").distinct()
        for visit in await self.store.read(lambda conn: [row[0] for row in conn.execute(query)]):
            await self._apart(visit, self._release(visit))

    async def _release(self, visit: str) -> None:
        await self.halt(visit, "the run was sent back")
        await self.store.write(lambda tx: moves.stop_proven(tx, visit))
        self.ring()


def _bill(end: Ended | Ran | Lost) -> tuple[Usage, float]:
    if isinstance(end, Ran):
        return Usage(), sum(r.seconds for r in end.results)
    if isinstance(end, Lost):
        return Usage(), 0.0
    return end.usage, end.worked.total_seconds()
