"""Scenario files: which reply answers a brief, votes, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from beadmill.agents.scenario import Asked, BadScenario, Header, Step, header_of, load, parse, vote
from beadmill.domain.values import Json


def brief(
    template: str = "coding", subject: str = "add-parser", seat: str = "1", turn: str = "1", text: str = "go"
) -> str:
    return f"Beadmill task: {template} | ticket: T-1 | subject: {subject} | seat: {seat} | turn: {turn}\n{text}"


def answer(*replies: Json, asked: Asked) -> str:
    (step,) = parse({"replies": list(replies)}, folder=Path()).pick(asked)
    return str(step.value)


def says(reply: str, /, **match: str) -> Json:
    return {"match": match, "steps": [{"reply": reply}]}


def test_a_header_may_have_empty_fields_and_bars_in_its_subject() -> None:
    head = "Beadmill task: answer | ticket:  | subject: a | b | seat:  | turn: \n\ntext"
    assert header_of(head) == Header("answer", "", "a | b", "", "")
    assert header_of("Something else\nBeadmill task: x") is None


def test_the_first_reply_that_matches_answers() -> None:
    replies = (says("second try", subject="try 2"), says("first try", subject="add-parser"), says("any"))
    assert answer(*replies, asked=Asked(brief(subject="add-parser try 2"))) == "second try"
    assert answer(*replies, asked=Asked(brief())) == "first try"
    assert answer(*replies, asked=Asked(brief(subject="else"))) == "any"


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"template": "cod"}, False),
        ({"template": "cod.*"}, True),
        ({"seat": "1|2", "turn": "1"}, True),
        ({"text": "^go$"}, True),
        ({"model": "large"}, True),
        ({"memory": "blue"}, True),
        ({"memory": "red"}, False),
    ],
)
def test_every_field_of_a_match_has_to_hold(match: dict[str, str], fits: bool) -> None:
    asked = Asked(brief(), "scripted-large", ("it was blue",))
    assert answer(says("yes", **match), says("no"), asked=asked) == ("yes" if fits else "no")


def test_a_bare_brief_goes_on_with_the_last_header_one_turn_later() -> None:
    asked = Asked("just an answer", earlier=(brief(),))
    assert asked.header == Header("coding", "T-1", "add-parser", "1", "2")


def test_no_match_fails_and_quotes_the_header() -> None:
    (step,) = parse({"replies": []}, folder=Path()).pick(Asked(brief("prd_draft")))
    assert step.kind == "fail"
    assert step.value["message"].startswith("the scenario has no reply for: Beadmill task: prd_draft |")


def test_a_reply_may_come_from_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "prd.yaml").write_text("epics: []\n")
    (tmp_path / "s.json").write_text(json.dumps({"replies": [{"steps": [{"reply_file": "prd.yaml"}]}]}))
    assert load(tmp_path / "s.json").pick(Asked(brief())) == (Step("reply", "epics: []\n"),)


def test_a_vote_prefers_the_draft_with_the_first_marker() -> None:
    text = "### Draft 1\nplain\n### Draft 2\nhas GOLD\n### Draft 3\nhas SILVER\n"
    ballot = vote(text, "prd_vote", {"prefer": ["GOLD", "SILVER"]})
    totals = [int(line.split(": ")[1]) for line in ballot.splitlines() if "total_score" in line]
    assert ballot.startswith("draft_scores:\n  Draft 1:\n    Coverage of requirements: ")
    assert totals[1] > totals[2] > totals[0]
    assert "Quality and isolation of bead-scoped tests: " in vote(text, "beads_vote", {})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, "a scenario has a list of replies"),
        ({"replies": [{}]}, "reply 1: a reply has a list of steps"),
        ({"replies": [{"steps": [{"dance": 1}]}]}, "reply 1: no such step: dance: 1"),
        ({"replies": [{"steps": [{"write": {"path": "a"}}]}]}, "reply 1: write lacks content"),
        ({"replies": [{"steps": [{"say": "a", "reply": "b"}]}]}, "reply 1: a step has exactly one key, not "),
        ({"replies": [{"match": {"color": "x"}, "steps": []}]}, "reply 1: there is nothing called 'color' to match"),
        ({"replies": [{"match": {"text": "("}, "steps": []}]}, "reply 1: text: '(' is no regular expression"),
    ],
)
def test_a_wrong_scenario_names_the_reply_and_the_reason(data: Json, complaint: str) -> None:
    with pytest.raises(BadScenario) as wrong:
        parse(data, folder=Path())
    assert str(wrong.value).startswith(complaint)
