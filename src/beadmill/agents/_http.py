"""HTTP/1.1 to a server of our own on loopback: one connection per request, JSON both ways. Standard library only.

A client library costs each runner 0.25 s and 14 MB to import; a server on loopback needs no more than this.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from beadmill.domain.values import Json

LINE: Final = 16 * 1024 * 1024  # bytes of one line: an event holds the whole output of a tool
BODY: Final = 64 * 1024 * 1024


class Gone(Exception):
    """Nobody listens there, or the connection broke."""


class Slow(Exception):
    """No answer in the time given."""


class Client:
    """``call`` and ``events`` raise Gone, and Slow behind their patience (seconds)."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        where = urlsplit(url)
        self._host, self._port = where.hostname or "127.0.0.1", where.port or 80
        word = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._head = f"host: {self._host}:{self._port}\r\nauthorization: Basic {word}\r\nconnection: close\r\n"

    async def call(self, method: str, path: str, body: Json = None, *, patience: float = 30.0) -> tuple[int, Json]:
        """Status and body; None for an empty one, text when it is not JSON."""
        async with _deadline(patience), self._asked(method, path, body) as (reader, status, headers):
            return status, _json(await _whole(reader, headers))

    async def events(self, path: str, *, silence: float) -> AsyncGenerator[Json, None]:
        """Server-sent events until the connection ends; raises Slow when even the heartbeat stays out."""
        async with self._asked("GET", path, None) as (reader, status, headers):
            if status != 200:
                raise Gone(f"{path} answered {status}")
            lines = _chunks(reader) if "chunked" in headers.get("transfer-encoding", "") else _raw(reader)
            left = b""
            while True:
                async with _deadline(silence):
                    data = await anext(lines, b"")
                if not data:
                    return
                *whole, left = (left + data).split(b"\n")
                for line in whole:
                    if line.startswith(b"data:"):
                        yield _json(line[5:].strip())

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: Json
    ) -> AsyncIterator[tuple[asyncio.StreamReader, int, Mapping[str, str]]]:
        data = b"" if body is None else json.dumps(body).encode()
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=LINE)
        except OSError as error:
            raise Gone(str(error)) from error
        try:
            kind = "content-type: application/json\r\n" if data else ""
            head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}content-length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
            await writer.drain()
            yield (reader, *_head(await reader.readuntil(b"\r\n\r\n")))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            raise Gone(f"{type(error).__name__}: {error}") from error
        finally:
            writer.close()


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Slow(f"no answer in {seconds:g} s") from error


def _head(raw: bytes) -> tuple[int, Mapping[str, str]]:
    first, *rest = raw.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in rest if line)
    return int(first.split(" ")[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _whole(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", ""):
        return b"".join([chunk async for chunk in _chunks(reader)])
    if "content-length" in headers:
        return await reader.readexactly(min(int(headers["content-length"]), BODY))
    return await reader.read()


async def _raw(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await reader.read(65_536):
        yield data


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).partition(b";")[0].strip() or b"0", 16):
        yield await reader.readexactly(size)
        await reader.readline()


def _json(data: bytes) -> Json:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")
