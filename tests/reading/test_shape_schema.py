"""JSON Schemas for structured-output modes, and the format section of prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BEAD_STATUS, BLUEPRINT, NOTE, PRD, SHAPES, STRICT, VOTES
from beadmill.artifacts.rubric import RUBRICS

BALLOT = {"labels": ("Draft 1", "Draft 2"), "rubric": RUBRICS["prd"], "domain": "prd"}


def schema(name: str) -> dict[str, Any]:
    return SHAPES[name].json_schema(BALLOT if name == "votes" else None)


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


@pytest.mark.parametrize("name", sorted(STRICT))
def test_a_strict_schema_is_closed_and_requires_every_property(name: str) -> None:
    for node in objects(schema(name)):
        assert (node["additionalProperties"], node["required"]) == (False, list(node["properties"]))


@pytest.mark.parametrize("name", sorted(STRICT))
def test_a_strict_schema_is_self_contained(name: str) -> None:
    whole = schema(name)
    text = json.dumps(whole)
    refs = {part.partition('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}
    assert (refs, whole["type"]) == (set(whole.get("$defs", {})), "object")


def smallest(node: dict[str, Any], defs: dict[str, Any]) -> Any:
    """A value that fits: first word, first branch, one item per list."""
    if "$ref" in node:
        return smallest(defs[node["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in node:
        return smallest(node["anyOf"][-1], defs)
    if "enum" in node:
        return node["enum"][0]
    kinds = {"string": "x", "integer": 1, "number": 1, "boolean": False, "null": None}
    if node["type"] == "array":
        return [smallest(node["items"], defs)]
    if node["type"] == "object":
        return {key: smallest(value, defs) for key, value in node["properties"].items()}
    return kinds[node["type"]]


@pytest.mark.parametrize(
    "name", ["questions", "relevant_files", "votes", "final_test", "pull_request", "candidate_audit"]
)
def test_a_value_made_from_the_schema_is_read(name: str) -> None:
    whole = schema(name)
    reading = read(SHAPES[name], "", data=smallest(whole, whole.get("$defs", {})), context=BALLOT)
    assert reading.error == ""


def test_keys_that_beadmill_fills_are_not_asked_for() -> None:
    assert "approval" not in PRD.json_schema()["properties"]


def test_beads_are_asked_for_in_camel_case() -> None:
    assert "acceptanceCriteria" in BLUEPRINT.json_schema()["$defs"]["BlueprintBead"]["properties"]


def test_a_ballots_schema_names_each_draft_and_each_category() -> None:
    whole = VOTES.json_schema(BALLOT)
    assert list(whole["properties"]["draft_scores"]["properties"]) == ["Draft 1", "Draft 2"]
    assert list(whole["$defs"]["Line"]["properties"]) == [*RUBRICS["prd"], "total_score", "reason"]


def test_the_format_section_shows_tag_rules_and_example() -> None:
    text = BEAD_STATUS.format_help()
    assert "Put it between <BEAD_STATUS> and </BEAD_STATUS>." in text
    assert BEAD_STATUS.example.strip() in text


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_format_section_uses_no_fence(name: str) -> None:
    assert "```" not in SHAPES[name].format_help()


@pytest.mark.parametrize("name", sorted(set(SHAPES) - {"note"}))
def test_a_reply_that_repeats_the_whole_format_section_is_an_echo(name: str) -> None:
    assert read(SHAPES[name], SHAPES[name].format_help()).failure == "echo"


def test_a_note_wants_plain_text() -> None:
    assert "Plain text" in NOTE.format_help()
