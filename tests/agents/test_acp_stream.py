"""What the real CLIs said over ACP, recorded (record_acp.py makes the files anew), read without them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from beadmill.agents.acp_cli import Cli, describe
from beadmill.agents.acp_stream import AcpStream
from beadmill.domain.ended import Ended, Failed, Limited, Replied, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

RECORDED = Path(__file__).parent / "recorded"
COPILOT, OPENCODE = "copilot-1.0.102", "opencode_acp-1.18.33"
REQUESTS = ("initialize", "session/new", "session/prompt")


def replay(name: str, case: str, *, requests: Sequence[str] = REQUESTS) -> tuple[AcpStream, list[AgentEvent]]:
    """The recorded lines, and before each answer the request that it answers."""
    stream = AcpStream(describe(name.partition("-")[0], {}), "t")
    return stream, list(_fed(stream, (RECORDED / name / f"{case}.jsonl").read_bytes().splitlines(), requests))


def _fed(stream: AcpStream, lines: Sequence[bytes], requests: Sequence[str]) -> Iterator[AgentEvent]:
    asked = [request(n, method) for n, method in enumerate(requests)]
    yield from stream.sent(asked.pop(0))
    for line in lines:
        yield from stream.feed(line)
        if asked and "method" not in json.loads(line):
            yield from stream.sent(asked.pop(0))


def request(number: int, method: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": "asked-for"}}


def end_of(name: str, case: str) -> Ended:
    return replay(name, case)[0].end(None, "")


@pytest.mark.parametrize("name", [COPILOT, OPENCODE])
def test_a_turn_is_told_in_order(name: str) -> None:
    stream, events = replay(name, "turn")
    shown = [e.kind for e in events if e.kind is not EventKind.WARNING]
    assert shown == [
        EventKind.STARTED, EventKind.TEXT, EventKind.TOOL, EventKind.TOOL_DONE, EventKind.TEXT, EventKind.USAGE,
    ]  # fmt: skip
    called, done = (next(e.data for e in events if e.kind is k) for k in (EventKind.TOOL, EventKind.TOOL_DONE))
    assert (called["name"], called["input"]["command"]) == ("shell", "echo hi")
    assert (done["ok"], done["output"], done["exit"]) == (True, "hi\n", 0)
    end = stream.end(None, "")
    assert isinstance(end, Replied)
    assert (end.text, end.session.conversation) == ("all done", stream.conversation)


def test_what_a_loaded_conversation_repeats_is_no_part_of_the_turn() -> None:
    stream, events = replay(COPILOT, "resumed", requests=("initialize", "session/load", "session/prompt"))
    assert stream.conversation == "asked-for"
    assert [e.data["text"] for e in events if e.kind is EventKind.TEXT] == ["I look first", "all done"]


def test_figures_of_the_last_step_alone_are_said_to_be_that_and_the_cost_is_whole() -> None:
    stream, events = replay(OPENCODE, "turn")
    usage = stream.end(None, "").usage
    assert (usage.output, usage.model) == (2, "scripted/scripted-large")
    assert usage.cost_usd == pytest.approx(0.00016, abs=5e-5)
    assert [e.data["message"] for e in events if e.kind is EventKind.WARNING] == [
        "the tokens of this turn are those of its last step: the CLI tells no more"
    ]


@pytest.mark.parametrize("name", [COPILOT, OPENCODE])
def test_a_turn_that_ends_over_a_refused_call_is_no_reply(name: str) -> None:
    stream = AcpStream(describe(name.partition("-")[0], {}), "t")
    lines = (RECORDED / name / "not_allowed.jsonl").read_bytes().splitlines()
    asks = next(n for n, line in enumerate(lines) if b"request_permission" in line)
    answer = next(n for n, line in enumerate(lines) if b"stopReason" in line)
    events = list(_fed(stream, lines[: asks + 1], REQUESTS))
    events += stream.refuse("echo hi", "read")
    for line in lines[asks + 1 : answer + 1]:
        events += stream.feed(line)
    assert stream.refused
    end = stream.end(None, "")
    assert isinstance(end, Failed)
    assert end.why is Why.NO_RESULT
    assert [e.data["ok"] for e in events if e.kind is EventKind.TOOL_DONE] == [False]


@pytest.mark.parametrize(
    ("name", "case", "why"),
    [
        (COPILOT, "auth", Why.AUTH),
        (COPILOT, "quota", Why.QUOTA),
        (COPILOT, "bad_model", Why.BAD_MODEL),
        (COPILOT, "context", Why.CONTEXT),
        (COPILOT, "refused", Why.REFUSED),
        (COPILOT, "internal", Why.OVERLOADED),
        (COPILOT, "overloaded", Why.OVERLOADED),
        (COPILOT, "transport", Why.TRANSPORT),
        (COPILOT, "garbled", Why.TRANSPORT),
        (OPENCODE, "auth", Why.AUTH),
        (OPENCODE, "bad_model", Why.BAD_MODEL),
        (OPENCODE, "context", Why.CONTEXT),
        (OPENCODE, "refused", Why.REFUSED),
        (OPENCODE, "garbled", Why.TRANSPORT),
    ],
)
def test_what_the_provider_says_is_classified(name: str, case: str, why: Why) -> None:
    end = end_of(name, case)
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (why, why in (Why.OVERLOADED, Why.TRANSPORT))


@pytest.mark.parametrize("case", ["limit", "rate"])
def test_a_rate_limit_is_no_failure_and_copilot_does_not_say_until_when(case: str) -> None:
    end = end_of(COPILOT, case)
    assert isinstance(end, Limited)
    assert end.until is None


@pytest.mark.parametrize("name", [COPILOT, OPENCODE])
def test_an_answer_that_was_cut_looks_like_any_other(name: str) -> None:
    """Neither CLI lets it through: what is missing is found by whoever reads the reply."""
    end = end_of(name, "truncated")
    assert isinstance(end, Replied)
    assert end.text.startswith("The answer begins, and th")


def test_a_retry_of_the_cli_is_shown_as_one() -> None:
    _, events = replay(COPILOT, "transport")
    said = {e.data["message"] for e in events if e.kind is EventKind.RETRY}
    assert said == {"Response was interrupted due to a server error. Retrying..."}


def test_a_failed_sign_in_says_how_to_sign_in() -> None:
    end = end_of(COPILOT, "auth")
    assert isinstance(end, Failed)
    assert end.message.endswith("· sign in: copilot login")


# --- by hand: what no recorded CLI does


def fed(*messages: Json, cli: Cli | None = None, spent: float | None = None) -> tuple[Ended, list[AgentEvent]]:
    stream = AcpStream(cli or Cli("made", usage="turn", cost=True), "t", spent=spent)
    events = stream.sent(request(0, "session/new"))
    events += stream.feed(b'{"id": 0, "result": {"sessionId": "s"}}')
    events += stream.sent(request(1, "session/prompt"))
    for message in messages:
        events += stream.feed(json.dumps(message).encode())
    return stream.end(None, ""), events


def update(update: str, **more: Json) -> Json:
    return {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": update, **more}}}


def text(words: str, message: str = "m") -> Json:
    return update("agent_message_chunk", messageId=message, content={"type": "text", "text": words})


def answer(stop: str = "end_turn", *, usage: Json = None) -> Json:
    return {"id": 1, "result": {"stopReason": stop, "usage": usage}}


def test_an_end_with_nothing_said_is_no_reply() -> None:
    end, _ = fed(answer())
    assert isinstance(end, Failed)
    assert (end.why, end.message, end.continuable) == (Why.NO_RESULT, "made ended its turn and said nothing", True)


def test_words_before_the_last_tool_are_no_reply() -> None:
    call = update("tool_call", toolCallId="c", kind="edit", status="completed", rawInput={"path": "a"})
    end, _ = fed(text("I look"), call, answer())
    assert isinstance(end, Failed)


def test_pieces_of_a_message_are_one_text_and_the_last_message_is_the_reply() -> None:
    end, events = fed(text("I "), text("look", "m"), text("all ", "n"), text("done", "n"), answer())
    assert [e.data["text"] for e in events if e.kind is EventKind.TEXT] == ["I look", "all done"]
    assert isinstance(end, Replied)
    assert end.text == "all done"


def test_a_model_that_says_error_is_not_the_cli_saying_it() -> None:
    end, _ = fed(text("Error"), text(": it is in line 3"), answer(), cli=Cli("made", error="^Error: (.+)$"))
    assert isinstance(end, Replied)
    assert end.text == "Error: it is in line 3"


@pytest.mark.parametrize(
    ("usage", "booked"),
    [
        ({"totalTokens": 17, "inputTokens": 5, "cachedReadTokens": 10, "outputTokens": 2}, Usage(5, 10, 2)),
        ({"totalTokens": 17, "inputTokens": 15, "cachedReadTokens": 10, "outputTokens": 2}, Usage(5, 10, 2)),
        ({"totalTokens": 20, "inputTokens": 15, "outputTokens": 2, "thoughtTokens": 3}, Usage(15, 0, 5, 3)),
        ({"totalTokens": 17, "inputTokens": 15, "outputTokens": 2, "thoughtTokens": 1}, Usage(15, 0, 2, 1)),
    ],
)
def test_the_total_tells_what_the_parts_include(usage: dict[str, int], booked: Usage) -> None:
    assert fed(text("done"), answer(usage=usage))[0].usage == booked


def test_a_cost_that_grows_is_booked_by_its_difference() -> None:
    told = update("usage_update", used=1, size=2, cost={"amount": 0.75, "currency": "USD"})
    assert fed(text("done"), told, answer(), spent=0.5)[0].usage == Usage(cost_usd=0.25)


def test_unknown_usage_is_said_and_never_zero_by_guess() -> None:
    end, events = fed(text("done"), answer(), cli=Cli("made"))
    assert end.usage == Usage()
    assert [e.kind for e in events] == [EventKind.STARTED, EventKind.TEXT, EventKind.WARNING]
    assert events[-1].data["message"] == "how many tokens this turn took is unknown: the CLI does not tell"


@pytest.mark.parametrize(
    ("error", "why", "says"),
    [
        ({"code": -32000, "message": "Authentication required"}, Why.AUTH, "Authentication required"),
        (
            {"code": -32603, "message": "Internal error", "data": {"details": "status 503"}},
            Why.OVERLOADED,
            "status 503",
        ),
        ({"code": -32603, "message": "Internal error"}, Why.OVERLOADED, "Internal error"),
        ({"code": -32602, "message": "Invalid params", "data": "no cwd"}, Why.INTERNAL, "Invalid params: no cwd"),
    ],
)
def test_errors_of_the_protocol_are_classified_by_their_words(error: Json, why: Why, says: str) -> None:
    end, _ = fed({"id": 1, "error": error})
    assert isinstance(end, Failed)
    assert (end.why, end.message) == (why, says)


def test_an_agent_that_ends_without_an_answer_says_its_last_words() -> None:
    stream = AcpStream(Cli("made"), "t")
    stream.sent(request(0, "initialize"))
    end = stream.end(3, "cannot find module 'x'\n")
    assert isinstance(end, Failed)
    assert (end.why, end.message) == (Why.NO_RESULT, "made exited with 3 and no result: cannot find module 'x'")


def test_lines_that_are_no_messages_are_shown_and_extensions_are_passed_by() -> None:
    stream = AcpStream(Cli("made"), "t")
    assert [e.kind for e in stream.feed(b"warming up")] == [EventKind.OUTPUT]
    assert stream.feed(b'{"method": "_qwen/notify/x", "params": {"y": 1}}') == []


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        ("max_tokens", Why.TRUNCATED),
        ("max_turn_requests", Why.STEPS),
        ("refusal", Why.REFUSED),
        ("cancelled", Why.NO_RESULT),
        ("something new", Why.INTERNAL),
    ],
)
def test_a_stop_for_another_reason_is_a_failure_that_names_it(stop: str, why: Why) -> None:
    end, _ = fed(text("half a"), answer(stop))
    assert isinstance(end, Failed)
    assert end.why is why
    assert f"({stop})" in end.message
