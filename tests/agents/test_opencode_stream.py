"""OpenCode's events without OpenCode: recorded turns, and what its errors mean."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from beadmill.agents.opencode_stream import OpenCodeStream, Totals, classify, finished
from beadmill.agents.opencode_turn import message_id
from beadmill.domain.ended import Asked, Ended, Failed, Limited, Replied, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

RECORDED = Path(__file__).parent / "recorded" / "opencode-1.18.33"


def play(case: str) -> tuple[OpenCodeStream, list[AgentEvent], Json]:
    """A recorded turn: the stream behind it, its events, and the newest message."""
    *rows, last = [json.loads(line) for line in (RECORDED / f"{case}.jsonl").read_text().splitlines()]
    about = rows[0]["properties"]
    stream = OpenCodeStream("t", conversation=about["sessionID"], message=about["info"]["id"])
    return stream, [event for row in rows for event in stream.feed(row)], last["message"]


def shown(case: str) -> list[tuple[EventKind, Json]]:
    _, events, _ = play(case)
    return [(e.kind, e.data) for e in events]


def ended(case: str) -> Ended:
    stream, _, newest = play(case)
    return stream.end(newest, Usage())


def test_a_turn_is_shown_in_order() -> None:
    call = {"id": shown("turn")[1][1]["id"], "name": "shell"}
    assert shown("turn") == [
        (EventKind.TEXT, {"text": "I look first"}),
        (EventKind.TOOL, {**call, "input": "echo hi"}),
        (EventKind.TOOL_DONE, {**call, "ok": True, "output": "hi\n", "exit": 0}),
        (EventKind.TEXT, {"text": "all done"}),
    ]


def test_a_turn_ends_with_its_last_words() -> None:
    stream, _, newest = play("turn")
    end = stream.end(newest, Usage(output=3))
    assert (stream.idle, end) == (True, Replied(session=stream.ref, usage=Usage(output=3), text="all done"))


def test_a_failing_command_and_a_tool_that_is_not_offered_are_told() -> None:
    (failed,) = [data for kind, data in shown("failing-tool") if kind is EventKind.TOOL_DONE]
    assert (failed["ok"], failed["exit"], failed["output"]) == (False, 3, "no\n")
    (refused,) = [data for kind, data in shown("tool-not-offered") if kind is EventKind.TOOL_DONE]
    assert "unavailable tool" in refused["output"]


def test_a_schema_gives_data_and_its_tool_is_none_of_the_agents() -> None:
    end = ended("schema")
    assert isinstance(end, Replied)
    assert (end.data, shown("schema")) == ({"n": 3}, [])


def test_a_question_is_read_with_its_options() -> None:
    stream, _, _ = play("question")
    assert stream.asks(Usage()) == Asked(session=stream.ref, question="Which colour?", options=("red", "blue"))


def test_a_retry_is_shown_and_known() -> None:
    stream, events, _ = play("overloaded")
    retries = [e.data for e in events if e.kind is EventKind.RETRY]
    assert retries[:1] == [{"attempt": 1, "message": "The model is overloaded."}]
    assert stream.retry is not None
    end = stream.gave_up(stream.retry, Usage())
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (Why.OVERLOADED, True)


@pytest.mark.parametrize(("case", "why"), [("auth", Why.AUTH), ("truncated", Why.TRUNCATED)])
def test_a_failed_turn_says_why(case: str, why: Why) -> None:
    end = ended(case)
    assert isinstance(end, Failed)
    assert end.why is why


def test_what_is_told_twice_is_shown_once() -> None:
    *rows, _ = [json.loads(line) for line in (RECORDED / "turn.jsonl").read_text().splitlines()]
    about = rows[0]["properties"]
    stream = OpenCodeStream("t", conversation=about["sessionID"], message=about["info"]["id"])
    events = [event for row in rows for event in (*stream.feed(row), *stream.feed(row))]
    assert [e.kind for e in events] == [kind for kind, _ in shown("turn")]


@pytest.mark.parametrize(
    "row", [None, 3, {}, {"type": "session.idle"}, {"type": "message.part.updated", "properties": {}}]
)
def test_events_of_others_and_of_other_versions_break_nothing(row: Json) -> None:
    stream = OpenCodeStream("t", conversation="ses_1", message="msg_1")
    assert (stream.feed(row), stream.idle) == ([], False)


@pytest.mark.parametrize(
    "about",
    [
        {"info": 3},
        {"part": {"type": "tool"}},
        {"part": {"type": "tool", "state": {"status": "error", "error": 4}}},
        {"status": {"type": "retry"}},
        {"error": "x"},
    ],
)
def test_odd_fields_break_nothing(about: Json) -> None:
    stream = OpenCodeStream("t", conversation="ses_1", message="msg_1")
    for kind in ("message.updated", "message.part.updated", "session.status", "session.error", "question.asked"):
        stream.feed({"type": kind, "properties": {"sessionID": "ses_1", **about}})
    assert isinstance(stream.end(None, Usage()), Failed)


@pytest.mark.parametrize(
    ("message", "more", "why"),
    [
        ("Incorrect API key provided.", {"status": 401}, Why.AUTH),
        ("You exceeded your current quota, check your billing.", {}, Why.QUOTA),
        ("Payment Required", {"status": 402}, Why.QUOTA),
        ("Rate limit reached for this model.", {}, None),
        ("Too Many Requests", {"status": 429}, None),
        ("The usage limit has been reached", {}, None),
        ("x", {"name": "ContextOverflowError"}, Why.CONTEXT),
        ("prompt is too long: 210000 tokens", {"status": 400}, Why.CONTEXT),
        ("Bad Request", {"status": 400, "detail": '{"code": "content_policy_violation"}'}, Why.REFUSED),
        ("The model does not exist.", {"status": 404}, Why.BAD_MODEL),
        ("model not found: a/b", {"name": "UnknownError"}, Why.BAD_MODEL),
        ("Overloaded", {"status": 529}, Why.OVERLOADED),
        ("Internal Server Error", {"status": 500}, Why.OVERLOADED),
        ("Connection reset by server", {"status": 503}, Why.TRANSPORT),
        ("JSON parsing failed: Text: {", {"name": "UnknownError"}, Why.TRANSPORT),
        ("something else", {}, Why.INTERNAL),
    ],
)
def test_real_messages_are_understood(message: str, more: dict[str, Json], why: Why | None) -> None:
    assert classify(message, **more) is why


def test_a_limit_says_when_it_ends() -> None:
    stream = OpenCodeStream("t", conversation="ses_1", message="msg_1")
    status = {"type": "retry", "attempt": 1, "message": "Too many requests", "next": 1_796_060_284_597}
    stream.feed({"type": "session.status", "properties": {"sessionID": "ses_1", "status": status}})
    assert stream.retry is not None
    end = stream.gave_up(stream.retry, Usage())
    assert isinstance(end, Limited)
    assert end.until == datetime.fromtimestamp(1_796_060_284.597, UTC)


def test_a_turns_usage_is_a_difference_and_reasoning_counts_as_output() -> None:
    tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 70, "write": 10}}
    now = Totals.read({"tokens": tokens, "cost": 0.5})
    assert now.since(Totals(60, 30, 10, 1, 0.2)) == Usage(50, 40, 14, 4, 0.3)
    assert now.since(now) == Usage()


def test_only_a_whole_answer_to_our_prompt_is_finished() -> None:
    _, _, newest = play("turn")
    parent = newest["info"]["parentID"]
    assert finished(newest, parent)
    assert not finished(newest, "msg_other")
    for change in ({"finish": "tool-calls"}, {"error": {"name": "x"}}, {"time": {"created": 1}}):
        assert not finished({**newest, "info": {**newest["info"], **change}}, parent)


def test_message_ids_sort_by_time_as_opencodes_own_do() -> None:
    assert message_id(1_796_052_836.885).startswith("msg_22d176215001")
    assert message_id(1.0) < message_id(2.0)
