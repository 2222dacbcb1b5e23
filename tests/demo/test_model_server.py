"""The scripted model over real HTTP: stateless, streamed, failing on purpose."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.agents.scenario import Step
from beadmill.demo.model.server import ModelServer
from beadmill.demo.model.transcript import command_of, stretch
from beadmill.demo.model.wires.responses import Responses
from beadmill.domain.values import Json

BRIEF = "Beadmill task: coding | ticket: T-1 | subject: a | seat: 1 | turn: 1\ngo"
FAULTS = (
    "auth", "quota", "limit", "rate", "overloaded", "internal", "bad_model", "context", "transport", "garbled", "truncated",
)  # fmt: skip
TOOLS = [{"type": "function", "name": "exec_command"}]


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def called(n: int, output: str = "ok", tool: str = "exec_command") -> list[Json]:
    return [
        {"type": "function_call", "call_id": f"c{n}", "name": tool, "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{n}", "output": output},
    ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ModelServer]:
    steps = [{"say": "first"}, {"shell": "ls"}, {"delete": "a b"}, {"reply": "done"}]
    faults = [{"match": {"template": why}, "steps": [{"fail": {"why": why}}]} for why in FAULTS]
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"replies": [{"match": {"template": "coding"}, "steps": steps}, *faults]}))
    with ModelServer(script) as running:
        yield running


def post(server: ModelServer, items: list[Json], *, stream: bool = False) -> bytes:
    body = json.dumps({"model": "m", "input": items, "tools": TOOLS, "stream": stream}).encode()
    request = urllib.request.Request(f"{server.url}/responses", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        data: bytes = answer.read()
    return data


def said(server: ModelServer, *items: Json) -> list[tuple[str, Json]]:
    output = json.loads(post(server, list(items)))["output"]
    return [
        (i["type"], i["content"][0]["text"] if i["type"] == "message" else json.loads(i["arguments"])) for i in output
    ]


def test_the_next_step_is_read_from_the_request_alone(server: ModelServer) -> None:
    assert said(server, user(BRIEF)) == [("message", "first"), ("function_call", {"cmd": "ls"})]
    assert said(server, user(BRIEF), *called(1)) == [("function_call", {"cmd": "rm -- 'a b'"})]
    assert said(server, user(BRIEF), *called(1), *called(2)) == [("message", "done")]
    assert said(server, user(BRIEF), *called(1), *called(2), user(BRIEF))[0] == ("message", "first")


def test_a_command_that_still_runs_is_polled_and_counts_once(server: ModelServer) -> None:
    running = called(1, "Process running with session ID 7")
    assert said(server, user(BRIEF), *running) == [
        ("function_call", {"session_id": 7, "chars": "", "yield_time_ms": 30_000})
    ]
    polled = [*running, *called(2, "exited", "write_stdin")]
    assert said(server, user(BRIEF), *polled) == [("function_call", {"cmd": "rm -- 'a b'"})]


def test_what_the_cli_adds_in_the_users_name_is_no_brief() -> None:
    body = {
        "input": [
            user("# AGENTS.md instructions for /x"),
            user("<environment_context>\n</environment_context>"),
            user("b"),
        ]
    }
    assert Responses().understand(body).briefs == ("b",)


def test_a_stream_ends_with_the_whole_response(server: ModelServer) -> None:
    rows = [r for r in post(server, [user(BRIEF)], stream=True).decode().split("\n\n") if r]
    events = [json.loads(row.partition("data: ")[2]) for row in rows]
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    response = events[-1]["response"]
    assert [item["type"] for item in response["output"]] == ["message", "function_call"]
    assert response["usage"]["total_tokens"] == response["usage"]["input_tokens"] + response["usage"]["output_tokens"]


def test_a_fault_has_the_status_of_a_real_one(server: ModelServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, [user(BRIEF.replace("coding", "auth"))])
    with refused.value as answer:
        assert (answer.code, json.load(answer)["error"]["code"]) == (401, "invalid_api_key")


def test_a_cut_stream_is_cut(server: ModelServer) -> None:
    import http.client

    with pytest.raises(http.client.IncompleteRead):
        post(server, [user(BRIEF.replace("coding", "transport"))], stream=True)


@pytest.mark.parametrize(
    ("step", "command"),
    [
        (Step("write", {"path": "a.txt", "content": "x\n"}), "cat > a.txt <<'END_OF_FILE'\nx\nEND_OF_FILE"),
        (Step("append", {"path": "d/a b", "content": "x"}), "mkdir -p -- d && printf %s x >> 'd/a b'"),
        (Step("write", {"path": "a", "content": "END_OF_FILE\n"}), "printf %s 'END_OF_FILE\n' > a"),
        (Step("shell", "make"), "make"),
    ],
)
def test_edits_become_shell_commands(step: Step, command: str) -> None:
    assert command_of(step) == command


def test_an_answer_stretches_to_its_next_edit() -> None:
    steps = [Step("say", "a"), Step("shell", "1"), Step("say", "b"), Step("shell", "2"), Step("reply", "c")]
    assert [[s.value for s in stretch(steps, n)] for n in range(4)] == [["a", "1"], ["b", "2"], ["c"], []]


def asked(wire: str, text: str, *, stream: bool = False) -> bytes:
    """The least request of each wire."""
    message = {"role": "user", "content": text}
    said = {"input": text} if wire == "/responses" else {"messages": [message]}
    return json.dumps({"model": "m", "stream": stream, **said}).encode()


def answered(server: ModelServer, wire: str, text: str, *, stream: bool = False) -> bytes:
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(server.url + wire, asked(wire, text, stream=stream), headers)
    ) as got:
        data: bytes = got.read()
    return data


WIRES = ("/responses", "/chat/completions", "/messages")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("why", "statuses"),
    [
        ("auth", {401}), ("quota", {429, 400}), ("limit", {429}), ("rate", {429}), ("overloaded", {503, 529}),
        ("internal", {500}), ("bad_model", {404}), ("context", {400}),
    ],
)  # fmt: skip
def test_every_wire_words_every_fault(server: ModelServer, wire: str, why: str, statuses: set[int]) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        answered(server, wire, BRIEF.replace("coding", why))
    with refused.value as answer:
        assert (answer.code in statuses, bool(json.load(answer)["error"]["message"])) == (True, True)


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_cuts_garbles_and_truncates(server: ModelServer, wire: str) -> None:
    import http.client

    with pytest.raises(http.client.IncompleteRead) as cut:
        answered(server, wire, BRIEF.replace("coding", "transport"), stream=True)
    assert b"a first " in cut.value.partial
    assert b"{this is not JSON" in answered(server, wire, BRIEF.replace("coding", "garbled"), stream=True)
    short = answered(server, wire, BRIEF.replace("coding", "truncated"), stream=True)
    assert any(word in short for word in (b"max_output_tokens", b'"length"', b'"max_tokens"'))


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_tells_the_same_story(server: ModelServer, wire: str) -> None:
    whole, streamed = answered(server, wire, BRIEF), answered(server, wire, BRIEF, stream=True)
    for answer in (whole, streamed):
        assert (b"first" in answer, b"exec_command" in answer) == (True, True)
