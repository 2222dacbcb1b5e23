"""The stdin that stays open: order, a full pipe, a reader that is gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from beadmill.processes.inlet import Inlet

LARGE = 1_000_000  # bytes: more than any pipe holds


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)


async def read(fd: int, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        found += await asyncio.to_thread(os.read, fd, 65_536)
    return bytes(found)


async def test_messages_larger_than_the_pipe_arrive_whole_and_in_order(pipe: tuple[int, int]) -> None:
    inlet = Inlet(pipe[1])
    writing = [asyncio.ensure_future(inlet.write(letter * LARGE)) for letter in (b"a", b"b")]
    assert await read(pipe[0], 2 * LARGE) == b"a" * LARGE + b"b" * LARGE
    await asyncio.gather(*writing)
    inlet.close()


async def test_a_closed_inlet_ends_the_input_and_takes_no_more(pipe: tuple[int, int]) -> None:
    inlet = Inlet(pipe[1])
    await inlet.write(b"last")
    inlet.close()
    inlet.close()
    assert (os.read(pipe[0], 100), os.read(pipe[0], 100)) == (b"last", b"")
    with pytest.raises(BrokenPipeError):
        await inlet.write(b"more")


async def test_a_writer_that_waits_hears_that_the_inlet_was_closed(pipe: tuple[int, int]) -> None:
    inlet = Inlet(pipe[1])
    writing = asyncio.ensure_future(inlet.write(b"x" * LARGE))
    await asyncio.sleep(0)
    assert not writing.done()
    inlet.close()
    with pytest.raises(BrokenPipeError):
        await writing


async def test_a_reader_that_is_gone_breaks_the_pipe() -> None:
    read_end, write_end = os.pipe()
    inlet = Inlet(write_end)
    os.close(read_end)
    with pytest.raises(BrokenPipeError):
        await inlet.write(b"x")
    inlet.close()
