"""The scripted model over HTTP: every wire on one port, faults included."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from beadmill.agents import scenario
from beadmill.agents.scenario import Asked, Step
from beadmill.demo.model.answer import Answer
from beadmill.demo.model.transcript import EDITS, Transcript, command_of, stretch
from beadmill.demo.model.wires import Wire
from beadmill.demo.model.wires.chat import Chat
from beadmill.demo.model.wires.messages import Messages
from beadmill.demo.model.wires.responses import Responses
from beadmill.domain.values import Json

WIRES: Final[Sequence[Wire]] = (Responses(), Chat(), Messages())
MODELS: Final = ("scripted-large", "scripted-small")
BROKEN: Final = ("transport", "stall", "garbled")  # streams that begin well
_FOREVER: Final = 600.0  # seconds a hanging answer hangs
_MOST: Final = 64 * 1024 * 1024  # bytes of one request
_GARBAGE: Final = b"data: {this is not JSON\n\ndata: [1, 2\n\n"


class Trouble(Exception):
    """The script wants the provider to fail: ``name`` as in a scenario's ``fail``."""

    def __init__(self, name: str, detail: Mapping[str, Json]) -> None:
        super().__init__(name)
        self.name, self.detail = name, detail


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ClassVar[Path]
    owner: ClassVar[ModelServer]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Silent: ``ModelServer.seen`` has the requests."""

    @property
    def where(self) -> str:
        return self.path.partition("?")[0]

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.where.endswith("/models"):
            rows = [{"id": name, "object": "model", "owned_by": "scripted", "created": 1} for name in MODELS]
            self._json(200, {"object": "list", "data": rows})
        else:
            self._json(404, {"error": {"message": "there is nothing here", "type": "not_found"}})

    def do_POST(self) -> None:
        body = self._body()
        wire = next((w for w in WIRES if self.where.endswith(w.path)), None)
        if body is None:
            self._json(400, {"error": {"message": "the request is not JSON", "type": "invalid_request_error"}})
        elif self.where.endswith("/count_tokens"):
            self._json(200, {"input_tokens": len(json.dumps(body)) // 4})
        elif wire is None:
            self._json(404, {"error": {"message": "there is nothing here", "type": "not_found"}})
        else:
            self.owner.note(body)
            try:
                self._answer(wire, wire.understand(body), stream=bool(body.get("stream")))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def _body(self) -> Mapping[str, Json] | None:
        length = int(self.headers.get("content-length") or 0)
        chunked = "chunked" in self.headers.get("transfer-encoding", "")
        raw = b"".join(self._chunks()) if chunked else self.rfile.read(min(length, _MOST))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, wire: Wire, transcript: Transcript, *, stream: bool) -> None:
        answer = Answer.to(transcript)
        try:
            self._act(answer, transcript)
        except Trouble as trouble:
            self._fail(wire, answer, trouble, stream=stream)
            return
        self._send(wire, answer, stream=stream)

    def _act(self, answer: Answer, transcript: Transcript) -> None:
        """Fills the answer. Raises Trouble when the script wants one."""
        if transcript.running is not None:
            answer.call("write_stdin", {"session_id": transcript.running, "chars": "", "yield_time_ms": 30_000})
            return
        if transcript.delivered:
            answer.say("done")
            return
        *earlier, brief = transcript.briefs or ("",)
        steps = scenario.load(self.script).pick(Asked(brief, transcript.model, tuple(earlier)))
        for step in stretch(steps, transcript.step):
            self._step(answer, transcript, step)

    def _step(self, answer: Answer, transcript: Transcript, step: Step) -> None:
        match step.kind:
            case kind if kind in EDITS:
                answer.shell(command_of(step), transcript.tools)
            case "say":
                answer.say(step.value)
            case "reply":
                answer.reply(step.value, transcript)
            case "ask":
                answer.ask(step.value["question"], step.value.get("options") or [], transcript.tools)
            case "wait":
                self.owner.sleep(step.value)
            case "hang":
                self.owner.sleep(_FOREVER)
            case "limit":
                raise Trouble("limit", step.value)
            case _:
                raise Trouble(str(step.value["why"]), step.value)

    def _fail(self, wire: Wire, answer: Answer, trouble: Trouble, *, stream: bool) -> None:
        message = str(trouble.detail.get("message") or "")
        if trouble.name in BROKEN:
            self._break(wire, answer, trouble.name, stream=stream)
            return
        if trouble.name == "truncated":
            answer.stop = "truncated"
            answer.say(message or "The answer begins, and th")
            self._send(wire, answer, stream=stream)
            return
        fault = wire.fault(trouble.name, message, trouble.detail.get("seconds"))
        if fault is None:
            answer.stop = "refused"
            answer.say(message or "I cannot help with that.")
            self._send(wire, answer, stream=stream)
        else:
            self._json(fault.status, fault.body, fault.headers)

    def _send(self, wire: Wire, answer: Answer, *, stream: bool) -> None:
        if not stream:
            self._json(200, wire.whole(answer))
            return
        self._begin_stream()
        for piece in wire.stream(answer):
            self._chunk(piece)
        self._chunk(b"")

    def _break(self, wire: Wire, answer: Answer, how: str, *, stream: bool) -> None:
        """A stream that begins well and then is cut, is garbled or stalls; an answer without a stream is cut at once."""
        self.close_connection = True
        if not stream and how != "stall":
            return
        if stream:
            self._begin_stream()
            for piece in wire.opening(answer):
                self._chunk(piece)
        if how == "stall":
            self.owner.sleep(_FOREVER)
        elif how == "garbled":
            self._chunk(_GARBAGE)
            self._chunk(b"")

    def _json(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class ModelServer:
    """Serves on 127.0.0.1 in a thread of its own for the length of a ``with``. ``seen`` are the request bodies."""

    def __init__(self, script: Path, *, port: int = 0) -> None:
        self.seen: list[Mapping[str, Json]] = []
        self._closing = threading.Event()
        handler = type("Handler", (_Handler,), {"script": script, "owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def root(self) -> str:
        """What Anthropic's base URL is: clients append /v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """What an OpenAI provider's ``base_url`` is."""
        return f"{self.root}/v1"

    def note(self, body: Mapping[str, Json]) -> None:
        self.seen.append(body)

    def sleep(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m beadmill.demo.model")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(argv)
    scenario.load(options.scenario)
    with ModelServer(options.scenario, port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()
    return 0
