"""Anthropic's Messages wire: what Claude Code speaks."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Final

from beadmill.demo.model.answer import Answer, Say
from beadmill.demo.model.transcript import Reader, Transcript, text_of
from beadmill.demo.model.wires import Fault, frame
from beadmill.domain.values import Json

_NO_CREDIT: Final = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
_FAULTS: Final[Mapping[str, tuple[int, str, str]]] = {
    "auth": (401, "authentication_error", "invalid x-api-key"),
    "quota": (400, "invalid_request_error", _NO_CREDIT),
    "limit": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "rate": (429, "rate_limit_error", "Number of requests has exceeded your rate limit."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "internal": (500, "api_error", "Internal server error"),
    "bad_model": (404, "not_found_error", "model: no-such-model"),
    "context": (400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"),
}
# What Claude Code says in the user's name to go on: the brief is the one before.
_NOT_THE_USER: Final = (
    "Output token limit hit.",
    "[structured-output-enforce]",
    "Your response above was stopped by a safety classifier",
    "[Request interrupted by user",
)
_STOP: Final = {"end": "end_turn", "truncated": "max_tokens", "refused": "refusal"}


class Messages:
    path = "/messages"

    def understand(self, body: Mapping[str, Json]) -> Transcript:
        reader = Reader()
        for message in body.get("messages") or []:
            content = message.get("content") or []
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if block.get("type") == "tool_use":
                    reader.called(block.get("id", ""), block.get("name", ""))
                elif block.get("type") == "tool_result":
                    reader.came_back(block.get("tool_use_id", ""), text_of(block.get("content")))
                elif message.get("role") == "user" and not str(block.get("text", "")).startswith(_NOT_THE_USER):
                    reader.said(str(block.get("text", "")))
        tools = {str(t["name"]): t.get("input_schema") or {} for t in body.get("tools") or [] if t.get("name")}
        return reader.read(str(body.get("model", "")), tools)

    def whole(self, answer: Answer) -> Json:
        return {**_message(answer), "content": _blocks(answer), "stop_reason": _stop(answer), "usage": _usage(answer)}

    def stream(self, answer: Answer) -> Iterator[bytes]:
        yield _event("message_start", message=_message(answer))
        for index, block in enumerate(_blocks(answer)):
            yield from _block_events(index, block)
        yield _event("message_delta", delta={"stop_reason": _stop(answer), "stop_sequence": None}, usage=_usage(answer))
        yield _event("message_stop")

    def opening(self, answer: Answer) -> Iterator[bytes]:
        yield _event("message_start", message=_message(answer))
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "a first "})

    def fault(self, name: str, message: str, seconds: float | None) -> Fault | None:
        if name == "refused":
            return None
        status, kind, words = _FAULTS.get(name, _FAULTS["internal"])
        headers = {} if seconds is None else _limit_headers(seconds)
        request = f"req_{uuid.uuid4().hex[:24]}"
        error = {"type": kind, "message": message or words}
        body = {"type": "error", "error": error, "request_id": request}
        return Fault(status, body, {**headers, "request-id": request})


def _limit_headers(seconds: float) -> dict[str, str]:
    """As a subscription's limit says when it ends."""
    head, reset = "anthropic-ratelimit-unified", str(int(time.time() + seconds))
    return {
        "retry-after": str(int(seconds)),
        f"{head}-status": "rejected",
        f"{head}-reset": reset,
        f"{head}-representative-claim": "five_hour",
        f"{head}-5h-status": "rejected",
        f"{head}-5h-reset": reset,
        f"{head}-5h-utilization": "1.0",
    }


def _event(kind: str, **data: Json) -> bytes:
    return frame({"type": kind, **data}, kind)


def _message(answer: Answer) -> dict[str, Json]:
    head = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": answer.model}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": _usage(answer, written=1)}


def _blocks(answer: Answer) -> list[dict[str, Json]]:
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Say)
        else {"type": "tool_use", "id": f"toolu_{answer.id}_{n}", "name": part.tool, "input": part.arguments}
        for n, part in enumerate(answer.parts)
    ]


def _block_events(index: int, block: Mapping[str, Json]) -> Iterator[bytes]:
    empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
    yield _event("content_block_start", index=index, content_block=empty)
    if block["type"] == "text":
        for begin in range(0, len(block["text"]), 400):
            delta = {"type": "text_delta", "text": block["text"][begin : begin + 400]}
            yield _event("content_block_delta", index=index, delta=delta)
    else:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _stop(answer: Answer) -> str:
    return "tool_use" if answer.calls and answer.stop == "end" else _STOP[answer.stop]


def _usage(answer: Answer, *, written: int | None = None) -> Json:
    return {
        "input_tokens": answer.input - answer.cached,
        "cache_read_input_tokens": answer.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": answer.output if written is None else written,
    }
