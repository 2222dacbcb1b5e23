"""Codex's lines without Codex: events, ends, and what its real messages mean."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from beadmill.agents.codex_stream import CodexStream, Totals, classify, until
from beadmill.domain.ended import Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

THREAD = {"type": "thread.started", "thread_id": "0199-aa"}
DONE = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 3300,
        "cached_input_tokens": 1200,
        "cache_write_input_tokens": 0,
        "output_tokens": 150,
        "reasoning_output_tokens": 30,
    },
}


def item(kind: str, **data: Json) -> Json:
    return {"type": "item.completed", "item": {"id": "item_1", "type": kind, **data}}


def feed(stream: CodexStream, *rows: Json) -> list[AgentEvent]:
    return [event for row in rows for event in stream.feed(json.dumps(row).encode())]


def shown(stream: CodexStream, *rows: Json) -> list[tuple[EventKind, Json]]:
    return [(event.kind, event.data) for event in feed(stream, *rows)]


def test_a_turn_becomes_a_reply_with_its_thread_and_usage() -> None:
    stream = CodexStream("t")
    feed(stream, THREAD, item("agent_message", text="first"), item("agent_message", text="last"), DONE)
    end = stream.end(0, "")
    assert end == Replied(session=SessionRef("t", "0199-aa"), usage=Usage(2100, 1200, 150, 30), text="last")


def test_after_a_resume_the_threads_total_is_not_booked_twice() -> None:
    stream = CodexStream("t", before=Totals(3000, 1100, 100, 20))
    feed(stream, THREAD, item("agent_message", text="x"), DONE)
    assert stream.end(0, "").usage == Usage(200, 100, 50, 10)


def test_a_thread_that_counts_anew_is_booked_whole() -> None:
    stream = CodexStream("t", before=Totals(90_000, 0, 900, 0))
    feed(stream, THREAD, item("agent_message", text="x"), DONE)
    assert stream.end(0, "").usage == Usage(2100, 1200, 150, 30)


def test_commands_and_edits_are_tools() -> None:
    begun = {"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "ls"}}
    failed = item("command_execution", command="ls", aggregated_output="no", exit_code=2, status="failed")
    edit = item("file_change", changes=[{"path": "a", "kind": "add"}], status="completed")
    assert shown(CodexStream("t"), begun, failed, edit) == [
        (EventKind.TOOL, {"id": "i", "name": "shell", "input": "ls"}),
        (EventKind.TOOL_DONE, {"id": "item_1", "name": "shell", "ok": False, "output": "no", "exit": 2}),
        (EventKind.TOOL_DONE, {"id": "item_1", "name": "edit", "ok": True, "output": "", "exit": None}),
    ]


def test_thoughts_warnings_and_retries_are_shown() -> None:
    rows = (
        item("reasoning", text="hm"),
        item("error", message="careful"),
        {"type": "error", "message": "Reconnecting... 2/5 (unexpected status 500 x, url: http://h/v1)"},
    )
    assert shown(CodexStream("t"), *rows) == [
        (EventKind.THINKING, {"text": "hm"}),
        (EventKind.WARNING, {"message": "careful"}),
        (EventKind.RETRY, {"attempt": 2, "message": "unexpected status 500 x, url: http://h/v1"}),
    ]


@pytest.mark.parametrize("line", [b"not json", b"[1,2", b"\xff\xfe", b'{"no": "type"}', b"[" * 100_000])
def test_a_line_nobody_can_read_is_shown_as_output(line: bytes) -> None:
    (event,) = CodexStream("t").feed(line)
    assert (event.kind, event.data["stream"]) == (EventKind.OUTPUT, "stdout")


@pytest.mark.parametrize(
    "row", [{"type": "item.completed"}, {"type": "item.completed", "item": 3}, {"type": "new.kind"}, {"type": "error"}]
)
def test_rows_of_another_version_break_nothing(row: Json) -> None:
    stream = CodexStream("t")
    feed(stream, row)
    assert isinstance(stream.end(1, "boom"), Failed)


def test_a_schema_gives_data_and_a_broken_reply_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    for text, data in (('{"a": 1, "b": null}', {"a": 1}), ("sorry", None)):
        stream = CodexStream("t", schema=schema)
        feed(stream, THREAD, item("agent_message", text=text), DONE)
        end = stream.end(0, "")
        assert isinstance(end, Replied)
        assert (end.text, end.data) == (text, data)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:5000/v1/responses", Why.AUTH),
        ("Your access token could not be refreshed. Please log out and sign in again.", Why.AUTH),
        ("Missing environment variable: `OPENAI_API_KEY`.", Why.AUTH),
        ("Quota exceeded. Check your plan and billing details.", Why.QUOTA),
        ("You've hit your usage limit. Try again at 12:18 PM.", None),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("Selected model is at capacity. Please try a different model.", Why.OVERLOADED),
        ("We're currently experiencing high demand, which may cause temporary errors.", Why.OVERLOADED),
        ("unexpected status 502 Bad Gateway: x", Why.OVERLOADED),
        ("Codex ran out of room in the model's context window. Start a new thread.", Why.CONTEXT),
        ("stream disconnected before completion: Transport error: network error", Why.TRANSPORT),
        ("the prompt was flagged by the usage policy", Why.REFUSED),
        ("The 'x' model is not supported when using Codex with a ChatGPT account.", Why.BAD_MODEL),
        ("something entirely new", Why.INTERNAL),
    ],
)
def test_messages_of_the_cli_mean_one_thing(message: str, why: Why | None) -> None:
    assert classify(message) is why


def test_a_failed_turn_ends_as_its_message_says() -> None:
    stream = CodexStream("t")
    feed(stream, THREAD, {"type": "turn.failed", "error": {"message": "stream disconnected before completion"}})
    end = stream.end(1, "")
    assert isinstance(end, Failed)
    assert (end.why, end.continuable, end.session.conversation) == (Why.TRANSPORT, True, "0199-aa")


def test_a_limit_is_limited() -> None:
    stream = CodexStream("t")
    feed(stream, THREAD, {"type": "turn.failed", "error": {"message": "You've hit your usage limit."}})
    assert isinstance(stream.end(1, ""), Limited)


def test_an_exit_without_a_word_is_no_result() -> None:
    end = CodexStream("t").end(1, "thread/resume failed: no rollout found")
    assert isinstance(end, Failed)
    assert end.why is Why.NO_RESULT
    assert end.message == "codex exited with 1 and no result: thread/resume failed: no rollout found"


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("Try again in 3 days 4 hours 5 minutes.", timedelta(days=3, hours=4, minutes=5)),
        ("Try again at Mar 3rd, 2026 1:30 PM.", timedelta(days=2, hours=1, minutes=30)),
        ("Try again at 1:30 PM.", timedelta(hours=1, minutes=30)),
        ("Try again at 11:30 AM.", timedelta(hours=23, minutes=30)),
        ("Try again at 12:00 PM.", timedelta(seconds=5)),
    ],
)
def test_until_is_read_from_the_message(text: str, ahead: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert until(text, NOW) == NOW + ahead


def test_until_is_unknown_when_nothing_says_so() -> None:
    assert until("exceeded retry limit, last status: 429", NOW) is None
