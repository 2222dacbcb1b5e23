from __future__ import annotations

import json
from pathlib import Path

from cli_for_tests import Cli


def started(cli: Cli, *more: str) -> str:
    """A hello ticket that waits at its gate."""
    key: str = cli("ticket", "new", "API", "Say hello", "--sop", "hello", "--start", "--json", *more).json["key"]
    assert cli("ticket", "watch", key, "--until-gate").code == 5
    return key


def test_a_ticket_is_created_listed_edited_and_shown(attached: Cli) -> None:
    made = attached("ticket", "new", "API", "One", "--description", "-", "--set", "build.attempts=3", stdin="# Text")
    key = made.out.split()[1]
    edited = attached("ticket", "edit", key, "--title", "Two", "--priority", "1", "--json").json
    assert (edited["title"], edited["priority"], edited["description"]) == ("Two", 1, "# Text")
    assert edited["overrides"] == {"build": {"attempts": 3}}
    listed = attached("ticket", "list", "--json").json["items"]
    assert [t["title"] for t in listed if t["key"] == key] == ["Two"]


def test_watch_without_a_terminal_says_lines_and_ends_with_the_ticket(attached: Cli) -> None:
    key = started(attached)
    with attached.begin("ticket", "watch", key) as watching:
        assert watching.stdout is not None
        asked = [watching.stdout.readline(), watching.stdout.readline()]
        attached("gate", "approve", key)
        rest = watching.stdout.read().splitlines()
        assert watching.wait(20) == 0
    gate = f"{key}-r1/review.1/approve#0"
    assert asked == ["WAITS FOR YOU: Is this right?\n", f"  beadmill gate answer '{gate}' approved\n"]
    assert rest[-1] == f"{key}: completed, 0 tokens"


def test_a_gate_is_answered_once(attached: Cli) -> None:
    key = started(attached)
    gate = attached("gate", "list", "--ticket", key, "--json").json["items"][0]
    stale = attached("gate", "answer", gate["id"], "approved", "--etag", "0")
    wrong = attached("gate", "answer", gate["id"], "perhaps")
    good = attached("gate", "answer", gate["id"], "approved", "--note", "fine", "--json")
    again = attached("gate", "answer", gate["id"], "rejected")
    assert [said.code for said in (stale, wrong, good, again)] == [4, 2, 0, 4]
    assert (good.json["decision"]["note"], "kept: that answer stands" in again.err) == ("fine", True)


def test_a_run_is_paused_resumed_and_canceled_by_its_ticket(attached: Cli) -> None:
    key = started(attached)
    paused = attached("run", "pause", key, "--json").json["hold"]
    resumed = attached("run", "resume", key, "--json").json["hold"]
    canceled = attached("run", "cancel", key, "--reason", "enough", "--json").json["state"]
    assert (paused, resumed, canceled) == ("paused", "none", "canceled")
    assert attached("ticket", "show", key, "--json").json["status"] == "canceled"


def test_a_gate_is_sent_back_to_a_node(attached: Cli) -> None:
    key = started(attached)
    sent = attached("gate", "send-back", key, "greet", "--comment", "louder")
    assert (sent.code, sent.out) == (0, f"{key}-r1 goes back to greet.\n")
    assert attached("ticket", "watch", key, "--until-gate").code in (0, 5)
    visits = attached("run", "show", key, "--json").json["visits"]
    assert [(v["node"], v["n"], v["comment"]) for v in visits if v["node"] == "greet"][-1] == ("greet", 2, "louder")


def test_a_session_log_is_shown(attached: Cli) -> None:
    key = started(attached)
    token = attached("session", "list", "--run", f"{key}-r1", "--json").json["items"][0]["token"]
    text, lines = attached("session", "log", token), attached("session", "log", token, "-f", "--json")
    assert "Hello from Beadmill" in text.out
    assert [json.loads(line)["kind"] for line in lines.out.splitlines()][-1] == "ended"


def test_project_settings_are_merged_by_key(attached: Cli) -> None:
    attached("project", "set", "API", "build.iteration_s=300")
    merged = attached("project", "set", "API", "build.attempts=4", "--json").json
    assert merged["overrides"] == {"build": {"iteration_s": 300, "attempts": 4}}


def test_a_folder_that_is_no_repository_is_not_attached(attached: Cli, tmp_path: Path) -> None:
    said = attached("project", "add", str(tmp_path))
    assert (said.code, "kept: nothing was attached" in said.err) == (2, True)


def test_usage_errors_exit_with_2(attached: Cli) -> None:
    assert [attached(*args).code for args in (("ticket", "new"), ("nothing",), ("ticket", "new", "API", " "))] == [
        2,
        2,
        2,
    ]


def test_a_sop_file_is_linted(attached: Cli, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("format: 1\ntitle: X\nstart: a\nnodes:\n  - id: a\n    kind: nothing\nedges: []\n")
    good, wrong = attached("sop", "lint", "hello"), attached("sop", "lint", str(bad))
    assert (good.code, good.out, wrong.code, wrong.out.split()[0]) == (0, "It can run.\n", 1, "5:5")


def test_settings_and_agents_and_status_are_shown(attached: Cli) -> None:
    config = attached("config", "show", "--json").json
    agents = attached("agent", "list", "--json").json
    status = attached("status", "--json").json
    assert (config["values"]["host"], config["sources"]["port"]) == ("127.0.0.1", "environment BEADMILL_PORT")
    assert status["database"] == "SQLite"
    assert {"codex", "scripted"} <= {agent["name"] for agent in agents}


def test_there_is_no_interview_to_answer_before_it_asks(attached: Cli) -> None:
    key = started(attached)
    said = attached("interview", "answer", key, "Q01=yes")
    assert (said.code, said.err.splitlines()[0]) == (4, f"error: no question of {key} waits")


def test_a_prompt_is_edited_previewed_and_taken_back(attached: Cli, tmp_path: Path) -> None:
    file = tmp_path / "scan.txt"
    file.write_text("Look.\n{{ nobody }}")
    refused = attached("prompt", "edit", "scan", "--file", str(file))
    file.write_text("Look around.\n")
    assert (refused.code, "line 2: 'nobody' is undefined" in refused.err) == (2, True)
    assert "Look around.\n" in attached("prompt", "preview", "scan", "--file", str(file)).out
    saved = attached("prompt", "edit", "scan", "--file", str(file))
    assert saved.out.startswith("scan is saved; runs that start from now on use it.\n! It no longer includes _fresh")
    assert attached("prompt", "show", "scan").out == "Look around.\n"
    assert "is as built in. Your edit is kept: " in attached("prompt", "revert", "scan").out


def test_the_context_of_a_run_without_agents_says_so(attached: Cli) -> None:
    assert attached("run", "context", started(attached)).out == "No session yet.\n"
