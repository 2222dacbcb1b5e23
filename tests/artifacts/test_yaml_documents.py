"""Documents as YAML and back: order, blocks, exactness, and errors with a place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BLUEPRINT, PRD
from beadmill.artifacts.yaml import from_yaml, to_yaml
from beadmill.errors import NotFound, Unprocessable


def prd(**change: object) -> Prd:
    document = read(PRD, PRD.example).value
    assert document is not None
    return document.model_copy(update=change)


def test_keys_stand_in_the_order_of_the_model() -> None:
    keys = [line.split(":")[0] for line in to_yaml(prd()).splitlines() if line[0] not in " -"]
    assert keys == list(Prd.model_fields)


def test_a_text_of_several_lines_is_a_block() -> None:
    assert "  - |\n    one\n    two\n" in to_yaml(prd(risks=("one\ntwo\n",)))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=5))
@settings(max_examples=200, deadline=None)
def test_every_text_survives_the_way_to_yaml_and_back(texts: list[str]) -> None:
    document = prd(risks=tuple(texts))
    assert from_yaml("prd", to_yaml(document)).sha256 == document.sha256


@pytest.mark.parametrize(
    "text", ["yes", "1.10", "null", "~", "", "a: b", "# x", " lead", "tab\tx", "a\r\nb", "\u2028", "- x"]
)
def test_a_text_that_yaml_could_take_for_something_else_survives(text: str) -> None:
    document = prd(risks=(text,))
    assert from_yaml("prd", to_yaml(document)) == document


def test_beads_keep_their_camel_case_keys() -> None:
    blueprint = read(BLUEPRINT, BLUEPRINT.example).value
    assert blueprint is not None
    assert "    acceptanceCriteria:\n" in to_yaml(blueprint)
    assert from_yaml("blueprint", to_yaml(blueprint)) == blueprint


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("product:\n  problem_statement: x\nepics: [", 3, 1, "begun here"),
        ("product:\n  problem_statement: x\nepic: []\n", 3, 1, "unknown key epic"),
        ("product:\n  problem_statement: x\nepics:\n  - id: E\n    title: x\n", 4, 5, "user_stories: Field required"),
        ("title: a: b\n", 1, 9, "mapping values are not allowed"),
        ("a: 1\n<<<<<<< HEAD\n", 2, 1, "conflict marker of a merge"),
        ("- a\n", 1, 1, "a prd is a mapping"),
        ("a: &x 1\n", 1, 4, "anchors are not allowed"),
    ],
)
def test_a_persons_mistake_is_told_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(Unprocessable) as caught:
        from_yaml("prd", text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)
    assert says in caught.value.message


def test_a_persons_edit_is_never_repaired() -> None:
    with pytest.raises(Unprocessable):
        from_yaml("prd", "product:\n\tproblem_statement: x\n")


def test_an_unknown_kind_is_not_found() -> None:
    with pytest.raises(NotFound):
        from_yaml("novel", "a: b")
