"""A person's text is checked as a whole: every problem with its line, nothing repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.problems import Checked
from beadmill.artifacts.text import LIMIT, check, check_value, from_text
from beadmill.artifacts.yaml import to_yaml
from beadmill.errors import Unprocessable

STORY = "      - {id: US-1-1, title: Add}\n"
PRD = f"product:\n  problem_statement: x\nepics:\n  - id: EPIC-1\n    title: y\n    user_stories:\n{STORY}"


def bead(name: str, **more: Any) -> str:
    record = {"id": name, "title": name, "acceptanceCriteria": ["a"], "tests": ["t"], "targetFiles": ["f.py"]}
    return json.dumps(record | {"testCommandReason": "no command"} | more)


def told(checked: Checked) -> list[tuple[int, str]]:
    return [(p.line, p.reason) for p in checked.problems]


def test_every_damaged_line_of_the_beads_is_told_with_its_text() -> None:
    text = "\n".join([bead("one"), '{"id": ', bead("two"), "[1]", bead("three", colour="red", tests=[])])
    checked = check("beads", text)
    assert told(checked) == [
        (2, "not JSON: Expecting value"),
        (4, "not a JSON object"),
        (5, "unknown key colour"),
        (5, "tests: at least one is needed"),
    ]
    assert checked.problems[0].text == '{"id": '


def test_a_valid_plan_is_what_its_lines_say_and_blank_lines_are_nothing() -> None:
    document = check("beads", f"{bead('one')}\n\n{bead('two', dependencies={'blocked_by': ['one']})}\n").document
    assert isinstance(document, Beads)
    assert [(b.id, tuple(b.blocked_by)) for b in document.beads] == [("one", ()), ("two", ("one",))]


def test_an_id_that_two_lines_mint_is_told_with_both_lines() -> None:
    text = "\n".join([bead("one"), "", bead("two"), bead("one")])
    assert told(check("beads", text)) == [(4, "the id one is used twice: first on line 1, again on line 4")]


def test_the_graph_of_the_beads_is_checked() -> None:
    waits = {name: {"dependencies": {"blocked_by": [other]}} for name, other in [("a", "b"), ("b", "a"), ("c", "z")]}
    text = "\n".join(bead(name, **more) for name, more in waits.items())
    assert told(check("beads", text)) == [
        (1, "cycle: a -> b -> a"),
        (3, "c: is blocked by z, which is not in the plan"),
    ]


def test_an_edge_that_only_one_side_knows_is_refused() -> None:
    text = "\n".join([bead("a", dependencies={"blocks": ["b"]}), bead("b")])
    assert told(check("beads", text)) == [(1, "a: says that it blocks b, which is not blocked by it")]


@pytest.mark.parametrize("line", ['{"id": NaN}', '{"id": "a", "id": "b"}', "[" * 100_000])
def test_json_that_nobody_means_is_a_problem_of_its_line(line: str) -> None:
    assert [p.line for p in check("beads", f"{bead('one')}\n{line}").problems] == [2]


@pytest.mark.parametrize("character", ["\\u0000", "\\ud800"])
def test_a_character_that_no_database_keeps_is_refused(character: str) -> None:
    problems = check("beads", bead("one").replace('"one", "acc', f'"{character}", "acc')).problems
    assert [(p.line, p.path) for p in problems] == [(1, "beads.0.title")]


def test_conflict_markers_of_git_are_named_with_their_lines() -> None:
    text = "\n".join([bead("one"), "<<<<<<< HEAD", bead("two"), "=======", bead("three"), ">>>>>>> theirs"])
    assert [p.line for p in check("beads", text).problems] == [2, 4, 6]
    assert [p.line for p in check("prd", PRD + "<<<<<<< HEAD\n=======\n>>>>>>> x\n").problems] == [8, 9, 10]


def test_a_heading_of_equal_signs_is_no_conflict() -> None:
    assert check("prd", PRD.replace("x\n", "|\n    Title\n    =======\n    text\n")).problems == ()


def test_yaml_that_breaks_in_two_parts_is_told_for_both() -> None:
    text = "product:\n  problem_statement: 'x\nscope:\n  in_scope: [a\nrisks:\n  - one\n"
    assert [p.line for p in check("prd", text).problems] == [2, 4]


def test_unknown_keys_and_missing_ones_are_told_at_their_own_lines() -> None:
    text = PRD.replace("    title: y\n", "    titel: y\n").replace("problem_statement", "problem")
    assert told(check("prd", text)) == [
        (2, "unknown key problem"),
        (5, "unknown key titel"),
        (1, "product.problem_statement: Field required"),
        (4, "epics.0.title: Field required"),
    ]


def test_story_ids_are_unique_across_epics() -> None:
    second = f"  - id: EPIC-2\n    title: z\n    user_stories:\n{STORY}"
    assert told(check("prd", PRD + second)) == [(11, "the id US-1-1 is used twice: first on line 7, again on line 11")]


def test_an_answer_names_only_options_of_its_question() -> None:
    answer = {"selected_option_ids": ["a", "z"]}
    asked: dict[str, Any] = {
        "id": "Q01",
        "phase": "Foundation",
        "prompt": "?",
        "answer_type": "single_choice",
        "answer": answer,
    }
    asked["options"] = [{"id": "a", "label": "A"}]
    checked = check_value("interview", {"ticket_id": "API-1", "questions": [asked]})
    assert [(p.line, p.path, p.reason) for p in checked.problems] == [
        (0, "questions.0.answer", "Q01: there is no option z"),
        (0, "questions.0.answer", "Q01: only one option can be chosen"),
    ]


def test_a_text_above_the_limit_is_refused_with_its_size() -> None:
    assert check("prd", "x" * (LIMIT + 1)).problems[0].reason.startswith("the text has 1,000,001 bytes; at most")


def test_a_refused_text_tells_its_first_problem_and_carries_all() -> None:
    with pytest.raises(Unprocessable) as caught:
        from_text("beads", "{\n{\n")
    assert caught.value.message.endswith(" (and 1 more problem)")
    assert [p["line"] for p in caught.value.details["problems"]] == [1, 2]


def test_beads_may_be_written_as_yaml_too() -> None:
    plan = from_text("beads", bead("one"))
    assert from_text("beads", to_yaml(plan)) == plan
