"""JSON Schema to the strict subset, and replies back to what the schema meant."""

from __future__ import annotations

import pytest

from beadmill.agents._strict import strict, undo
from beadmill.domain.values import Json

ITEM = {
    "type": "object",
    "properties": {"id": {"type": "string", "pattern": "x"}, "n": {"type": "integer"}},
    "required": ["id"],
}
SCHEMA = {
    "$defs": {"Item": ITEM},
    "type": "object",
    "title": "Doc",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "default": []},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["kind"],
}


def test_every_property_is_required_and_optional_ones_are_nullable() -> None:
    made = strict(SCHEMA)
    assert made == {
        "$defs": {
            "Item": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
                "required": ["id", "n"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "properties": {
            "items": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Item"}}, {"type": "null"}]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"enum": ["a", "b"]},
        },
        "required": ["items", "note", "kind"],
        "additionalProperties": False,
    }


def test_nulls_of_optional_properties_are_taken_out_again() -> None:
    reply = {"items": [{"id": "1", "n": None}, {"id": "2", "n": 3}], "note": None, "kind": "a"}
    assert undo(SCHEMA, reply) == {"items": [{"id": "1"}, {"id": "2", "n": 3}], "kind": "a"}
    assert undo(SCHEMA, {"items": None, "note": "x", "kind": "a"}) == {"note": "x", "kind": "a"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [{"type": "string"}]},
        True,
        None,
        {},
    ],
)
def test_what_cannot_be_said_strictly_has_no_strict_form(schema: Json) -> None:
    assert strict(schema) is None


@pytest.mark.parametrize("value", [None, "text", 3, [1, [2]], {"unknown": None, "kind": "a"}])
def test_undo_never_breaks_on_an_odd_reply(value: Json) -> None:
    expected = {"kind": "a"} if isinstance(value, dict) else value
    assert undo(SCHEMA, value) == expected
