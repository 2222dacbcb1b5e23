"""A model without a model: the Responses wire over HTTP, scripted by the same scenario file as the scripted agent.

Stateless: which reply answers and which of its steps comes next is read from the request alone (the last brief among
the user messages, and how many of its tool calls already have an output), so retries, resumes and parallel sessions
need no bookkeeping. ``python -m beadmill.demo.model_server SCENARIO [--port N]`` prints the address and serves.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import ClassVar, Final, Self

from beadmill.agents import scenario
from beadmill.agents.scenario import Asked, Step
from beadmill.domain.values import Json, estimate_tokens

EDITS: Final = ("write", "append", "delete", "shell")
MODELS: Final = ("scripted-large", "scripted-small")
_FOREVER: Final = 600.0  # seconds a hanging answer hangs
_MOST: Final = 64 * 1024 * 1024  # bytes of one request
_NOT_A_BRIEF = re.compile(r"\s*(?:<[a-z_]+>|# AGENTS\.md instructions)")  # what a CLI adds in the user's name
_RUNNING = re.compile(r"[Pp]rocess running with session ID (\d+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """How the wire fails: ``status`` 0 = the stream is cut after its first word."""

    status: int
    type: str
    code: str = ""
    message: str = ""


FAULTS: Final[Mapping[str, Fault]] = {
    "auth": Fault(401, "authentication_error", "invalid_api_key", "the key is not valid"),
    "quota": Fault(429, "insufficient_quota", "insufficient_quota", "the quota is used up"),
    "limit": Fault(429, "usage_limit_reached", "", "the usage limit is reached"),
    "rate": Fault(429, "rate_limit_error", "rate_limit_exceeded", "too many requests"),
    "overloaded": Fault(503, "server_error", "server_is_overloaded", "the model is overloaded"),
    "internal": Fault(500, "server_error", "", "the server failed"),
    "bad_model": Fault(404, "invalid_request_error", "model_not_found", "the model does not exist"),
    "context": Fault(400, "invalid_request_error", "context_length_exceeded", "the context window is full"),
    "refused": Fault(400, "invalid_request_error", "invalid_prompt", "the prompt was flagged by the usage policy"),
    "transport": Fault(0, "cut"),
}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A request, understood. ``outputs`` are those behind the last brief, oldest first, with their tool's name."""

    briefs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    model: str
    tools: frozenset[str]

    @property
    def step(self) -> int:
        return sum(name != "write_stdin" for name, _ in self.outputs)

    @property
    def running(self) -> int | None:
        """The command session that the last output left running."""
        found = _RUNNING.search(self.outputs[-1][1]) if self.outputs else None
        return int(found[1]) if found else None


def understand(body: Mapping[str, Json]) -> Transcript:
    briefs: list[str] = []
    outputs: list[tuple[str, str]] = []
    called: dict[str, str] = {}
    given = body.get("input") or []
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = str(item.get("type", "message"))
        if item.get("role") == "user" and not _NOT_A_BRIEF.match(text := _text(item.get("content"))):
            briefs.append(text)
            outputs = []
        elif kind.endswith("_call"):
            called[item.get("call_id", "")] = item.get("name", "")
        elif kind.endswith("_output"):
            outputs.append((called.get(item.get("call_id", ""), ""), _text(item.get("output"))))
    tools = frozenset(str(t.get("name")) for t in body.get("tools") or [])
    return Transcript(tuple(briefs), tuple(outputs), str(body.get("model", "")), tools)


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return _text(content.get("content")) if isinstance(content, dict) else ""


def stretch(steps: Sequence[Step], done: int) -> list[Step]:
    """The steps of one answer: everything from the ``done``-th edit on, up to the next edit or the end of the turn."""
    edits = [n for n, step in enumerate(steps) if step.kind in EDITS]
    begin = edits[done - 1] + 1 if 0 < done <= len(edits) else 0 if done == 0 else len(steps)
    end = edits[done] + 1 if done < len(edits) else len(steps)
    return list(steps[begin:end])


def command_of(step: Step) -> str:
    """An edit as the shell command that a model would write."""
    if step.kind == "shell":
        return str(step.value)
    if step.kind == "delete":
        return f"rm -- {shlex.quote(step.value)}"
    path, content = PurePosixPath(step.value["path"]), str(step.value["content"])
    folder = f"mkdir -p -- {shlex.quote(str(path.parent))} && " if str(path.parent) not in (".", "/") else ""
    into = f"{'>' if step.kind == 'write' else '>>'} {shlex.quote(str(path))}"
    if content.endswith("\n") and "\nEND_OF_FILE\n" not in f"\n{content}":
        return f"{folder}cat {into} <<'END_OF_FILE'\n{content}END_OF_FILE"
    return f"{folder}printf %s {shlex.quote(content)} {into}"


class Answer:
    """The events of one response, in wire order."""

    def __init__(self, transcript: Transcript) -> None:
        self.id = uuid.uuid4().hex[:16]
        self.model = transcript.model
        self.items: list[Mapping[str, Json]] = []
        reads = [estimate_tokens(text) for text in (*transcript.briefs, *(o for _, o in transcript.outputs))]
        self._input, self._cached = sum(reads), sum(reads[:-1])  # a provider has seen all but the newest part

    def say(self, text: str) -> None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        name = f"msg_{self.id}_{len(self.items)}"
        self.items.append(
            {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": content}
        )

    def call(self, tool: str, arguments: Json) -> None:
        n = f"{self.id}_{len(self.items)}"
        self.items.append(
            {
                "type": "function_call",
                "id": f"fc_{n}",
                "call_id": f"call_{n}",
                "name": tool,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
        )

    def shell(self, command: str, tools: frozenset[str]) -> None:
        if "exec_command" in tools or not tools & {"shell", "shell_command"}:
            self.call("exec_command", {"cmd": command})
        elif "shell_command" in tools:
            self.call("shell_command", {"command": command})
        else:
            self.call("shell", {"command": ["bash", "-lc", command]})

    def response(self, status: str = "completed") -> Json:
        written = sum(estimate_tokens(json.dumps(item)) for item in self.items)
        usage = {
            "input_tokens": self._input,
            "input_tokens_details": {"cached_tokens": self._cached},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self._input + written,
        }
        head = {"id": f"resp_{self.id}", "object": "response", "created_at": int(time.time()), "model": self.model}
        done = status == "completed"
        return {**head, "status": status, "output": self.items if done else [], "usage": usage if done else None}

    def events(self) -> Iterator[Mapping[str, Json]]:
        yield {"type": "response.created", "response": self.response("in_progress")}
        for index, item in enumerate(self.items):
            yield from _item_events(index, item)
        yield {"type": "response.completed", "response": self.response()}


def _item_events(index: int, item: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    at = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "message":
        empty = {**item, "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        text: str = item["content"][0]["text"]
        for begin in range(0, len(text), 400):
            piece = text[begin : begin + 400]
            yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece}
        yield {"type": "response.output_text.done", **at, "content_index": 0, "text": text}
    else:
        empty = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ClassVar[Path]
    owner: ClassVar[ModelServer]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Silent: ``ModelServer.seen`` has the requests."""

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            rows = [{"id": name, "object": "model", "owned_by": "scripted", "created": 1} for name in MODELS]
            self._json(200, {"object": "list", "data": rows})
        else:
            self._json(404, {"error": {"message": "there is nothing here", "type": "not_found"}})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(min(length, _MOST)) or b"{}")
        except ValueError:
            self._json(400, {"error": {"message": "the request is not JSON", "type": "invalid_request_error"}})
            return
        if not self.path.partition("?")[0].endswith("/responses"):
            self._json(404, {"error": {"message": "there is nothing here", "type": "not_found"}})
            return
        self.owner.note(body)
        try:
            self._answer(understand(body), stream=bool(body.get("stream")))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, transcript: Transcript, *, stream: bool) -> None:
        answer = Answer(transcript)
        fault = self._act(answer, transcript)
        if fault is not None:
            self._fail(answer, *fault)
        elif stream:
            self._begin_stream()
            for event in answer.events():
                self._event(event)
            self._chunk(b"")
        else:
            self._json(200, answer.response())

    def _act(self, answer: Answer, transcript: Transcript) -> tuple[str, Mapping[str, Json]] | None:
        """Fills the answer; a fault to show instead, by name and with its details."""
        if transcript.running is not None:
            answer.call("write_stdin", {"session_id": transcript.running, "chars": "", "yield_time_ms": 30_000})
            return None
        *earlier, brief = transcript.briefs or ("",)
        steps = scenario.load(self.script).pick(Asked(brief, transcript.model, tuple(earlier)))
        for step in stretch(steps, transcript.step):
            if step.kind in EDITS:
                answer.shell(command_of(step), transcript.tools)
            elif step.kind in ("say", "reply"):
                answer.say(step.value)
            elif step.kind == "ask":
                answer.say(step.value["question"])
            elif step.kind in ("wait", "hang"):
                self.owner.sleep(_FOREVER if step.kind == "hang" else step.value)
            elif step.kind == "limit":
                return "limit", step.value
            else:
                return str(step.value["why"]), step.value
        return None

    def _fail(self, answer: Answer, name: str, detail: Mapping[str, Json]) -> None:
        fault = FAULTS.get(name, FAULTS["internal"])
        if fault.status == 0:
            self._begin_stream()
            self._event({"type": "response.created", "response": answer.response("in_progress")})
            self.close_connection = True
            return
        message = detail.get("message") or fault.message
        error = {"message": message, "type": fault.type, "code": fault.code or None}
        if "seconds" in detail:
            error["resets_at"] = int(time.time() + detail["seconds"])
        self._json(fault.status, {"error": error})

    def _json(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _event(self, event: Mapping[str, Json]) -> None:
        self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

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
    def url(self) -> str:
        """What a provider's ``base_url`` is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

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
    parser = argparse.ArgumentParser(prog="python -m beadmill.demo.model_server")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(argv)
    scenario.load(options.scenario)
    with ModelServer(options.scenario, port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
