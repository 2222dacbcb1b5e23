"""Bad input to tickets, SOPs, gates and the daemon: what happened, what was kept, what to do next."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beadmill.web.record import read
from tests.journeys.small_world import Small

SEATS = """beadmill project set GRUE council.seats='["codex/gpt-5/high", "codex/gpt-5-mini"]'"""


def drafted(small: Small, *more: str) -> str:
    key: str = small.cli("ticket", "new", "GRUE", "A draft", *more, "--json").json["key"]
    return key


# --- councils -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seats", ["[]", '["scripted/one"]'])
def test_a_council_of_fewer_than_two_seats_does_not_start(small: Small, seats: str) -> None:
    key = drafted(small, "--set", f"council.seats={seats}")
    said = small.cli("ticket", "start", key)
    assert said.code == 2
    assert said.err.splitlines() == [
        f"error: the council has {len(json.loads(seats))} of at least 2 seats",
        "kept: the ticket stays a draft",
        f"next: {SEATS}; with council.mode=solo one seat is enough",
    ]
    assert small.cli("ticket", "show", key, "--json").json["state"] == "draft"


def test_an_unknown_agent_does_not_start_and_the_draft_is_named(small: Small) -> None:
    said = small.cli("ticket", "new", "GRUE", "X", "--set", 'council.seats=["nobody/x", "scripted/one"]', "--start")
    first, *rest = said.err.splitlines()
    assert (said.code, first.endswith(" was created; it is not started.")) == (2, True)
    assert rest == ["error: no such agent: nobody", "kept: the ticket stays a draft", "next: beadmill agent list"]


def test_a_setting_that_does_not_exist_is_named(small: Small) -> None:
    said = small.cli("ticket", "new", "GRUE", "X", "--set", "build.attemps=3")
    assert said.code == 2
    assert said.err.splitlines()[0].startswith("error: these settings are not valid: build.attemps:")


def test_a_draft_that_is_watched_for_a_gate_says_how_to_start_it(small: Small) -> None:
    key = drafted(small)
    said = small.cli("ticket", "watch", key, "--until-gate")
    assert (said.code, said.out.splitlines()[0]) == (5, f"{key} is a draft: beadmill ticket start {key}")


def test_what_does_not_exist_is_not_found(small: Small) -> None:
    asked = (
        ("ticket", "show", "GRUE-999"),
        ("gate", "show", "GRUE-999"),
        ("gate", "approve", "GRUE-999-r1/a.1/b#0"),
        ("run", "show", "GRUE-999-r1"),
        ("bead", "list", "GRUE-999"),
        ("artifact", "show", "999999"),
        ("project", "show", "NONE"),
        ("sop", "show", "none"),
        ("agent", "probe", "nobody"),
    )
    assert [small.cli(*args).code for args in asked] == [3] * len(asked)


# --- SOPs ---------------------------------------------------------------------------------------------------------
def test_a_malformed_sop_says_line_and_column(small: Small, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("format: 1\ntitle: X\nstart: a\nnodes:\n  - id: a\n   kind: script\nedges: []\n")
    said = small.cli("sop", "lint", str(bad), "--json")
    problem = (said.json["problems"] or [{}])[0] if "problems" in said.json else said.json["error"]["details"]
    assert (said.code, problem["line"], problem["column"]) == (1, 6, 4)


# --- gates --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rest:
    """The REST door, as a program uses it."""

    small: Small

    def answer(self, gate: str, choice: str, **headers: str) -> tuple[int, Any]:
        found = read(self.small.cli.home)
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", found.port, timeout=30)
        ours = {"Authorization": f"Bearer {found.token}", "Content-Type": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"/api/v1/gates/{gate.replace('#', '%23')}/answer"
        connection.request("POST", path, json.dumps({"choice": choice}), ours | named)
        answer = connection.getresponse()
        said = answer.status, json.loads(answer.read())
        connection.close()
        return said


def hello(small: Small) -> Any:
    """The gate of a started hello ticket."""
    key = small.cli("ticket", "new", "GRUE", "Hello", "--sop", "hello", "--start", "--json").json["key"]
    return small.asked(key)


def test_an_answer_needs_if_match_and_the_newest_version(small: Small) -> None:
    gate, rest = hello(small), Rest(small)
    missing, first = rest.answer(gate["id"], "approved")
    stale, second = rest.answer(gate["id"], "approved", If_Match='"0000"')
    assert [(missing, first["error"]["code"]), (stale, second["error"]["code"])] == [
        (428, "IF_MATCH_REQUIRED"),
        (409, "GATE_STALE"),
    ]
    assert small.cli("gate", "show", gate["id"], "--json").json["state"] == "open"


def test_a_repeated_answer_is_the_same_answer_and_another_one_is_refused(small: Small) -> None:
    gate, rest = hello(small), Rest(small)
    match = {"If_Match": f'"{gate["etag"]}"'}
    once = rest.answer(gate["id"], "approved", Idempotency_Key="mine", **match)
    again = rest.answer(gate["id"], "approved", Idempotency_Key="mine", **match)
    other, refused = rest.answer(gate["id"], "rejected", Idempotency_Key="other", **match)
    assert (once[0], again[0], again[1]["decision"]) == (200, 200, once[1]["decision"])
    assert (other, refused["error"]["kept"]) == (409, "that answer stands")


# --- the daemon ---------------------------------------------------------------------------------------------------
def test_a_second_daemon_says_who_is_there_what_is_kept_and_what_to_do(small: Small) -> None:
    small.cli("start")
    found = read(small.cli.home)
    assert found is not None
    said = small.cli("start", "--foreground")
    first, *rest = said.err.splitlines()
    assert (said.code, f"process {found.pid} on {found.url}" in first) == (4, True)
    assert [line.partition(":")[0] for line in rest] == ["kept", "next"]


def test_a_taken_port_says_what_is_kept_and_what_to_do(tmp_path: Path) -> None:
    small = Small(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = small.cli("start", "--foreground", "--port", str(taken.getsockname()[1]))
    assert (said.code, [line.partition(":")[0] for line in said.err.splitlines()]) == (1, ["error", "kept", "next"])
