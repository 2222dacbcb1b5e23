"""Where a document may be in a reply, and what is refused before any parsing."""

from __future__ import annotations

import json

import pytest

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import (
    BEAD_STATUS,
    COVERAGE,
    EXPANSION,
    NOTE,
    QUESTIONS,
    RELEVANT_FILES,
    SHAPES,
    TURN,
)

ONE = "questions:\n  - id: Q01\n    phase: Foundation\n    question: Who reads it?\n"
TWO = "questions:\n  - id: Q01\n    phase: Foundation\n    question: Who writes it?\n"
STATUS = json.dumps(
    {"bead_id": "b", "status": "done", "checks": dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")}
)


def questions(text: str) -> list[str]:
    reading = read(QUESTIONS, text)
    assert reading.value is not None, reading.error
    return [q.question for q in reading.value.questions]


def titles(text: str) -> list[str]:
    return [note.title for note in read(QUESTIONS, text).interventions]


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_reads_its_own_example_without_a_single_intervention(name: str) -> None:
    shape = SHAPES[name]
    text = f"<{shape.tag}>\n{shape.example}\n</{shape.tag}>" if shape.tag else shape.example
    context = {"domain": "prd", "labels": ["Draft 1", "Draft 2"]} if name == "votes" else {}
    reading = read(shape, text, context=context)
    assert (reading.failure, reading.error, reading.interventions) == ("", "", ())


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (ONE, []),
        (f"```yaml\n{ONE}```", ["code fence removed"]),
        (f"```YAML\r\n{ONE}```\r\n", ["code fence removed"]),
        (f"~~~\n{ONE}~~~", ["code fence removed"]),
        (f"````\n{ONE}````", ["code fence removed"]),
        (f"Sure, here it is.\n\n{ONE}", ["text before the document removed"]),
        (f"Here it is: {ONE}", ["text before the first key of the same line removed"]),
        (f"[assistant] [tool] {ONE}", ["speaker label removed"]),
        (f"\ufeff{ONE}", ["control characters removed"]),
        (f"{ONE}\nHope this helps!\n", ["text after the document removed"]),
        (f"{ONE}\n---\nThat is: all of it.\n", ["text after the document removed"]),
        (f"result:\n  {ONE.replace(chr(10), chr(10) + '  ')}", ["container removed"]),
        ("- id: Q01\n  phase: Foundation\n  question: Who reads it?\n", ["bare list taken as"]),
        (json.dumps({"questions": [{"id": "Q01", "phase": "Foundation", "question": "Who reads it?"}]}), []),
    ],
)
def test_the_document_is_found_wherever_the_model_put_it(text: str, note: list[str]) -> None:
    assert (questions(text), titles(text)) == (["Who reads it?"], note)


def test_c52_of_several_blocks_the_one_that_satisfies_the_schema_wins() -> None:
    text = f"I checked.\n## Analysis\n```python\nquestions = 3\n```\nthen\n```yaml\n{ONE}```\nHope this helps!"
    assert questions(text) == ["Who reads it?"]


def test_c52_two_valid_blocks_that_differ_are_refused_as_ambiguous() -> None:
    reading = read(QUESTIONS, f"```yaml\n{ONE}```\nor\n```yaml\n{TWO}```")
    assert (reading.value, reading.failure) == (None, "validation")
    assert reading.error == "the reply holds two different documents; send exactly one"


def test_two_equal_blocks_are_one_document() -> None:
    assert questions(f"```yaml\n{ONE}```\nAgain:\n```yaml\n{ONE}```") == ["Who reads it?"]


def test_markdown_inside_a_block_scalar_is_text() -> None:
    text = "files:\n  - path: a.md\n    content_preview: |\n      ### Heading\n      ```\n      <b>x</b>\n      ```\n"
    reading = read(RELEVANT_FILES, f"<RELEVANT_FILES_RESULT>\n{text}</RELEVANT_FILES_RESULT>")
    assert reading.value is not None
    assert reading.value.files[0].content_preview == "### Heading\n```\n<b>x</b>\n```\n"


def test_a_tag_wins_over_what_stands_around_it() -> None:
    reading = read(BEAD_STATUS, f"status: error\n<BEAD_STATUS>{STATUS}</BEAD_STATUS>\nreason: none")
    assert reading.value is not None
    assert reading.value.status == "done"


def test_an_unclosed_last_tag_still_counts_and_is_noted() -> None:
    reading = read(BEAD_STATUS, f"Done.\n<BEAD_STATUS>\n{STATUS}")
    assert (reading.failure, [n.title for n in reading.interventions]) == ("", ["<BEAD_STATUS> is not closed"])


def test_two_markers_about_different_beads_are_ambiguous() -> None:
    other = STATUS.replace('"b"', '"c"')
    reading = read(BEAD_STATUS, f"<BEAD_STATUS>{STATUS}</BEAD_STATUS><BEAD_STATUS>{other}</BEAD_STATUS>")
    assert (reading.value, reading.failure) == (None, "validation")


def test_a_marker_that_names_another_bead_is_refused() -> None:
    reading = read(BEAD_STATUS, f"<BEAD_STATUS>{STATUS}</BEAD_STATUS>", context={"bead_id": "x"})
    assert (reading.failure, reading.error) == ("validation", "bead_id: this is about 'x', not 'b'")


def test_the_end_tag_of_the_interview_completes_it() -> None:
    reading = read(TURN, "Thank you.\n<INTERVIEW_COMPLETE>\nanything: [at all\n</INTERVIEW_COMPLETE>")
    assert reading.value is not None
    assert reading.value.complete


@pytest.mark.parametrize("text", ["", " \n\t", "\x00\x00", "\x1b[0m\ufeff"])
def test_a_reply_of_nothing_is_empty(text: str) -> None:
    assert read(QUESTIONS, text).failure == "empty"


def test_two_scaffolding_lines_of_the_prompt_are_an_echo() -> None:
    reading = read(QUESTIONS, f"Beadmill task: interview_draft | ticket: A-1\n## Reply format\n{ONE}")
    assert (reading.value, reading.failure) == (None, "echo")


def test_one_scaffolding_line_is_no_echo() -> None:
    assert questions(f"## Reply format\n\n{ONE}") == ["Who reads it?"]


def test_more_scaffolding_can_be_named_by_the_caller() -> None:
    context = {"scaffolding": ("### Draft 1", "### Draft 2")}
    assert read(QUESTIONS, f"### Draft 1\n### Draft 2\n{ONE}", context=context).failure == "echo"


@pytest.mark.parametrize("at", [40, 90, 200, 500, 700])
def test_c48_json_that_stops_in_the_middle_is_truncated_and_never_a_document(at: int) -> None:
    beads = {"beads": [{"id": f"b{n}", "title": "T", "acceptanceCriteria": ["a"], "tests": ["t"]} for n in range(20)]}
    reading = read(SHAPES["blueprint"], json.dumps(beads)[:at])
    assert (reading.value, reading.failure) == (None, "truncated")


def test_a_quoted_yaml_text_that_never_ends_is_truncated() -> None:
    reading = read(QUESTIONS, ONE + '  - id: Q02\n    phase: Structure\n    question: "What if the')
    assert (reading.value, reading.failure) == (None, "truncated")


def test_a_reply_that_the_agent_reports_as_cut_is_truncated_even_when_it_parses() -> None:
    assert read(QUESTIONS, ONE, context={"truncated": True}).failure == "truncated"


def test_a_cut_list_of_files_loses_only_its_last_entry() -> None:
    text = "<RELEVANT_FILES_RESULT>\nfiles:\n  - path: a.py\n    rationale: whole\n  - path: b.py\n    rationale: hal"
    reading = read(RELEVANT_FILES, text)
    assert reading.value is not None
    assert [f.path for f in reading.value.files] == ["a.py"]


def test_native_structured_output_is_read_before_the_text() -> None:
    data = {"status": "gaps", "gaps": ["Nothing on errors"], "follow_up_questions": []}
    reading = read(COVERAGE, "status: clean", data=data)
    assert reading.value is not None
    assert reading.value.gaps == ("Nothing on errors",)


def test_damaged_native_output_falls_back_to_the_text() -> None:
    reading = read(COVERAGE, "status: clean", data={"status": 7})
    assert reading.value is not None
    assert reading.value.status == "clean"


def test_prose_without_a_document_says_which_keys_are_wanted() -> None:
    reading = read(QUESTIONS, "I will look at the repository first.")
    assert (reading.failure, reading.error) == ("parse", "no document with these keys in the reply: questions …")


def test_a_note_is_plain_text_without_its_fence() -> None:
    assert read(NOTE, "```\nTried x: failed.\n- again\n```\n").value == "Tried x: failed.\n- again"


def test_a_long_note_is_cut_and_says_so() -> None:
    reading = read(NOTE, "x" * 50, context={"limit": 10})
    assert (reading.value, [n.title for n in reading.interventions]) == ("x" * 10, ["note cut"])


def test_c50_terminal_escapes_disappear_before_parsing() -> None:
    raw = "\x1b7\x1b[r\x1b8\x1b[?25h\r\r\n\x1b[2C" + STATUS.replace(": ", ":\x1b[1C") + "\x1b]8;;http://x\x07"
    assert read(BEAD_STATUS, raw).failure == ""


def test_c51_warnings_around_jsonl_are_left_out_and_said() -> None:
    line = SHAPES["expansion"].example
    reading = read(EXPANSION, f"\ufeffconfig file not found, using defaults\n\n{line}\nDone.")
    assert reading.value is not None
    assert (len(reading.value), reading.interventions[-1].title) == (1, "text around the JSON removed")
