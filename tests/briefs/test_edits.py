"""Edited templates: what is refused, what is warned of, and that a broken one takes nothing else along."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from beadmill.briefs import Briefs, PartText, check, samples
from beadmill.briefs.folder import Folder
from beadmill.briefs.source import FAILURES, built_in, built_ins, environment, is_snippet
from beadmill.errors import NotFound

TICKET = PartText("ticket_details", "Title: Export")
FRESH = '{% include "_fresh.md.j2" %}'


def fault(name: str, text: str | None) -> str:
    return str(check.fault(name, text, {}))


@pytest.mark.parametrize("name", sorted(built_ins()))
def test_every_built_in_text_would_be_accepted_without_a_warning(name: str) -> None:
    assert (check.fault(name, built_in(name), {}), check.warnings(name, built_in(name), {})) == (None, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        (None, "the file cannot be read as UTF-8 text"),
        ("{# nothing #}", "it renders to nothing"),
        ("one\n{% if %}", "line 2: Expected an expression, got 'end of statement block'"),
        ("one\n\n{{ nobody }}", "line 3: 'nobody' is undefined"),
        ("one\n{{ 1 | frobnicate }}", "line 2: No filter named 'frobnicate'."),
        ("{{ ().__class__.__bases__ }}", "line 1: access to attribute '__class__' of 'tuple' object is unsafe."),
        ("one\n{{ 1 / 0 }}", "line 2: division by zero"),
        ("x" * 200_001, "it has 200,001 characters; 200,000 is the most"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_with_its_line(text: str | None, why: str) -> None:
    assert fault("scan", text) == why


@pytest.mark.parametrize(
    "text",
    [
        'a\n{% include "scan.md.j2" %}',
        "a\n{% include name %}",
        'a\n{% extends "_fresh.md.j2" %}',
        'a\n{% include "_no.md.j2" %}',
    ],
)
def test_only_snippets_can_be_included(text: str) -> None:
    assert fault("scan", text).startswith("line 2: only these can be included, each by its name: _fresh.md.j2, ")


def test_a_snippet_that_comes_to_include_itself_is_refused() -> None:
    assert fault("_fresh", 'x\n{% include "_vote.md.j2" %}') == "line 2: _vote comes to include _fresh again"


def test_a_snippet_is_tried_in_every_prompt_that_includes_it() -> None:
    assert fault("_look", "{{ max_questions }}") == "line 1: 'max_questions' is undefined (in the prompt beads_draft)"


def test_a_case_that_only_some_sessions_meet_is_tried_too() -> None:
    assert fault("repair", "{{ error }}{% if reply_cut %}\n{{ nobody }}{% endif %}") == "line 2: 'nobody' is undefined"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("candidate_audit", "Look around.", ["_fresh.md.j2", "form given at the end"]),
        ("candidate_audit", f"Look around. {FRESH}", []),
        ("scan", f"Look around. {FRESH}", ["_look.md.j2"]),
        ("repair", '{% include "_same.md.j2" %} Again.', ["{{ error }}", "{{ reply_cut }}"]),
        ("_fresh", "Begin.", ["form given at the end"]),
        ("beads_vote", f"{FRESH} Judge.", ["_vote.md.j2"]),
    ],
)
def test_what_an_edit_no_longer_says_is_warned_of(name: str, text: str, said: list[str]) -> None:
    warned = check.warnings(name, text, {})
    assert [part for part in said if not any(part in line for line in warned)] == []
    assert len(warned) == len(said)


def test_every_snippet_has_a_meaning_for_its_warning() -> None:
    assert set(check.MEANING) == {name for name in built_ins() if is_snippet(name)}


def test_every_built_in_renders_with_all_of_its_sample_values() -> None:
    made = environment({})
    for name in (name for name in built_ins() if not is_snippet(name)):
        for values in samples.values(name):
            assert made.get_template(f"{name}.md.j2").render({**samples.HEADS, **values}).strip()


# --- in a brief ---------------------------------------------------------------------------------------------------
def test_an_edited_snippet_changes_every_prompt_that_includes_it() -> None:
    brief = Briefs(edits={"_fresh": "Begin afresh, in the form given at the end."}).write("scan", [TICKET])
    assert ("Begin afresh" in brief.text, brief.ledger[0].name) == (True, "instructions (edited)")


def test_a_broken_snippet_leaves_an_edited_prompt_in_use_and_is_told() -> None:
    brief = Briefs(edits={"_fresh": "{{ nobody }}", "scan": f"Look around. {FRESH}"}).write("scan", [TICKET])
    assert ("Look around. You begin without memory" in brief.text, brief.ledger[0].name) == (
        True,
        "instructions (edited)",
    )
    assert "_fresh: line 1: 'nobody' is undefined" in brief.ledger[0].note


def test_a_prompt_that_does_not_use_a_broken_one_says_nothing_of_it() -> None:
    assert Briefs(edits={"coding": "{{ nobody }}"}).write("scan", [TICKET]).ledger[0].note == ""


def test_an_edit_that_breaks_on_real_values_only_is_passed_over_too() -> None:
    edit = {"coding_continue": '{{ {"The bead\'s second command fails.": 1, "": 2}[why] }}'}
    brief = Briefs(edits=edit).write("coding_continue", [], why="something else")
    assert ("is not finished yet" in brief.text, brief.ledger[0].name) == (True, "instructions")
    assert brief.ledger[0].note.startswith(
        "the built-in text was given, since the edit cannot be used: coding_continue: "
    )


def test_frozen_edits_count_instead_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "scan.md.j2").write_text("New words.")
    assert "Old words." in Briefs(tmp_path).within(9_000, {"scan": "Old words."}).write("scan", [TICKET]).text
    assert "New words." in Briefs(tmp_path).within(9_000).write("scan", [TICKET]).text


def test_a_template_error_of_any_kind_is_among_the_failures_that_fall_back() -> None:
    with pytest.raises(FAILURES):
        environment({}).from_string("{{ x.y.z }}").render()


# --- files --------------------------------------------------------------------------------------------------------
def test_a_saved_edit_is_private_and_knows_the_text_it_was_made_from(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "prompts")
    folder.save("scan", "Look.\n")
    file = tmp_path / "prompts" / "scan.md.j2"
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert (folder.edits(), folder.base("scan"), folder.strangers()) == ({"scan": "Look.\n"}, built_in("scan"), ())


def test_a_reverted_edit_is_kept_aside(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.save("scan", "Look.")
    kept = folder.revert("scan")
    assert (folder.edits(), folder.base("scan"), kept.read_text()) == ({}, None, "Look.")


def test_a_misspelt_file_is_a_stranger(tmp_path: Path) -> None:
    (tmp_path / "skan.md.j2").write_text("Look.")
    assert (Folder(tmp_path).strangers(), Folder(tmp_path).edits()) == (("skan.md.j2",), {})


def test_a_file_that_is_no_text_is_an_unreadable_edit(tmp_path: Path) -> None:
    (tmp_path / "scan.md.j2").write_bytes(b"\xff\xfe")
    assert Folder(tmp_path).edits() == {"scan": None}
    assert "cannot be read as UTF-8" in Briefs(tmp_path).write("scan", [TICKET]).ledger[0].note


def test_a_file_that_is_no_text_is_kept_aside_when_it_is_saved_over(tmp_path: Path) -> None:
    (tmp_path / "scan.md.j2").write_bytes(b"\xff")
    Folder(tmp_path).save("scan", "Look.")
    (kept,) = (tmp_path / "reverted").iterdir()
    assert (kept.read_bytes(), Folder(tmp_path).edits()) == (b"\xff", {"scan": "Look."})


def test_an_unknown_name_is_not_found() -> None:
    with pytest.raises(NotFound):
        built_in("poem")
