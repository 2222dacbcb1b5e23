"""Server-sent events: one multiplexed stream per page, logs by byte offset, all of them ended when the daemon stops."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from beadmill.domain.values import Actor
from beadmill.operations import events, sessions
from beadmill.operations.ports import Ports
from beadmill.web.security import TooMany

PER_TICKET: Final = 6
IN_ALL: Final = 100
REST: Final = 0.05  # seconds: what comes at once is sent at once
PING: Final = 15.0  # seconds of silence after which a comment keeps proxies and laptops awake
BATCH: Final = 0.05  # seconds between two batches of a log: at most 20 a second
LOOK: Final = 0.25  # seconds between two looks at a log that stands still
PART: Final = 256_000  # bytes of log in one batch

Release = Callable[[], None]


@dataclass(slots=True)
class Streams:
    """Slots for open streams and the bell that ends them. One per daemon."""

    per_ticket: int = PER_TICKET
    in_all: int = IN_ALL
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    _open: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self._open.total()

    def reserve(self, ticket: str) -> Release:
        """A slot, before any set-up. Raises TooMany. The release may be called more than once."""
        if self.count >= self.in_all or (ticket and self._open[ticket] >= self.per_ticket):
            most = self.in_all if self.count >= self.in_all else self.per_ticket
            raise TooMany(
                f"{most} streams are open {'in all' if most == self.in_all else f'on {ticket}'}",
                code="STREAMS",
                details={"limit": most, "retry_after": 5},
                next="close a tab of this ticket",
            )
        self._open[ticket] += 1
        held = [ticket]

        def release() -> None:
            if held:
                self._open[held.pop()] -= 1

        return release


class EventStream(Response):
    """Ends when its source ends, the client leaves or the daemon closes; its slot is released on every path."""

    media_type = "text/event-stream"

    def __init__(self, source: AsyncIterator[bytes], *, closing: asyncio.Event, release: Release) -> None:
        super().__init__(None, headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.source, self.closing, self.release = source, closing, release

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with anyio.create_task_group() as group:
                group.start_soon(_then_cancel, group.cancel_scope, partial(_gone, receive))
                group.start_soon(_then_cancel, group.cancel_scope, self.closing.wait)
                async for chunk in self.source:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                group.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.release()


async def _then_cancel(scope: anyio.CancelScope, wait: Callable[[], Awaitable[Any]]) -> None:
    await wait()
    scope.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def sse(data: Any, *, event: str = "", seq: int | None = None) -> bytes:
    """One event. ``data`` is JSON, so it never holds a bare newline."""
    head = (f"event: {event}\n" if event else "") + (f"id: {seq}\n" if seq is not None else "")
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


# --- events -------------------------------------------------------------------------------------------------------
async def follow(ports: Ports, topics: Sequence[str], seq: int, *, actor: Actor) -> AsyncIterator[bytes]:
    """Every event of ``topics`` behind ``seq``, then each new one. A gap says ``reset`` with the newest number."""
    yield b"retry: 1000\n\n"
    bell = ports.store.events.subscribe(every=lambda: PING, rest=REST)
    async for _ in bell:
        sent = False
        more = True
        while more:
            page = await events.since(ports, topics=topics, seq=seq, actor=actor)
            if page.gap:
                yield sse({"seq": page.seq}, event="reset", seq=page.seq)
            for one in page.events:
                yield sse(one.model_dump(mode="json"), event=one.kind, seq=one.seq)
            more = len(page.events) == events.MOST and not page.gap
            sent = sent or bool(page.events) or page.gap
            moved, seq = page.seq > seq, page.seq
            if moved and not page.events and not page.gap:
                yield f"id: {seq}\n\n".encode()  # nothing for us, yet a resume may start behind it
        if not sent:
            yield b": still here\n\n"


# --- logs ---------------------------------------------------------------------------------------------------------
async def tail(ports: Ports, token: str, after: int, *, actor: Actor) -> AsyncIterator[bytes]:
    """Batches of whole lines; ``id`` is the byte behind them. ``end`` when the session is over and all was sent."""
    yield b"retry: 1000\n\n"
    quiet = 0.0
    while True:
        part = await sessions.log(ports, token, after=after, most=PART, actor=actor)
        after = part.end
        if part.lines:
            quiet = 0.0
            yield sse({"lines": part.lines, "next": part.end}, event="lines", seq=part.end)
        if part.ended:
            yield sse({"next": part.end}, event="end", seq=part.end)
            return
        pause = BATCH if part.lines else LOOK
        await asyncio.sleep(pause)
        quiet += pause
        if quiet >= PING:
            quiet = 0.0
            yield b": still here\n\n"


def cursor(headers: Mapping[str, str], given: int) -> int:
    """``Last-Event-ID`` (a reconnect) wins over the address."""
    last = headers.get("last-event-id", "")
    return int(last) if last.isdecimal() else given


# --- whose slot ---------------------------------------------------------------------------------------------------
async def ticket_of_topics(ports: Ports, topics: Sequence[str]) -> str:
    """The ticket a page is about, "" for the board."""
    for topic in topics:
        kind, _, value = topic.partition(":")
        if kind == "ticket":
            return value
        if kind == "run":
            return await sessions.ticket_of_run(ports, value)
    return ""


async def ticket_of_session(ports: Ports, token: str) -> str:
    return await sessions.ticket_of_run(ports, token.partition("/")[0])
