"""The proxy of an allow-list by itself: what it answers to what nobody should ask, and that it holds nothing for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from beadmill.processes import proxy
from beadmill.processes.hosts import AllowList


class Bench:
    """A proxy, and the one host that it lets through: it says what it hears."""

    def __init__(self, port: int, host: int, warned: list[str]) -> None:
        self.port, self.host, self.warned = port, host, warned

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, request: bytes) -> bytes:
        """The whole answer, until the proxy closes."""
        reader, writer = await self.open()
        writer.write(request)
        try:
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    @property
    def tunnel(self) -> bytes:
        return f"CONNECT 127.0.0.1:{self.host} HTTP/1.1\r\n\r\n".encode()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    host = await asyncio.start_server(echo, "127.0.0.1", 0)
    port, warned = host.sockets[0].getsockname()[1], list[str]()
    made = proxy.Proxy(AllowList([f"127.0.0.1:{port}", "127.0.0.1:1"]), warned.append)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=made.LIMIT)
    yield Bench(server.sockets[0].getsockname()[1], port, warned)
    await made.close()
    server.close()
    host.close()


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET https://example.org/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET http:/// HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"\xff\xfe\r\n\r\n", b"HTTP/1.1 400"),
        (b"CONNECT a:b HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"CONNECT :443 HTTP/1.1\r\n\r\n", b"HTTP/1.1 403"),
        (b"CONNECT example.org:443 HTTP/1.1\r\n\r\n", b"HTTP/1.1 403"),
        (b"GET http://127.0.0.1@example.org/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 403"),
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 502"),
        (b"GET http://127.0.0.1:1/" + b"a" * 100_000, b""),
    ],
)
async def test_what_it_does_not_do_it_says(bench: Bench, request_: bytes, answer: bytes) -> None:
    assert (await bench.ask(request_))[:12] == answer


async def test_a_tunnel_carries_both_ways_until_both_ended(bench: Bench) -> None:
    reader, writer = await bench.open()
    writer.write(bench.tunnel + b"x" * 200_000)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + b"x" * 200_000


async def test_a_silent_tunnel_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "IDLE", 0.1)
    assert await bench.ask(bench.tunnel) == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_a_client_that_never_asks_is_let_go(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "HEAD", 0.1)
    assert await bench.ask(b"GET http://") == b""


async def test_too_many_connections_are_turned_away(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MOST", 1)
    reader, writer = await bench.open()
    writer.write(bench.tunnel)
    await reader.readuntil(b"\r\n\r\n")
    turned_away = await bench.ask(bench.tunnel)
    writer.close()
    assert turned_away[:12] == b"HTTP/1.1 503"


async def test_a_refusal_arrives_whatever_the_client_goes_on_to_send(bench: Bench) -> None:
    body = b"x" * 5_000_000
    answer = await bench.ask(b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n" + body)
    assert answer.endswith(b"Beadmill: example.org:80 is not in allow_hosts\n")


async def test_a_flood_of_refused_hosts_is_told_in_bounds(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "TOLD", 2)
    for n in (1, 1, 2, 3, 4):
        await bench.ask(f"CONNECT a{n}.example.org:443 HTTP/1.1\r\n\r\n".encode())
    assert bench.warned == [
        "network allow-list: a1.example.org:443 was refused: it is not in allow_hosts",
        "network allow-list: a2.example.org:443 was refused: it is not in allow_hosts",
        "network allow-list: more hosts were refused",
    ]
