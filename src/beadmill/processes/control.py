"""Orders to a runner: one JSON line each way over a Unix socket in the session folder. Standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

from beadmill.domain.values import Json
from beadmill.processes.spec import Order
from beadmill.processes.wire import BadWire, decode_order, encode_order

NAME: Final = "control"
LIMIT: Final = 1024 * 1024  # bytes of one order
ANSWER: Final = 5.0  # seconds a runner may take to say that it heard


@contextlib.asynccontextmanager
async def listening(take: Callable[[Order], None]) -> AsyncIterator[None]:
    """Listens in the current folder: the relative name stays under the 108 bytes a socket address may have."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ValueError):
            writer.write(json.dumps(_taken(await reader.readline(), take)).encode() + b"\n")
            await writer.drain()
        writer.close()

    _forget()
    server = await asyncio.start_unix_server(serve, NAME, limit=LIMIT)
    try:
        yield
    finally:
        server.close()
        _forget()


def _forget() -> None:
    Path(NAME).unlink(missing_ok=True)


def _taken(line: bytes, take: Callable[[Order], None]) -> Json:
    try:
        take(decode_order(json.loads(line)))
    except (BadWire, ValueError, AttributeError) as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True}


async def deliver(folder: Path, order: Order) -> bool:
    """False = nobody listens there (yet, or any more)."""
    try:
        async with asyncio.timeout(ANSWER):
            return await _exchange(folder, json.dumps(encode_order(order)).encode() + b"\n")
    except (OSError, TimeoutError, ValueError):
        return False


async def _exchange(folder: Path, line: bytes) -> bool:
    with _short(folder) as path:
        reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(line)
        await writer.drain()
        answer = await reader.readline()
        return bool(answer) and bool(json.loads(answer).get("ok"))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A short address of the socket in a folder whose path may be long."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{NAME}"
    finally:
        os.close(handle)
