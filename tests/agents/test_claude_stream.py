"""Claude Code's lines without Claude Code: recorded turns, and rows that a recording cannot have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from beadmill.agents.claude_stream import ClaudeStream, Totals
from beadmill.domain.ended import Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

RECORDED = Path(__file__).parent / "recorded" / "claude_code-2.1.332"


def played(case: str, stream: ClaudeStream | None = None, *, code: int = 0) -> tuple[Ended, list[AgentEvent]]:
    stream = stream or ClaudeStream("t")
    lines = (RECORDED / f"{case}.jsonl").read_bytes().splitlines()
    events = [event for line in lines for event in stream.feed(line)]
    return stream.end(code, ""), events


def fed(stream: ClaudeStream, *rows: Json) -> list[tuple[EventKind, Json]]:
    return [(event.kind, event.data) for row in rows for event in stream.feed(json.dumps(row).encode())]


def said(*blocks: Json, **more: Json) -> Json:
    message = {"id": "m", "content": list(blocks), "usage": {"input_tokens": 10, "cache_read_input_tokens": 5}}
    return {"type": "assistant", "message": message, **more}


def test_a_turn_is_told_step_by_step() -> None:
    end, events = played("work")
    shown = [(e.kind, e.data.get("name"), e.data.get("output"), e.data.get("exit")) for e in events]
    assert shown == [
        (EventKind.STARTED, None, None, None),
        (EventKind.TEXT, None, None, None),
        (EventKind.TOOL, "shell", None, None),
        (EventKind.TOOL_DONE, "shell", "hi\n", 0),
        (EventKind.TOOL, "shell", None, None),
        (EventKind.TOOL_DONE, "shell", "oops\n", 3),
        (EventKind.TOOL, "shell", None, None),
        (EventKind.TOOL_DONE, "shell", "", 0),
        (EventKind.TEXT, None, None, None),
        (EventKind.USAGE, None, 24, None),
    ]
    assert isinstance(end, Replied)
    assert end.text == "all done"


def test_the_start_names_conversation_model_and_version() -> None:
    end, (started, *_) = played("work")
    assert (started.data["model"], started.data["version"]) == ("claude-sonnet-4-5", "2.1.332")
    assert started.data["conversation"] == end.session.conversation != ""


def test_a_structured_reply_is_data_and_no_step() -> None:
    end, events = played("schema", ClaudeStream("t", schema=True))
    assert isinstance(end, Replied)
    assert end.data == {"v": "pass"}
    assert [e.kind for e in events] == [EventKind.STARTED, EventKind.USAGE]


def test_a_reply_that_misses_the_schema_is_text_without_data() -> None:
    end, _ = played("schema_missed", ClaudeStream("t", schema=True))
    assert isinstance(end, Replied)
    assert (end.text, end.data) == ("sorry", None)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("auth", Why.AUTH),
        ("signed_out", Why.AUTH),
        ("quota", Why.QUOTA),
        ("overloaded", Why.OVERLOADED),
        ("internal", Why.OVERLOADED),
        ("bad_model", Why.BAD_MODEL),
        ("context", Why.CONTEXT),
        ("truncated", Why.TRUNCATED),
        ("refused", Why.REFUSED),
        ("transport", Why.TRANSPORT),
        ("garbled", Why.TRANSPORT),
        ("stall", Why.TRANSPORT),
        ("steps", Why.STEPS),
        ("lost", Why.NO_RESULT),
    ],
)
def test_every_recorded_failure_has_its_reason(case: str, why: Why) -> None:
    end, _ = played(case, code=1)
    assert isinstance(end, Failed)
    assert end.why is why
    assert end.message != ""


def test_a_subscriptions_limit_ends_when_the_provider_says() -> None:
    end, events = played("limit", code=1)
    assert isinstance(end, Limited)
    rows = [json.loads(line) for line in (RECORDED / "limit.jsonl").read_bytes().splitlines()]
    (resets,) = [r["rate_limit_info"]["resetsAt"] for r in rows if r["type"] == "rate_limit_event"]
    assert end.until == datetime.fromtimestamp(resets, UTC)
    assert [e.data for e in events if e.kind is EventKind.WARNING] == [{"message": end.message}]


@pytest.mark.parametrize("case", ["rate", "limit_with_a_key"])
def test_a_rate_limit_names_no_end(case: str) -> None:
    end, _ = played(case, code=1)
    assert isinstance(end, Limited)
    assert end.until is None


def test_a_retry_of_the_cli_is_shown() -> None:
    _, events = played("overloaded", code=1)
    assert [e.data for e in events if e.kind is EventKind.RETRY] == [
        {"attempt": 1, "message": "overloaded (status 529)"}
    ]


def test_a_model_without_a_known_price_costs_an_unknown_sum() -> None:
    priced, _ = played("work")
    unpriced, _ = played("unpriced")
    assert priced.usage.cost_usd is not None
    assert priced.usage.cost_usd > 0
    assert (unpriced.usage.cost_usd, unpriced.usage.model) == (None, "a-model-nobody-knows")


def test_after_a_resume_the_conversations_total_is_not_booked_twice() -> None:
    total = {"inputTokens": 130, "cacheReadInputTokens": 50, "outputTokens": 9, "costUSD": 0.75}
    run = {"input_tokens": 30, "cache_read_input_tokens": 40, "output_tokens": 4}
    stream = ClaudeStream("t", before=Totals(100, 10, 5, 0, 0.5))
    fed(stream, {"type": "result", "result": "x", "usage": run, "modelUsage": {"m": total}})
    assert stream.end(0, "").usage == Usage(30, 40, 4, 0, 0.25)


def test_tokens_written_to_the_cache_are_input_and_models_are_added_up() -> None:
    models = {
        "a": {"inputTokens": 100, "cacheCreationInputTokens": 20, "cacheReadInputTokens": 7, "outputTokens": 5, "costUSD": 0.5},
        "b": {"inputTokens": 1, "outputTokens": 2, "thinkingTokens": 1, "costUSD": 0.25, "costBasis": "list"},
    }  # fmt: skip
    assert Totals.read(models) == Totals(121, 7, 7, 1, 0.75)


def test_a_conversation_that_counts_anew_is_booked_whole() -> None:
    alone = Totals(10, 0, 1, 0, 0.1)
    assert alone.since(Totals(900, 0, 90, 0, 9.0), alone, "m") == Usage(10, 0, 1, 0, 0.1, "m")


def test_a_turn_that_is_cut_tells_what_it_has_heard() -> None:
    stream = ClaudeStream("t")
    fed(stream, said({"type": "text", "text": "a" * 400}), said({"type": "text", "text": "b" * 400}))
    used = stream.so_far()
    assert used is not None
    assert (used.data["input"], used.data["cached"], 200 <= used.data["output"] <= 220) == (10, 5, True)
    assert stream.totals == Totals(10, 5, used.data["output"], 0, 0.0)


def test_a_turn_with_a_result_has_told_its_usage_already() -> None:
    stream = ClaudeStream("t")
    played("work", stream)
    assert stream.so_far() is None


def test_thoughts_edits_and_other_tools_are_shown() -> None:
    edit = {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": "/w/a", "old_string": "x"}}
    grep = {"type": "tool_use", "id": "2", "name": "Grep", "input": {"pattern": "x"}}
    failed = {"type": "tool_result", "tool_use_id": "2", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    rows = said({"type": "thinking", "thinking": "hm"}, edit, grep), {"type": "user", "message": {"content": [failed]}}
    assert fed(ClaudeStream("t"), *rows) == [
        (EventKind.THINKING, {"text": "hm"}),
        (EventKind.TOOL, {"id": "1", "name": "edit", "input": {"path": "/w/a"}}),
        (EventKind.TOOL, {"id": "2", "name": "Grep", "input": {"pattern": "x"}}),
        (EventKind.TOOL_DONE, {"id": "2", "name": "Grep", "ok": False, "output": "no", "exit": None}),
    ]


def test_an_exit_that_the_cli_takes_for_a_success_is_not_called_0() -> None:
    call = said({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "grep x y"}})
    block = {"type": "tool_result", "tool_use_id": "1", "content": "(Bash completed with no output)"}
    result = {"returnCodeInterpretation": "No matches found"}
    _, (_, done) = fed(
        ClaudeStream("t"), call, {"type": "user", "message": {"content": [block]}, "tool_use_result": result}
    )
    assert (done["ok"], done["output"], done["exit"]) == (True, "", None)


def test_denials_warnings_and_a_shortened_conversation_are_shown() -> None:
    rows = (
        {"type": "system", "subtype": "compact_boundary"},
        {"type": "system", "subtype": "informational", "content": "careful"},
        {"type": "result", "result": "x", "permission_denials": [{"tool_name": "Write"}]},
    )
    assert [data["message"] for _, data in fed(ClaudeStream("t"), *rows)] == [
        "the conversation grew too long and was shortened to a summary",
        "careful",
        "it was not allowed to use Write",
    ]


@pytest.mark.parametrize("line", [b"not json", b"[1,2", b"\xff\xfe", b'{"no": "type"}', b"[" * 100_000])
def test_a_line_nobody_can_read_is_shown_as_output(line: bytes) -> None:
    (event,) = ClaudeStream("t").feed(line)
    assert (event.kind, event.data["stream"]) == (EventKind.OUTPUT, "stdout")


@pytest.mark.parametrize(
    "row",
    [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": "words"}},
        {"type": "user", "message": 3},
        {"type": "rate_limit_event", "rate_limit_info": None},
        {"type": "system", "subtype": "something_new"},
        {"type": "stream_event", "event": {}},
    ],
)
def test_rows_of_another_version_break_nothing(row: Json) -> None:
    stream = ClaudeStream("t")
    fed(stream, row)
    assert isinstance(stream.end(1, "boom"), Failed)


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        ("", Why.NO_RESULT),
        ("error: unknown option '--tools'", Why.NO_RESULT),
        ("Not logged in · Please run /login", Why.AUTH),
    ],
)
def test_an_exit_without_a_result_is_told_with_what_was_said(stderr: str, why: Why) -> None:
    end = ClaudeStream("t").end(1, stderr)
    message = f"claude exited with 1 and no result: {stderr or 'it said nothing'}"
    assert end == Failed(session=SessionRef("t"), why=why, message=message, continuable=why is Why.NO_RESULT)


def test_a_limit_in_words_alone_is_read_too() -> None:
    stream, ends = ClaudeStream("t"), datetime.now(UTC) + timedelta(hours=2)
    words = f"Claude AI usage limit reached|{int(ends.timestamp())}"
    fed(stream, {"type": "result", "is_error": True, "result": words})
    end = stream.end(1, "")
    assert isinstance(end, Limited)
    assert end.until == ends.replace(microsecond=0)


def test_c64_a_tool_that_prints_the_words_of_a_limit_does_not_end_a_turn_that_succeeds() -> None:
    stream = ClaudeStream("t")
    shown = {"type": "tool_result", "tool_use_id": "u", "content": "rate limit exceeded 429", "is_error": True}
    fed(stream, said({"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "cat notes"}}))
    fed(stream, {"type": "user", "message": {"content": [shown]}}, {"type": "result", "result": "all done"})
    end = stream.end(0, "")
    assert isinstance(end, Replied)
    assert end.text == "all done"


def test_c89_tokens_of_the_cache_and_of_sub_agents_are_counted_and_the_total_is_their_sum() -> None:
    stream = ClaudeStream("t")
    main = {
        "inputTokens": 3,
        "outputTokens": 1,
        "cacheReadInputTokens": 19464,
        "cacheCreationInputTokens": 1124,
        "costUSD": 0.01,
    }
    helpers = {"inputTokens": 20, "outputTokens": 10, "cacheReadInputTokens": 200, "costUSD": 0.02}
    fed(
        stream,
        {"type": "result", "result": "x", "modelUsage": {"main": main, "helper-1": helpers, "helper-2": helpers}},
    )
    used = stream.end(0, "").usage
    assert (used.input, used.cached, used.output) == (3 + 1124 + 40, 19464 + 400, 1 + 20)
    assert (used.tokens, used.cost_usd) == (1167 + 19864 + 21, 0.05)
