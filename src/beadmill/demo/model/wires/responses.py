"""OpenAI's Responses wire: what Codex speaks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Final

from beadmill.demo.model.answer import Answer, Call, Say
from beadmill.demo.model.transcript import Reader, Transcript, text_of
from beadmill.demo.model.wires import Fault, frame
from beadmill.domain.values import Json

_FAULTS: Final[Mapping[str, tuple[int, str, str, str]]] = {
    "auth": (401, "authentication_error", "invalid_api_key", "the key is not valid"),
    "quota": (429, "insufficient_quota", "insufficient_quota", "the quota is used up"),
    "limit": (429, "usage_limit_reached", "", "the usage limit is reached"),
    "rate": (429, "rate_limit_error", "rate_limit_exceeded", "too many requests"),
    "overloaded": (503, "server_error", "server_is_overloaded", "the model is overloaded"),
    "internal": (500, "server_error", "", "the server failed"),
    "bad_model": (404, "invalid_request_error", "model_not_found", "the model does not exist"),
    "context": (400, "invalid_request_error", "context_length_exceeded", "the context window is full"),
    "refused": (400, "invalid_request_error", "invalid_prompt", "the prompt was flagged by the usage policy"),
}


class Responses:
    path = "/responses"

    def understand(self, body: Mapping[str, Json]) -> Transcript:
        reader = Reader()
        given = body.get("input") or []
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            kind = str(item.get("type", "message"))
            if item.get("role") == "user":
                reader.said(text_of(item.get("content")))
            elif kind.endswith("_call"):
                reader.called(item.get("call_id", ""), item.get("name", ""))
            elif kind.endswith("_output"):
                reader.came_back(item.get("call_id", ""), text_of(item.get("output")))
        return reader.read(str(body.get("model", "")), _tools(body.get("tools") or []))

    def whole(self, answer: Answer) -> Json:
        return _response(answer, "incomplete" if answer.stop == "truncated" else "completed")

    def stream(self, answer: Answer) -> Iterator[bytes]:
        yield _event("response.created", response=_response(answer, "in_progress"))
        for index, item in enumerate(_items(answer)):
            yield from _item_events(index, item)
        end = "response.incomplete" if answer.stop == "truncated" else "response.completed"
        yield _event(end, response=self.whole(answer))

    def opening(self, answer: Answer) -> Iterator[bytes]:
        yield _event("response.created", response=_response(answer, "in_progress"))
        item = _item(Say(""), f"{answer.id}_0")
        yield _event("response.output_item.added", output_index=0, item={**item, "content": []})
        yield _event(
            "response.output_text.delta", output_index=0, item_id=item["id"], content_index=0, delta="a first "
        )

    def fault(self, name: str, message: str, seconds: float | None) -> Fault:
        status, kind, code, words = _FAULTS.get(name, _FAULTS["internal"])
        error: dict[str, Json] = {"message": message or words, "type": kind, "code": code or None}
        if seconds is not None:
            error["resets_at"] = int(time.time() + seconds)
        return Fault(status, {"error": error})


def _tools(given: Json) -> dict[str, Json]:
    """Tools may be grouped in namespaces."""
    found: dict[str, Json] = {}
    for tool in given:
        if tool.get("type") == "namespace":
            found |= _tools(tool.get("tools") or [])
        elif tool.get("name"):
            found[str(tool["name"])] = tool.get("parameters") or {}
    return found


def _event(kind: str, **data: Json) -> bytes:
    return frame({"type": kind, **data}, kind)


def _items(answer: Answer) -> list[dict[str, Json]]:
    return [_item(part, f"{answer.id}_{n}") for n, part in enumerate(answer.parts)]


def _item(part: Say | Call, name: str) -> dict[str, Json]:
    if isinstance(part, Say):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    call = {"id": f"fc_{name}", "call_id": f"call_{name}", "name": part.tool, "arguments": json.dumps(part.arguments)}
    return {"type": "function_call", **call, "status": "completed"}


def _response(answer: Answer, status: str) -> Json:
    usage = {
        "input_tokens": answer.input,
        "input_tokens_details": {"cached_tokens": answer.cached},
        "output_tokens": answer.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input + answer.output,
    }
    head = {"id": f"resp_{answer.id}", "object": "response", "created_at": int(time.time()), "model": answer.model}
    over = status != "in_progress"
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    return {**head, "status": status, "output": _items(answer) if over else [], "usage": usage if over else None, **why}


def _item_events(index: int, item: Mapping[str, Json]) -> Iterator[bytes]:
    at = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "message":
        empty = {**item, "content": [], "status": "in_progress"}
        yield _event("response.output_item.added", output_index=index, item=empty)
        text: str = item["content"][0]["text"]
        for begin in range(0, len(text), 400):
            yield _event("response.output_text.delta", **at, content_index=0, delta=text[begin : begin + 400])
        yield _event("response.output_text.done", **at, content_index=0, text=text)
    else:
        empty = {**item, "arguments": "", "status": "in_progress"}
        yield _event("response.output_item.added", output_index=index, item=empty)
        yield _event("response.function_call_arguments.done", **at, arguments=item["arguments"])
    yield _event("response.output_item.done", output_index=index, item=item)
