"""Valid replies of every shape, damaged at random: never a crash, nothing made up, work within its bounds."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.candidates import MOST
from beadmill.artifacts.reading.shapes import SHAPES
from beadmill.artifacts.reading.tree import Work
from tests.corpus.corpus import VALID, context_of, plain, shape_of
from tests.corpus.mutations import invented, leaves, mutated, words

SEATS = st.randoms(use_true_random=False, note_method_calls=False)


def outcome(valid: str, reply: str) -> tuple[bool, list[str]]:
    """Whether the reading is whole (a value or a failure, not both), and what it made up."""
    reading = read(SHAPES[shape_of(valid)], reply, context=context_of(valid))
    known = words(" ".join(leaves(plain(list(context_of(valid).values())))))
    return (reading.value is None) == bool(reading.failure), invented(plain(reading.value), reply, known)


@pytest.mark.parametrize("valid", VALID)
@given(SEATS)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_a_damaged_reply_neither_crashes_nor_gives_words_that_nobody_wrote(valid: str, rng: Random) -> None:
    assert outcome(valid, mutated(VALID[valid], rng)) == (True, [])


def test_a_text_that_stands_nowhere_is_found() -> None:
    value: Any = {"title": "Start a series", "id": "US-1-1", "steps": ["Draw a unicorn"]}
    assert invented(value, "title: Start a series", known=" ") == ["Draw a unicorn"]


TEN_MB = 10_000_000
FILE = {"path": "src/a.py", "rationale": "w" * 60}
HUGE = {
    "one line": "a" * TEN_MB,
    "lines that look like keys": "hello world: x\n" * (TEN_MB // 15),
    "nested brackets": "questions: " + "[" * (TEN_MB // 2) + "]" * (TEN_MB // 2),
    "nested indents": "\n".join(" " * n + "a:" for n in range(4_400)),
    "fences": "```yaml\nquestions:\n```\n" * 100_000,
    "open fences": "```\n" * (TEN_MB // 4),
    "tags": "<RELEVANT_FILES_RESULT>\nfiles:\n" * 300_000,
    "one damaged line after another": "files:\n" + "  - path: a: b: c\n" * 550_000,
    "more damaged lines than are repaired": "files:\n" + '  - path: "a "b" c"\n' * 9_000,
    "envelopes": '{"result": "' * 800_000,
    "JSON over its limit": json.dumps({"files": [FILE] * 60_000}),
    "nested JSON": '{"a":' * 5000 + "1" + "}" * 5000,
    "zero bytes": "\0" * TEN_MB,
    "half escapes": "\x1b]" * 500_000,
    "braces": "{" * 1_000_000,
    "quotes": '"' * 1_000_000,
    "question marks": "? " * 100_000,
    "open quotes": "files:\n" + '  - "a\n' * 3000,
    "bytes": bytes(range(256)).decode("latin-1") * 4000,
}


@pytest.mark.parametrize("name", HUGE)
def test_ten_megabytes_cost_a_bounded_number_of_scanned_characters_and_tries(name: str) -> None:
    work = Work()
    reading = read(SHAPES["relevant_files"], HUGE[name], work=work)
    assert reading.value is None
    assert (work.left > -MOST * 2 * 200, work.tries <= 2 * MOST) == (True, True)
