"""Whatever comes in: no crash, no long wait, nothing made up."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BLUEPRINT, QUESTIONS, SHAPES
from beadmill.artifacts.yaml import dump

NAMES = sorted(SHAPES)
SIGNS = """questions: | - |   |```|<TAG>|</|{|}|[|]|"|'|: |:| #|&a|*a|!x|>|id|Foundation|beads:|\\|\\u|? |---|...|%|@|null|~|,"""
PIECES = st.sampled_from(
    [
        *SIGNS.split("|"),
        "|",
        "\n",
        "\t",
        "\r",
        "\x00",
        "\x1b[",
        "\x85",
        "\u2028",
        "\ud800",
        "é",
        "<INTERVIEW_BATCH>",
        "files:",
    ]
)


@given(st.sampled_from(NAMES), st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join)))
@settings(max_examples=400, deadline=None)
def test_any_text_gives_a_reading(name: str, text: str) -> None:
    reading = read(SHAPES[name], text)
    assert (reading.value is None) == bool(reading.failure)


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_example_gives_a_reading(name: str, data: st.DataObject) -> None:
    text = SHAPES[name].example
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 6)) :]
    reading = read(SHAPES[name], text)
    assert (reading.value is None) == bool(reading.failure)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.sampled_from(NAMES), ANYTHING, st.sampled_from(["questions", "beads", "draft_scores", "files", "status", "x"])
)
@settings(max_examples=300, deadline=None)
def test_any_native_output_gives_a_reading(name: str, value: Any, key: str) -> None:
    reading = read(SHAPES[name], "", data={key: value})
    assert (reading.value is None) == bool(reading.failure)


LINE = st.text(alphabet="ab:#-'\"`@*&!|>{}[]%\\ ,.?", min_size=1, max_size=24)


def words(text: str) -> list[str]:
    return re.findall(r"[ab]+", text)


@given(st.lists(LINE, min_size=1, max_size=4))
@example(["a #:a"])
@settings(max_examples=500, deadline=None)
def test_an_accepted_question_holds_the_words_that_were_written_and_no_others(lines: list[str]) -> None:
    rows = "".join(f"  - id: Q{n:02}\n    phase: Foundation\n    question: {line}\n" for n, line in enumerate(lines, 1))
    reading = read(QUESTIONS, "questions:\n" + rows)
    if reading.value is None:
        return
    written = [words(re.sub(r"(^|\s)#(\s.*|$)", "", line)) for line in lines]
    assert [words(q.question) for q in reading.value.questions] == written


@given(st.lists(st.text(min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_what_yaml_can_carry_comes_back_exactly(texts: list[str]) -> None:
    texts = [re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]", "", text) or "x" for text in texts]
    bead = {"id": "a", "title": "T", "acceptanceCriteria": texts, "tests": ["t"], "testCommandReason": "none"}
    reading = read(BLUEPRINT, dump({"beads": [bead]}))
    assert reading.value is not None, reading.error
    assert reading.value.beads[0].acceptance_criteria == tuple(texts)


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    lines = ["questions: &a [x, x, x, x]"] + [
        f"{b}: &{b} [*{a}, *{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    reading = read(QUESTIONS, "\n".join(lines))
    assert (reading.failure, reading.error) == ("parse", "line 1, column 12: anchors are not allowed")


def test_the_same_reply_gives_the_same_reading() -> None:
    text = "Well:\nquestions:\n  - Q01\n    phase: foundation\n    question: a: b\n"
    assert read(QUESTIONS, text) == read(QUESTIONS, text)
