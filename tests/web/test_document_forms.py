"""A document as a form and back: exact where nobody typed, and only what was typed where somebody did."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.text import check_value, from_value
from beadmill.web.pages.editing.form import Read, act, fill, read
from beadmill.web.pages.editing.values import Wrong, command_read, command_shown, lines_read, lines_shown
from beadmill.web.pages.forms import Posted

NOW = "2030-01-01T00:00:00+00:00"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"))


def bead(name: str, **more: Any) -> dict[str, Any]:
    record = {"id": name, "title": name, "acceptanceCriteria": ["a"], "tests": ["t"], "targetFiles": ["f.py"]}
    return {**record, "testCommandReason": "no command", **more}


def plan(*beads: dict[str, Any]) -> Any:
    return from_value("beads", {"beads": list(beads)}).model_dump(mode="json")


PLAN = plan(bead("one", priority=1), bead("two", priority=2, dependencies={"blocked_by": ["one"]}, qaOrigin="QA-1"))


def typed(form: Posted, **fields: str | tuple[str, ...]) -> Posted:
    """``beads__0__title="x"`` writes into the field beads.0.title."""
    values = {n.replace("__", "."): (v,) if isinstance(v, str) else v for n, v in fields.items()}
    return Posted({**form.fields, **values})


def back(kind: str, form: Posted, base: Any) -> Read:
    return read(kind, form, base, now=lambda: NOW)


def answers(*answer: dict[str, Any]) -> Any:
    options = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
    asked = [
        {"id": f"Q{n}", "phase": "Foundation", "prompt": "?", "options": options, "answer": one}
        for n, one in enumerate(answer)
    ]
    return from_value("interview", {"ticket_id": "API-1", "questions": asked}).model_dump(mode="json")


@given(st.lists(TEXT, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_list_of_texts_survives_the_way_into_a_field_and_back(items: list[str]) -> None:
    assert lines_read(lines_shown(items)) == items


@given(st.lists(TEXT, min_size=1, max_size=4).filter(lambda words: words[0]))
@settings(max_examples=100, deadline=None)
def test_any_command_survives_the_way_into_its_fields_and_back(words: list[str]) -> None:
    spec = {"mode": "process", "program": words[0], "args": words[1:], "cwd": "a", "env": {"A": "b"}, "timeoutMs": 1500}
    assert command_read(command_shown(spec)) == spec


def test_a_plan_that_nobody_touched_comes_back_as_it_was() -> None:
    assert back("beads", fill("beads", PLAN), PLAN).value == PLAN


def test_a_field_changes_only_itself() -> None:
    made = back("beads", typed(fill("beads", PLAN), beads__1__tests="first\nsecond"), PLAN).value
    assert made["beads"][1] == {**PLAN["beads"][1], "tests": ["first", "second"]}


def test_a_bead_that_moves_takes_with_it_what_the_form_does_not_show() -> None:
    moved, fresh = act("beads", fill("beads", PLAN), "up:beads.1")
    made = back("beads", moved, PLAN).value["beads"]
    assert (fresh, [(b["id"], b["priority"], b["qaOrigin"]) for b in made]) == (
        "beads.1",
        [("two", 1, "QA-1"), ("one", 2, None)],
    )


def test_who_waits_for_a_bead_still_does_when_its_id_changes() -> None:
    made = back("beads", typed(fill("beads", PLAN), beads__0__id="uno"), PLAN).value["beads"]
    assert made[1]["dependencies"]["blocked_by"] == ["uno"]


def test_nobody_waits_for_a_bead_that_was_removed() -> None:
    made = back("beads", act("beads", fill("beads", PLAN), "remove:beads.0")[0], PLAN).value["beads"]
    assert [(b["id"], b["dependencies"]["blocked_by"]) for b in made] == [("two", [])]


def test_an_added_bead_is_saved_with_what_was_typed_and_what_is_missing_is_told_at_its_field() -> None:
    form, fresh = act("beads", typed(fill("beads", PLAN), beads__0__title="Kept"), "add:beads")
    made = back("beads", typed(form, beads__n1__title="New"), PLAN)
    problems = check_value("beads", made.value).problems
    assert (fresh, made.value["beads"][0]["title"]) == ("beads.n1", "Kept")
    assert [made.name_of(p.path, p.reason) for p in problems] == [
        "beads.n1.acceptanceCriteria",
        "beads.n1.tests",
        "beads.n1.targetFiles",
    ]


def test_the_reason_for_no_command_is_asked_for_at_its_field() -> None:
    made = back("beads", typed(fill("beads", PLAN), beads__1__testCommandReason=" "), PLAN)
    (problem,) = check_value("beads", made.value).problems
    assert made.name_of(problem.path, problem.reason) == "beads.1.testCommandReason"


def test_a_command_replaces_the_reason() -> None:
    form, name = act("beads", fill("beads", PLAN), "add:beads.0.testCommands")
    fields = {f"{name}.line": ("pytest -k 'a b'",), f"{name}.seconds": ("2.5",), "beads.0.testCommandReason": ("",)}
    made = back("beads", Posted({**form.fields, **fields}), PLAN).value
    document = from_value("beads", made)
    assert isinstance(document, Beads)
    command = document.beads[0].test_commands[0]
    assert (command.argv(), command.timeout_ms) == (("pytest", "-k", "a b"), 2500)


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("line", "echo 'open", "no closing quotation"),
        ("env", "A=1\nA=2", "A is written twice"),
        ("env", "A", "'A' is not NAME=value"),
        ("seconds", "soon", "'soon' is no number"),
    ],
)
def test_a_command_that_cannot_be_read_is_told_at_its_field(field: str, text: str, told: str) -> None:
    with pytest.raises(Wrong, match=f"^{field}: {told}"):
        command_read({"line": "x", field: text})


def test_an_added_story_has_the_next_id_of_its_epic() -> None:
    prd = {"epics": [{"id": "EPIC-2", "title": "x", "user_stories": [{"id": "US-2-1", "title": "y"}]}]}
    form, name = act("prd", fill("prd", prd), "add:epics.0.user_stories")
    assert (name, form.get(f"{name}.id")) == ("epics.0.user_stories.n1", "US-2-2")


def test_a_skipped_question_counts_as_answered_once_it_has_an_answer() -> None:
    base = answers({"skipped": True, "answered_by": "user_skip", "skip_reason": "later"})
    made = back("interview", typed(fill("interview", base), questions__0__answer__text="Yes"), base).value
    assert made["questions"][0]["answer"] == {
        "skipped": False,
        "selected_option_ids": [],
        "free_text": "Yes",
        "answered_by": "user",
        "answered_at": NOW,
        "skip_reason": None,
    }


def test_an_answer_that_is_marked_skipped_keeps_the_reason_and_not_the_answer() -> None:
    base = answers({"free_text": "Yes", "selected_option_ids": ["a"]})
    skip = typed(fill("interview", base), questions__0__answer__skip="1", questions__0__answer__reason="unsure")
    answer = back("interview", skip, base).value["questions"][0]["answer"]
    assert (answer["skipped"], answer["free_text"], answer["skip_reason"]) == (True, "", "unsure")


def test_answers_that_nobody_touched_keep_who_gave_them_and_when() -> None:
    base = answers({"free_text": "Yes", "answered_by": "ai_skip", "answered_at": "2020"}, {"skipped": True})
    assert back("interview", fill("interview", base), base).value == base


def test_a_button_that_names_no_list_of_the_form_changes_nothing() -> None:
    form = fill("beads", PLAN)
    assert [act("beads", form, wish)[0] for wish in ("add:nothing", "remove:beads", "up:beads.99", "x")] == [form] * 4
