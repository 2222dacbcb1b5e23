from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from house_for_tests import OWNER, Starter

from beadmill.operations import sessions, tickets
from beadmill.operations.ports import Ports
from beadmill.web.security import TooMany
from beadmill.web.stream import EventStream, Streams, follow, tail


async def read(source: AsyncIterator[bytes], events: int) -> list[tuple[int, str, Any]]:
    """The first ``events`` events as (id, event, data)."""
    found: list[tuple[int, str, Any]] = []
    async with asyncio.timeout(10), aclosing(source):  # type: ignore[type-var]
        async for chunk in source:
            fields = dict(line.split(": ", 1) for line in chunk.decode().splitlines() if ": " in line)
            if "data" in fields:
                found.append((int(fields["id"]), fields.get("event", ""), json.loads(fields["data"])))
            if len(found) >= events:
                return found
    return found


@pytest.mark.usefixtures("project")
async def test_c88_a_stream_resumes_exactly_behind_the_last_event(ports: Ports) -> None:
    for n in range(3):
        await tickets.create(ports, "API", title=f"T{n}", actor=OWNER)
    whole = await read(follow(ports, ["board"], 0, actor=OWNER), 4)
    rest = await read(follow(ports, ["board"], whole[1][0], actor=OWNER), 2)
    assert [kind for _, kind, _ in whole] == ["project.added"] + ["ticket.created"] * 3
    assert rest == whole[2:]


@pytest.mark.usefixtures("project")
async def test_a_new_event_reaches_an_open_stream(ports: Ports) -> None:
    following = asyncio.create_task(read(follow(ports, ["ticket:API-1"], 1, actor=OWNER), 1))
    await tickets.create(ports, "API", title="One", actor=OWNER)
    assert [(kind, data["ticket"]) for _, kind, data in await following] == [("ticket.created", "API-1")]


@pytest.mark.usefixtures("project")
async def test_c88_a_number_from_the_future_is_told_to_read_anew(ports: Ports) -> None:
    assert await read(follow(ports, ["board"], 999, actor=OWNER), 1) == [(1, "reset", {"seq": 1})]


@pytest.mark.usefixtures("project")
async def test_a_topic_hears_only_its_own_ticket(ports: Ports) -> None:
    for title in ("One", "Two"):
        await tickets.create(ports, "API", title=title, actor=OWNER)
    heard = await read(follow(ports, ["ticket:API-2"], 0, actor=OWNER), 1)
    assert [data["ticket"] for _, _, data in heard] == ["API-2"]


async def test_a_log_comes_in_batches_and_ends_with_the_session(ports: Ports, started: Starter) -> None:
    ticket = await started("hello")
    line = (await sessions.listing(ports, run=ticket.run, actor=OWNER)).items[0]
    events = await read(tail(ports, line.token, 0, actor=OWNER), 2)
    lines = [json.loads(text) for text in events[0][2]["lines"]]
    size = (await sessions.show(ports, line.token, actor=OWNER)).log_bytes
    assert [(at, kind) for at, kind, _ in events] == [(size, "lines"), (size, "end")]
    assert "Hello from Beadmill" in json.dumps(lines)


async def test_a_log_resumes_at_its_byte(ports: Ports, started: Starter) -> None:
    ticket = await started("hello")
    line = (await sessions.listing(ports, run=ticket.run, actor=OWNER)).items[0]
    whole = await sessions.log(ports, line.token, actor=OWNER)
    first = len(whole.lines[0].encode()) + 1
    rest = await sessions.log(ports, line.token, after=first, actor=OWNER)
    assert (rest.lines, rest.end, rest.ended) == (whole.lines[1:], whole.end, True)


def test_a_ticket_has_six_streams_and_gets_a_place_back() -> None:
    streams = Streams()
    held = [streams.reserve("API-1") for _ in range(6)]
    with pytest.raises(TooMany):
        streams.reserve("API-1")
    held[0]()
    held[0]()
    streams.reserve("API-1")
    assert streams.count == 6


def test_a_hundred_streams_are_all() -> None:
    streams = Streams()
    for n in range(100):
        streams.reserve(f"API-{n}")
    with pytest.raises(TooMany):
        streams.reserve("")


class Wire:
    """A client that stays, or leaves when told to."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.begun = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        self.begun.set()


@pytest.mark.parametrize("end", ["closing", "gone"])
async def test_a_stream_ends_and_frees_its_place_when_the_daemon_stops_or_the_client_leaves(
    ports: Ports, end: str
) -> None:
    streams, wire = Streams(), Wire()
    source = follow(ports, ["board"], 0, actor=OWNER)
    stream = EventStream(source, closing=streams.closing, release=streams.reserve("API-1"))
    serving = asyncio.create_task(stream({"type": "http"}, wire.receive, wire.send))
    await wire.begun.wait()
    {"closing": streams.closing, "gone": wire.gone}[end].set()
    await asyncio.wait_for(serving, 2)
    assert (streams.count, wire.sent[-1]["more_body"]) == (0, False)
