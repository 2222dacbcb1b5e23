"""Chat Completions: what OpenCode and most other CLIs speak."""

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
    "auth": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, check your billing."),
    "limit": (429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached for this model."),
    "rate": (429, "rate_limit_error", "rate_limit_exceeded", "Too many requests."),
    "overloaded": (503, "server_error", "", "The model is overloaded."),
    "internal": (500, "server_error", "", "The server had an error."),
    "bad_model": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "context": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens, the messages have more.",
    ),
    "refused": (400, "invalid_request_error", "content_policy_violation", "The prompt goes against the usage policy."),
}
_FINISH: Final = {"end": "stop", "truncated": "length", "refused": "content_filter"}


class Chat:
    path = "/chat/completions"

    def understand(self, body: Mapping[str, Json]) -> Transcript:
        reader = Reader()
        for message in body.get("messages") or []:
            if message.get("role") == "user":
                reader.said(text_of(message.get("content")))
            elif message.get("role") == "tool":
                reader.came_back(message.get("tool_call_id", ""), text_of(message.get("content")))
            for call in message.get("tool_calls") or []:
                reader.called(call.get("id", ""), call.get("function", {}).get("name", ""))
        functions = [t.get("function", {}) for t in body.get("tools") or []]
        tools = {str(f["name"]): f.get("parameters") or {} for f in functions if f.get("name")}
        return reader.read(str(body.get("model", "")), tools)

    def whole(self, answer: Answer) -> Json:
        calls = _calls(answer)
        message = {"role": "assistant", "content": _text(answer), **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        return {**_head(answer), "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}

    def stream(self, answer: Answer) -> Iterator[bytes]:
        yield _chunk(answer, {"role": "assistant", "content": ""})
        text = _text(answer)
        for begin in range(0, len(text), 400):
            yield _chunk(answer, {"content": text[begin : begin + 400]})
        for index, call in enumerate(_calls(answer)):
            yield _chunk(answer, {"tool_calls": [{"index": index, **call}]})
        yield _chunk(answer, {}, _finish(answer))
        yield frame({**_head(answer), "object": "chat.completion.chunk", "choices": [], "usage": _usage(answer)})
        yield frame("[DONE]")

    def opening(self, answer: Answer) -> Iterator[bytes]:
        yield _chunk(answer, {"role": "assistant", "content": ""})
        yield _chunk(answer, {"content": "a first "})

    def fault(self, name: str, message: str, seconds: float | None) -> Fault:
        status, kind, code, words = _FAULTS.get(name, _FAULTS["internal"])
        headers = {} if seconds is None else {"retry-after": str(int(seconds))}
        return Fault(status, {"error": {"message": message or words, "type": kind, "code": code or None}}, headers)


def _head(answer: Answer) -> dict[str, Json]:
    return {"id": f"chatcmpl-{answer.id}", "created": int(time.time()), "model": answer.model}


def _chunk(answer: Answer, delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return frame({**_head(answer), "object": "chat.completion.chunk", "choices": [choice]})


def _text(answer: Answer) -> str:
    return "\n\n".join(part.text for part in answer.parts if isinstance(part, Say))


def _calls(answer: Answer) -> list[dict[str, Json]]:
    return [
        {
            "id": f"call_{answer.id}_{n}",
            "type": "function",
            "function": {"name": part.tool, "arguments": json.dumps(part.arguments)},
        }
        for n, part in enumerate(answer.parts)
        if isinstance(part, Call)
    ]


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls and answer.stop == "end" else _FINISH[answer.stop]


def _usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input,
        "completion_tokens": answer.output,
        "total_tokens": answer.input + answer.output,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
