"""Each local repair with its case and its counter-case: what looks alike and must stay as it is, or be refused."""

from __future__ import annotations

import json

import pytest

from beadmill.artifacts.interview import Questions
from beadmill.artifacts.reading import Reading, read
from beadmill.artifacts.reading.shapes import BEAD_STATUS, BLUEPRINT, QUESTIONS, RELEVANT_FILES

HEAD = "questions:\n  - id: Q01\n    phase: Foundation\n    question: "
NEXT = "\n  - id: Q02\n    phase: Structure\n    question: y"


def ask(text: str) -> Reading[Questions]:
    return read(QUESTIONS, text)


def texts(reading: Reading[Questions]) -> list[str]:
    return [q.question for q in reading.value.questions] if reading.value else []


CASES = [
    (HEAD + "pick one: the order (a/b)", ["pick one: the order (a/b)"], "text with a colon quoted"),
    (HEAD + "pick one: the order # aside", ["pick one: the order"], "text with a colon quoted"),
    (HEAD + "fix issue #5 first", ["fix issue #5 first"], "text with a # quoted"),
    (HEAD + "mask it as ##:## there", ["mask it as ##:## there"], "text with a # quoted"),
    (HEAD + "@user does what?", ["@user does what?"], "text quoted"),
    (HEAD + "`foo` does what?", ["`foo` does what?"], "text quoted"),
    (HEAD + "**Who** reads it?", ["**Who** reads it?"], "text quoted"),
    (HEAD + "&str is what?", ["&str is what?"], "text quoted"),
    (HEAD + "!important is what?", ["!important is what?"], "text quoted"),
    (HEAD + "%d is what?", ["%d is what?"], "text quoted"),
    (HEAD + "> 5 items, then?", ["> 5 items, then?"], "text quoted"),
    (HEAD + "{id} is what?", ["{id} is what?"], "text quoted"),
    (HEAD + '"Los" on stage: when?', ['"Los" on stage: when?'], "text quoted"),
    (HEAD + '"say "hi" twice"', ['say "hi" twice'], "quotes inside quotes escaped"),
    (HEAD + r'"a \d+ b"', [r"a \d+ b"], "backslash kept as a backslash"),
    (HEAD + '"who is it' + NEXT, ["who is it", "y"], "quote that is never closed"),
    (HEAD + "who\n      reads: it", ["who\nreads: it"], "text over several lines made a block"),
    (HEAD + "which\n      - a\n      - b", ["which\n- a\n- b"], "text over several lines made a block"),
    (HEAD + "who\nreads it" + NEXT, ["who reads it", "y"], "wrapped sentence joined"),
    (HEAD.replace("  ", "\t") + "x", ["x"], "tabs in the indent became spaces"),
    (HEAD.replace("id: ", "id:") + "x", ["x"], "space put after a colon"),
    (HEAD + "x" + NEXT.replace("- id", "-id"), ["x", "y"], "space put after a dash"),
    (HEAD + "x" + NEXT.replace("\n  ", "\n   "), ["x", "y"], "list item moved to the others"),
    (HEAD.replace("    phase", "   phase") + "x", ["x"], "key moved to the others"),
    (HEAD.replace("id: Q01", "Q01") + "x", ["x"], "word of a list item taken as its id"),
    ("questions:\n  - id: Q01, phase: Foundation, question: Why?", ["Why?"], "several keys on one line separated"),
    (f"<output>\n{HEAD}x\n</output>", ["x"], "fence or tag line removed"),
]


@pytest.mark.parametrize(("text", "wanted", "title"), CASES, ids=[f"{n}-{c[2]}" for n, c in enumerate(CASES)])
def test_a_slip_of_format_is_repaired_without_changing_a_word(text: str, wanted: list[str], title: str) -> None:
    reading = ask(text)
    assert (texts(reading), reading.interventions[0].title) == (wanted, title)


UNTOUCHED = [
    (HEAD + "see http://a.b/c:8", "see http://a.b/c:8"),
    (HEAD + "'pick one: this'", "pick one: this"),
    (HEAD + "x # aside", "x"),
    (HEAD + '"fix issue #5"', "fix issue #5"),
    (HEAD + r'"a \t b"', "a \t b"),
    (HEAD + '"who\n      reads it"', "who reads it"),
    (HEAD + "who\n      reads it", "who reads it"),
    (HEAD + "|\n      <output>\n      a: b: c\n      - @x", "<output>\na: b: c\n- @x"),
    (HEAD + ">-\n      one: two: three\n      four", "one: two: three four"),
    (HEAD + "NO", "NO"),
    (HEAD + "1.10", "1.10"),
    (HEAD + "12:30", "12:30"),
    (HEAD + "0o17", "0o17"),
    (HEAD + "id:Q01 is written so", "id:Q01 is written so"),
]


@pytest.mark.parametrize(("text", "wanted"), UNTOUCHED)
def test_what_yaml_reads_by_itself_is_not_repaired(text: str, wanted: str) -> None:
    reading = ask(text)
    assert ([t.rstrip("\n") for t in texts(reading)], reading.interventions) == ([wanted], ())


REFUSED = [
    ("questions:\n  - id: Q01\n    id: Q02\n    phase: Foundation\n    question: x", "'id' is there twice"),
    ("questions:\n  - &a {id: Q01}\n  - *a", "anchors are not allowed"),
    ("questions:\n  - !!python/object:os.system {id: Q01}", "tags are not allowed"),
    (HEAD + "x\n---\nquestions: []", "more than one YAML document"),
    ("questions:\n  - {id: Q01, phase: Foundation, question: fails, since it is so}", "a comma in a text"),
    ("questions:\n  - id: Q01\n    phase: Middle\n    question: x", "questions.0.phase"),
    ("questions:\n  - id: Q01\n    phase: Foundation | Structure\n    question: x", "questions.0.phase"),
    ("questions: []", "the list is empty"),
]


@pytest.mark.parametrize(("text", "error"), REFUSED)
def test_what_has_two_meanings_is_refused(text: str, error: str) -> None:
    reading = ask(text)
    assert reading.value is None
    assert error in reading.error


def test_a_key_written_twice_with_the_same_value_counts_once() -> None:
    reading = ask(HEAD + "x\n    id: Q01")
    assert (texts(reading), reading.interventions[0].title) == (["x"], "the same key and value written twice")


def test_a_repair_of_one_line_leaves_an_equal_line_in_a_block_alone() -> None:
    reading = ask(HEAD + "a: b" + NEXT.replace("y", "|\n      question: a: b\n      id: Q09"))
    assert texts(reading) == ["a: b", "question: a: b\nid: Q09\n"]


def test_sixty_equal_slips_are_repaired_together() -> None:
    rows = "".join(f"  - id: Q{n}\n    phase: Foundation\n    question: why: so {n}\n" for n in range(60))
    assert texts(ask("questions:\n" + rows)) == [f"why: so {n}" for n in range(60)]


def test_repairs_of_a_rejected_candidate_are_not_told_of_the_accepted_one() -> None:
    reading = ask(f"```yaml\nother: a: b\n```\n```yaml\n{HEAD}x\n```")
    assert [n.title for n in reading.interventions] == ["code fence removed"]


def test_code_under_a_text_key_becomes_a_block() -> None:
    text = "files:\n  - path: a.py\n    content_preview:\n      def f(x):\n          return {x: 1}\n"
    reading = read(RELEVANT_FILES, text)
    assert reading.value is not None
    assert reading.value.files[0].content_preview == "def f(x):\n    return {x: 1}"


def bead(extra: str) -> str:
    return f"beads:\n  - id: a\n    title: T\n    acceptanceCriteria: [x]\n    tests: [y]\n    testCommandReason: none\n{extra}"


def test_keys_beside_their_empty_parent_go_under_it() -> None:
    reading = read(BLUEPRINT, bead("    contextGuidance:\n    patterns: [p]\n    anti_patterns: [q]\n"))
    assert reading.value is not None
    assert reading.value.beads[0].context_guidance.patterns == ("p",)


def test_a_list_in_the_wrong_part_of_the_document_is_refused_not_dropped() -> None:
    reading = read(BLUEPRINT, bead("    patterns: [p]\n"))
    assert (reading.value, reading.error) == (
        None,
        "beads.0.patterns: this key belongs to another part of the document",
    )


def test_a_superfluous_key_is_left_out_and_said() -> None:
    reading = read(BLUEPRINT, bead("    estimate: 3 days\n"))
    assert [(n.title, n.detail) for n in reading.interventions] == [("unknown key left out", "beads.0.estimate")]


def test_a_sentence_with_a_colon_in_a_list_stays_a_sentence() -> None:
    reading = read(BLUEPRINT, bead("").replace("[x]", "\n      - Given: a list, the file opens\n"))
    assert reading.value is not None
    assert reading.value.beads[0].acceptance_criteria == ("Given: a list, the file opens",)


def test_an_empty_own_key_is_not_revived_by_its_alias() -> None:
    reading = read(BLUEPRINT, bead("    prdRefs: []\n    requirements: [US-1]\n"))
    assert reading.value is not None
    assert reading.value.beads[0].prd_refs == ()


CHECKS = '"checks": {"tests": "pass", "lint": "pass", "typecheck": "pass", "qualitative": "pass"}'


def status(middle: str) -> Reading[object]:
    return read(BEAD_STATUS, '{"bead_id": "b", ' + middle + CHECKS + "}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("middle", "reason", "title"),
    [
        ('"status": "done", "reason": "say "hi" now", ', 'say "hi" now', "JSON repaired"),
        ('"status": "done", "reason": "a\nb", ', "a\nb", "line breaks inside JSON texts kept"),
        ('"status": "done" "reason": "x", ', "x", "JSON repaired"),
        ("'status': 'done', 'reason': 'x', ", "x", "JSON read by the rules of YAML"),
    ],
)
def test_damaged_json_is_repaired_when_no_word_changes(middle: str, reason: str, title: str) -> None:
    reading = status(middle)
    assert reading.value is not None, reading.error
    assert (getattr(reading.value, "reason", None), reading.interventions[0].title) == (reason, title)


@pytest.mark.parametrize(
    "middle",
    [
        '"status": "done", "status": "error", ',
        '"status": "done", // not sure\n',
        '"status": "done", "reason": "half" of it is, ',
    ],
)
def test_json_whose_repair_would_lose_a_word_is_refused(middle: str) -> None:
    assert (status(middle).value, status(middle).failure) == (None, "parse")


def test_c49_a_quote_inside_a_json_text_is_kept_or_refused_but_never_dropped() -> None:
    text = json.dumps({"questions": [{"id": "Q01", "phase": "Foundation", "question": "PLACE"}]}, ensure_ascii=False)
    reading = ask(text.replace("PLACE", 'Button „Los" on stage'))
    assert texts(reading) in (['Button „Los" on stage'], [])
