"""An HTTP proxy (CONNECT, and plain HTTP by absolute address) that lets through what an allow-list names. Standard
library only.

It resolves names itself and connects to the very address that it looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from beadmill.processes.hosts import AllowList, split

HEAD: Final = 30.0  # seconds for the head of a request
CONNECT: Final = 30.0  # seconds for one address of a host
IDLE: Final = 900.0  # seconds without a byte in either direction: a model may think for minutes
MOST: Final = 128  # connections at the same time
LINGER: Final = 2.0  # seconds that a refused client is heard out
TOLD: Final = 50  # hosts that are named in warnings
_CHUNK: Final = 64 * 1024
_HOP: Final = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"host"})  # not for the host


class Refusal(Exception):
    """What the client is told instead."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True, slots=True)
class Request:
    """``first`` is what the host gets at once; empty for a tunnel."""

    host: str
    port: int
    first: bytes


class Proxy:
    LIMIT: Final = 64 * 1024  # bytes of a head

    def __init__(self, allowed: AllowList, warn: Callable[[str], None]) -> None:
        self._allowed, self._warn = allowed, warn
        self._told: set[str] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, for one request or tunnel."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._answer(reader, writer)
        except Refusal as refusal:
            with contextlib.suppress(OSError):
                await _say(refusal, reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.transport.abort()
        except asyncio.CancelledError:  # by close(), which waits for us; the stream's own callback wants no such end
            writer.transport.abort()
        finally:
            self._serving.discard(task)
            writer.close()

    async def close(self) -> None:
        """Idempotent."""
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) > 2 * MOST:
            raise ConnectionAbortedError
        async with asyncio.timeout(HEAD):
            request = parse(await reader.readuntil(b"\r\n\r\n"))
        if len(self._serving) > MOST:
            raise Refusal("503 Service Unavailable", f"more than {MOST} connections at the same time")
        there, out = await self._connect(request.host, request.port)
        try:
            if request.first:
                out.write(request.first)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _relay((reader, out), (there, writer))
        finally:
            out.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises Refusal."""
        if not self._allowed.named(host, port):
            raise self._refused(f"{host}:{port}", "is not in allow_hosts")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            raise Refusal("502 Bad Gateway", f"{host} has no address: {error}") from error
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        open_ones = [a for a in addresses if self._allowed.open(host, a, port)]
        if not open_ones:
            raise self._refused(
                f"{host}:{port}", f"leads to {', '.join(addresses)[:200]}, which allow_hosts does not list itself"
            )
        return await _first(host, open_ones, port)

    def _refused(self, what: str, why: str) -> Refusal:
        what = what[:300].encode("ascii", "backslashreplace").decode()
        if what not in self._told and len(self._told) <= TOLD:
            self._told.add(what)
            more = "more hosts were refused" if len(self._told) > TOLD else f"{what} was refused: it {why}"
            self._warn(f"network allow-list: {more}")
        return Refusal("403 Forbidden", f"{what} {why}")


def parse(head: bytes) -> Request:
    """Raises Refusal for what no proxy is asked."""
    line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    try:
        method, target, _ = line.decode("ascii").split(" ")
        if method == "CONNECT":
            return Request(*split(target, default=443), b"")
        url = urlsplit(target)
        authority = url.netloc.rpartition("@")[2]
        host, port = split(authority, default=80)
    except ValueError as error:
        raise Refusal("400 Bad Request", f"this is a proxy for HTTP and CONNECT: {error}") from error
    if url.scheme != "http" or not host:
        raise Refusal("400 Bad Request", "this is a proxy for HTTP and CONNECT: it is asked for http:// addresses")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [field for field in fields if not _hop(field.partition(b":")[0].strip().lower())]
    lines = [f"{method} {path} HTTP/1.1".encode(), f"Host: {authority}".encode(), *kept, b"Connection: close"]
    return Request(host, port, b"\r\n".join(lines) + b"\r\n\r\n")


def _hop(name: bytes) -> bool:
    return name in _HOP or name.startswith(b"proxy-")


async def _first(host: str, addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    said = ""
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT):
                return await asyncio.open_connection(address, port)
        except OSError as error:  # TimeoutError is one
            said = str(error) or "it does not answer"
    raise Refusal("502 Bad Gateway", f"{host}:{port} cannot be reached: {said}")


def _response(refusal: Refusal) -> bytes:
    body = f"Beadmill: {refusal.text}\n".encode()
    head = (f"HTTP/1.1 {refusal.status}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}")
    return "\r\n".join((*head, "Connection: close", "", "")).encode() + body


async def _say(refusal: Refusal, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hears the client out for a moment: closing on what was not read would take the answer away again."""
    writer.write(_response(refusal))
    await writer.drain()
    writer.write_eof()
    async with asyncio.timeout(LINGER):
        while await reader.read(_CHUNK):
            pass


async def _relay(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Both directions until both ended. Raises TimeoutError when neither has said anything for too long."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(IDLE) as limit:

        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(_CHUNK):
                if not limit.expired():
                    limit.reschedule(loop.time() + IDLE)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        with _ended_together([loop.create_task(copy(*way)) for way in ways]) as tasks:
            await asyncio.gather(*tasks)


@contextlib.contextmanager
def _ended_together(tasks: list[asyncio.Task[None]]) -> Iterator[list[asyncio.Task[None]]]:
    """One that failed takes the others along."""
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
