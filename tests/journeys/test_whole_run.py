"""From an attached repository to a merged change by nothing but the command line, with the real daemon."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_for_tests import Cli

from beadmill.demo import material
from tests.journeys.small_world import Small

Git = Callable[..., str]
GATES = ["interview", "interview", "approve", "approve", "approve", "approve", "merge"]


def answered(cli: Cli, key: str) -> list[dict[str, Any]]:
    """Every gate that was met on the way to the end, answered as the person of the demo does."""
    met = []
    while cli("ticket", "watch", key, "--until-gate").code == 5:
        gate = cli("gate", "show", key, "--json").json
        met.append(gate)
        if gate["kind"] == "interview":
            asked = cli("interview", "show", key, "--json").json["questions"]
            given = {one["id"]: material.answers()[one["id"]] for one in asked}
            said = cli("interview", "answer", key, "--file", "-", stdin=json.dumps(given))
        else:
            said = cli("gate", "approve", key, "--note", "as shown")
        assert said.code == 0, said.err
    return met


@pytest.mark.deliver
async def test_the_demo_ticket_is_merged_by_the_command_line_alone(tmp_path: Path, git: Git) -> None:
    place, cli = material.Place(tmp_path), Cli(tmp_path)
    await material.make_repository(place)
    material.write_scenario(place)
    place.home.mkdir(mode=0o700)
    config = (
        f'port = 0\n[agents.scripted]\nscenario = {json.dumps(str(place.scenario))}\n[defaults]\nmanual_qa = "off"\n'
    )
    (place.home / "config.toml").write_text(config)
    seats = 'council.seats=["scripted/alpha", "scripted/beta", "scripted/gamma"]'
    assert cli("project", "add", str(place.checkout), "--short", "DEMO", "--set", seats).code == 0
    ticket = material.ticket()
    new = ("ticket", "new", "DEMO", ticket["title"], "--description", "-", "--acceptance", ticket["acceptance"])
    assert cli(*new, "--start", stdin=ticket["description"]).code == 0

    met = answered(cli, "DEMO-1")

    shown = cli("ticket", "show", "DEMO-1", "--json").json
    beads = cli("bead", "list", "DEMO-1", "--json").json
    assert [gate["kind"] for gate in met] == GATES
    assert (shown["status"], shown["column"], shown["current"]["change"]["state"]) == ("completed", "done", "merged")
    assert {(bead["id"], bead["state"]) for bead in beads} == {
        ("temperature-scales", "done"),
        ("batch-reader", "done"),
        ("batch-command", "done"),
    }
    assert git(place.origin, "rev-parse", "main") == shown["current"]["change"]["merge_sha"]
    assert "units/batch.py" in git(place.origin, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert cli("ticket", "watch", "DEMO-1").out.splitlines()[-1].startswith("DEMO-1: completed, ")
    assert cli("stop").code == 0


def test_a_dirty_checkout_in_an_odd_path_is_left_alone_by_a_whole_run(small: Small) -> None:
    (small.checkout / "README.md").write_text("half a thought\n", encoding="utf-8")
    (small.checkout / "später.txt").write_text("later\n", encoding="utf-8")
    before = [small.git(*args) for args in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("diff",), ("branch",))]
    key = small.ticket()
    assert small.cli("interview", "answer", small.asked(key)["ticket"], "Q01=@goodbye").code == 0
    small.asked(key)
    assert small.cli("interview", "skip", key, "--reason", "nothing more").code == 0
    small.approve(key, "interview", "requirements", "plan of work", "setup", "Merge #1")
    assert small.cli("ticket", "watch", key).code == 0
    after = [small.git(*args) for args in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("diff",), ("branch",))]
    assert after == before
    assert "greet/farewell.py" in small.git("ls-tree", "-r", "--name-only", "main", at=small.origin).split("\n")


def test_an_answer_to_a_question_is_checked_and_nothing_is_lost(small: Small) -> None:
    key = small.ticket()
    small.asked(key)
    tries = [("Q01=@nope",), ("QX=yes",), ("yes",), ()]
    said = [small.cli("interview", "answer", key, *answers) for answers in tries]
    assert [one.code for one in said] == [2, 2, 2, 2]
    assert [one.err.splitlines()[0] for one in said] == [
        "error: Q01 has no option nope",
        "error: this batch asks Q01: QX not asked",
        "error: 'yes' is not of the form Q01=answer",
        "error: no answer was given, and there is no terminal to ask at",
    ]
    waiting = small.cli("interview", "show", key).out.splitlines()
    assert waiting[-1] == f"or at once:        beadmill interview answer {key} Q01=@goodbye"
