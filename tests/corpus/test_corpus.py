"""Damaged replies of every shape: the wanted document with the wanted interventions, or the wanted refusal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.repairs import REPAIRS
from beadmill.artifacts.reading.shape import Failure
from beadmill.artifacts.reading.shapes import SHAPES
from tests.corpus.corpus import VALID, Case, accepted, at, cases, context_of, plain, shape_of

CASES = tuple(cases())
ACCEPTED = [case for case in CASES if "refused" not in case.wanted]
REFUSED = [case for case in CASES if "refused" in case.wanted]


def named(case: Case) -> str:
    return f"{case.shape}: {case.name}"


@pytest.mark.parametrize("case", ACCEPTED, ids=named)
def test_a_damaged_reply_gives_the_wanted_document(case: Case) -> None:
    reading = case.read()
    assert reading.value is not None, f"{reading.failure}: {reading.error}"
    value = plain(reading.value)
    found = {path: at(value, path) for path in case.wanted.get("fields", {})}
    assert found == case.wanted.get("fields", {})
    assert [note.title for note in reading.interventions] == case.wanted.get("notes", [])
    if case.wanted.get("same"):
        assert value == plain(accepted(case.of))


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_a_reply_without_one_clear_meaning_is_refused(case: Case) -> None:
    reading = case.read()
    assert (reading.value, reading.failure) == (None, case.wanted["refused"]), reading.error
    assert case.wanted["error"] in reading.error


@pytest.mark.parametrize("valid", VALID)
def test_a_valid_reply_needs_no_intervention(valid: str) -> None:
    reading = read(SHAPES[shape_of(valid)], VALID[valid], context=context_of(valid))
    assert (reading.failure, reading.error, reading.interventions) == ("", "", ())


def test_every_shape_has_cases() -> None:
    assert {case.shape for case in CASES} == set(SHAPES)


def test_every_repair_has_a_case_and_a_counter_case() -> None:
    titles = {repair.title for repair in REPAIRS}
    assert ({case.repair for case in CASES} - {""}, {case.spares for case in CASES} - {""}) == (titles, titles)


def test_no_two_cases_share_their_reply() -> None:
    seen: dict[tuple[str, str, str], list[str]] = {}
    for case in CASES:
        seen.setdefault((case.shape, case.reply, repr(sorted(case.context))), []).append(case.name)
    assert [names for names in seen.values() if len(names) > 1] == []


def test_the_page_about_reading_lists_every_repair_in_order() -> None:
    page = (Path(__file__).parents[2] / "docs/reading.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \|", page.partition("## Repairs of YAML")[2], re.MULTILINE)
    assert rows == ["repair", *(repair.title for repair in REPAIRS)]


def test_the_page_about_reading_lists_every_failure() -> None:
    page = (Path(__file__).parents[2] / "docs/reading.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(
        word for word in get_args(Failure) if word
    )
