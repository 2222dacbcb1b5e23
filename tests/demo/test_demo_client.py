"""The demo's REST client against a real HTTP server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from beadmill.demo.client import RestApi
from beadmill.errors import BeadmillError, Conflict, Unavailable


@dataclass
class Daemon:
    """Answers each request with the next of ``answers``: status and body; ``seen`` is method, path and headers."""

    answers: list[tuple[int, Any]] = field(default_factory=list)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    port: int = 0

    @property
    def api(self) -> RestApi:
        return RestApi.of(f"http://127.0.0.1:{self.port}", "secret")


def refusal(code: str, **details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no", "details": details, "kept": "all", "next": "look"}}


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    told = Daemon()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            told.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            status, body = told.answers.pop(0)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815 - the base class's name

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_write_names_what_was_seen_and_its_key(daemon: Daemon) -> None:
    daemon.answers = [(200, {"id": "g"})]
    await daemon.api.call("gates.answer", gate="D-1-r1/prd.1/approve-1#1", body={}, etag="abc", once="k")
    method, path, headers = daemon.seen[0]
    assert (method, path) == ("POST", "/api/v1/gates/D-1-r1/prd.1/approve-1%231/answer")
    assert (headers["if-match"], headers["idempotency-key"], headers["authorization"]) == (
        '"abc"',
        "k",
        "Bearer secret",
    )


async def test_a_conflict_is_told_with_everything_the_daemon_said(daemon: Daemon) -> None:
    daemon.answers = [(409, refusal("STALE", who="ann"))]
    with pytest.raises(Conflict) as caught:
        await daemon.api.call("tickets.show", key="DEMO-1")
    assert (caught.value.code, caught.value.details, caught.value.next) == ("STALE", {"who": "ann"}, "look")


async def test_another_refusal_is_no_conflict(daemon: Daemon) -> None:
    daemon.answers = [(404, refusal("TICKET_NOT_FOUND"))]
    with pytest.raises(BeadmillError) as caught:
        await daemon.api.call("tickets.show", key="DEMO-1")
    assert (type(caught.value), caught.value.code) == (BeadmillError, "TICKET_NOT_FOUND")


async def test_an_answer_that_is_not_ours_is_told_by_its_number(daemon: Daemon) -> None:
    daemon.answers = [(502, "<html>")]
    with pytest.raises(BeadmillError, match="the daemon answered 502"):
        await daemon.api.call("tickets.show", key="DEMO-1")


async def test_too_many_reads_wait_and_ask_again(daemon: Daemon) -> None:
    daemon.answers = [(429, refusal("RATE", retry_after=0)), (200, {"key": "DEMO-1"})]
    assert await daemon.api.call("tickets.show", key="DEMO-1") == {"key": "DEMO-1"}


async def test_a_daemon_that_is_gone_is_said_and_what_to_do(daemon: Daemon) -> None:
    gone = RestApi.of("http://127.0.0.1:9", "secret")
    with pytest.raises(Unavailable) as caught:
        await gone.call("tickets.show", key="DEMO-1")
    assert (caught.value.code, caught.value.next) == ("DAEMON_GONE", "beadmill demo --keep")


async def test_a_stream_that_ends_is_followed_on_from_its_last_event(daemon: Daemon) -> None:
    def stream(*seqs: int) -> str:
        return "retry: 1000\n\n" + "".join(f'event: x\nid: {n}\ndata: {{"seq":{n}}}\n\n' for n in seqs)

    daemon.answers = [(200, stream(1, 2)), (200, stream(3))]
    heard = []
    async for event in daemon.api.follow("ticket:DEMO-1"):
        heard.append(event["seq"])
        if event["seq"] == 3:
            break
    assert heard == [1, 2, 3]
    assert [path.rpartition("since=")[2] for _, path, _ in daemon.seen] == ["0", "2"]
