"""Holding, sending back, retrying, rerunning and cancelling, by the command line alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.journeys.small_world import END_TO_END, Small

NO_QUESTIONS = ("--set", "council.interview_questions=0")
OFF = ("--set", "gates.interview=off", "--set", "gates.prd=off", "--set", "gates.setup=off")


def visits(small: Small, run: str) -> list[tuple[str, str]]:
    found: list[dict[str, Any]] = small.cli("run", "show", run, "--json").json["visits"]
    return [(visit["id"].partition("/")[2], visit["state"]) for visit in found]


def newest(small: Small, key: str, kind: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = small.cli("artifact", "list", "--ticket", key, "--kind", kind, "--json").json["items"]
    return rows[-1]


def prompted(small: Small, run: str, template: str) -> str:
    """The newest brief of this template."""
    rows = small.cli("session", "list", "--run", run, "--json").json["items"]
    token = next(row["token"] for row in rows if row["template"] == template)
    brief: str = small.cli("session", "show", token, "--json").json["brief"]
    return brief


def test_a_held_run_starts_nothing_new_and_says_how_it_goes_on(small: Small) -> None:
    key = small.ticket(sop="hello")
    small.asked(key)
    assert small.cli("run", "pause", key, "--json").json["hold"] == "paused"
    assert small.cli("gate", "answer", key, "rejected").code == 0
    watched = small.cli("ticket", "watch", key, "--until-gate")
    told = f"HELD (paused): nothing new starts\n  beadmill run resume {key}-r1\n"
    assert (watched.code, watched.out.startswith(told)) == (5, True)
    assert small.cli("run", "resume", key, "--json").json["hold"] == "none"
    assert small.asked(key)["id"] == f"{key}-r1/review.2/approve#0"


def test_the_plan_goes_back_to_the_requirements_with_a_comment_they_read(small: Small) -> None:
    key = small.ticket(*NO_QUESTIONS, *OFF)
    assert small.asked(key)["node"] == "beads"
    sent = small.cli("gate", "send-back", key, "prd", "--comment", "Say it in 中文, too")
    assert (sent.code, sent.out) == (0, f"{key}-r1 goes back to prd.\n")
    gate = small.asked(key)
    assert gate["id"].startswith(f"{key}-r1/beads.2/")
    assert "Say it in 中文, too" in prompted(small, f"{key}-r1", "prd_draft")
    states = [("scan.1", "done"), ("interview.1", "done"), ("prd.1", "superseded"), ("beads.1", "superseded")]
    assert visits(small, key) == [*states, ("prd.2", "done"), ("beads.2", "parked")]
    refused = [small.cli("gate", "send-back", key, node) for node in ("build", "nowhere")]
    assert [said.code for said in refused] == [4, 3]
    assert [said.err.splitlines()[-1] for said in refused] == [
        "next: reached so far: scan, interview, prd, beads",
        "next: its nodes: scan, interview, prd, beads, preflight, setup, build, verify, qa, integrate, pull_request, cleanup",
    ]


def test_an_edited_plan_is_what_is_approved_and_a_stale_edit_or_approval_is_refused(small: Small) -> None:
    key = small.ticket(*NO_QUESTIONS, *OFF)
    gate = small.asked(key)
    first = newest(small, key, "beads")
    text = small.cli("artifact", "show", str(first["row"])).out
    file = small.root / "edited.jsonl"
    file.write_text(text.replace("Say goodbye", "Say goodbye kindly"), encoding="utf-8")
    saved = small.cli("artifact", "edit", str(first["row"]), "--file", str(file), "--json")
    old = ("--etag", first["sha256"])
    stale = [
        small.cli("artifact", "edit", str(first["row"]), "--file", str(file), *old),
        small.cli("gate", "approve", key, "--etag", gate["etag"]),
    ]
    assert ([said.code for said in stale], saved.json["version"]) == ([4, 4], first["version"] + 1)
    assert "Say goodbye kindly" in small.cli("artifact", "diff", str(saved.json["row"])).out
    file.write_text("{]", encoding="utf-8")
    broken = small.cli("artifact", "edit", str(saved.json["row"]), "--file", str(file))
    assert (broken.code, "line 1" in broken.err, "kept: " in broken.err) == (2, True, True)
    assert small.cli("gate", "show", key, "--json").json["shows"][0]["row"] == saved.json["row"]


def test_an_editor_opens_again_with_the_damaged_text_until_it_can_be_saved(small: Small) -> None:
    key = small.ticket(*NO_QUESTIONS, "--set", "gates.interview=off")
    small.asked(key)
    row = str(newest(small, key, "prd")["row"])
    editor = small.root / "editor"
    editor.write_text('#!/bin/sh\ngrep -q colour "$1" && sed -i s/colour.*/#/ "$1" || echo "colour: red" >> "$1"\n')
    editor.chmod(0o700)
    cli = replace(small.cli, extra=(*small.cli.extra, ("EDITOR", str(editor))))
    given_up = cli("artifact", "edit", row)
    kept = given_up.err.partition("kept: your text, in ")[2].splitlines()[0]
    assert (given_up.code, "unknown key colour\n  | colour: red\n" in given_up.err) == (2, True)
    assert Path(kept).read_text(encoding="utf-8").endswith("colour: red\n")
    checked = cli("artifact", "check", row, "--file", kept)
    assert (checked.code, checked.out.splitlines()[1]) == (1, "  | colour: red")
    again = cli("artifact", "edit", row, stdin="y\n")
    assert (again.code, again.out.splitlines()[0].endswith(f"is row {row}.")) == (0, True)


def test_a_blocked_build_goes_on_after_a_retry_with_a_note(small: Small) -> None:
    wrong = {"match": {"template": "coding"}, "steps": [{"reply": "I have no idea."}]}
    small.script(wrong)
    key = small.ticket(*NO_QUESTIONS, *OFF, "--set", "gates.beads=off", "--set", "build.attempts=1")
    gate = small.asked(key)
    assert (gate["node"], gate["kind"]) == ("build", "blocked")
    small.script()
    retried = small.cli("run", "retry", key, "--note", "greet/farewell.py is where it goes")
    assert (retried.code, small.asked(key)["kind"]) == (0, "merge")
    assert "greet/farewell.py is where it goes" in prompted(small, f"{key}-r1", "coding")
    bead = small.cli("bead", "show", key, "goodbye", "--json").json
    assert (bead["state"], [one["state"] for one in bead["tries"]][-1]) == ("done", "done")


def test_a_canceled_run_is_rerun_from_a_node_and_keeps_what_came_before(small: Small) -> None:
    key = small.ticket(*NO_QUESTIONS, *OFF)
    small.asked(key)
    canceled = small.cli("ticket", "cancel", key, "--reason", "not now", "--json").json
    assert (canceled["status"], canceled["hold"]) == ("canceled", "none")
    over = small.cli("run", "resume", key)
    way = f"next: beadmill run rerun {key}-r1 <node> starts a new run from there"
    assert (over.code, over.err.splitlines()[-1]) == (4, way)
    again = small.cli("run", "rerun", key, "beads", "--json").json
    assert (again["id"], again["parent"]) == (f"{key}-r2", f"{key}-r1")
    small.approve(key, "plan of work")
    assert small.asked(key)["kind"] == "merge"
    kept = [("scan.1", "kept"), ("interview.1", "kept"), ("prd.1", "kept")]
    assert visits(small, key)[:3] == kept
    assert small.cli("gate", "answer", key, "close", "--note", "enough").code == 0
    assert small.cli("ticket", "watch", key).code == 0
    assert END_TO_END not in small.git("ls-tree", "-r", "--name-only", "main", at=small.origin).split("\n")
