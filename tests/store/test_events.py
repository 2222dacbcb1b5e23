from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from beadmill.crashpoints import Crashed
from beadmill.domain.values import Event
from beadmill.store import tables
from beadmill.store.db import Store, Tx


def seqs(store: Store) -> list[int]:
    e = tables.events
    return store.read_now(lambda conn: list(conn.execute(sa.select(e.c.seq).order_by(e.c.seq)).scalars()))


def emit(tx: Tx, *kinds: str) -> None:
    for kind in kinds:
        tx.emit(Event(kind))


async def test_events_are_numbered_without_gaps_in_the_order_of_their_commits(store: Store) -> None:
    await asyncio.gather(*(store.write(lambda tx: emit(tx, "a", "b")) for _ in range(20)))

    assert seqs(store) == list(range(1, 41))


async def test_a_refused_commit_leaves_no_event_and_no_gap(store: Store) -> None:
    def fails(tx: Tx) -> None:
        emit(tx, "never")
        raise ValueError("no")

    await store.write(lambda tx: emit(tx, "first"))
    with pytest.raises(ValueError, match="no"):
        await store.write(fails)
    await store.write(lambda tx: emit(tx, "second"))

    assert seqs(store) == [1, 2]


async def test_a_process_that_dies_before_the_commit_has_done_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(name: str) -> None:
        if name == "commit":
            raise Crashed(name)

    monkeypatch.setenv("BEADMILL_TESTING", "1")
    monkeypatch.setattr("beadmill.crashpoints.on_reach", die)
    with pytest.raises(Crashed):
        await store.write(lambda tx: emit(tx, "never"))
    monkeypatch.setattr("beadmill.crashpoints.on_reach", None)

    assert seqs(store) == []


async def test_a_subscriber_hears_of_every_commit(store: Store) -> None:
    heard: list[int] = []
    async with asyncio.timeout(10):
        async for seq in store.events.subscribe():
            heard.append(seq)
            if seq == 2:
                break
            await store.write(lambda tx: emit(tx, "something"))

    assert heard == [0, 1, 2]


async def test_what_is_published_while_a_subscriber_rests_is_one_word(store: Store) -> None:
    heard = store.events.subscribe(rest=0.05)
    await anext(heard)
    next_word = asyncio.ensure_future(anext(heard))
    for seq in (1, 2, 3):
        await asyncio.sleep(0)  # the subscriber would have heard each by itself
        store.events.publish(seq)
    assert await next_word == 3
    await heard.aclose()  # type: ignore[attr-defined]


async def test_a_read_sees_one_moment_whatever_is_written_meanwhile(store: Store) -> None:
    e = tables.events
    count = sa.select(sa.func.count()).select_from(e)

    def read(conn: sa.Connection) -> tuple[int, int]:
        before = conn.execute(count).scalar_one()
        store.write_now(lambda tx: emit(tx, "meanwhile"))
        return before, conn.execute(count).scalar_one()

    assert (await store.read(read), seqs(store)) == ((0, 0), [1])


def test_a_subscriber_whose_loop_has_closed_spoils_no_write(store: Store) -> None:
    async def listen() -> None:
        listening.append(store.events.subscribe())
        await anext(listening[0])

    listening: list[AsyncIterator[int]] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(listen())
    loop.close()

    store.write_now(lambda tx: emit(tx, "a"))

    assert seqs(store) == [1]
