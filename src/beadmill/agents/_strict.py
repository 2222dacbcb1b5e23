"""JSON Schema → the strict subset that providers accept, and the way back. Standard library only.

Strict: every object closed, every property required, few keywords. An optional property becomes nullable; ``undo``
takes such a null out again. What cannot be said strictly (free keys, tuples, anything-goes) has no strict form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from beadmill.domain.values import Json

_PLAIN: Final = ("type", "description", "enum", "const", "$ref")


class _NotStrict(Exception):
    """Stays inside: ``strict`` answers None."""


def strict(schema: Json) -> Json | None:
    """None when there is no strict form."""
    try:
        made = _node(schema)
    except _NotStrict:
        return None
    return made if made.get("type") == "object" else None


def _node(node: Json) -> dict[str, Json]:
    if not isinstance(node, dict) or not node:
        raise _NotStrict
    if set(node) & {"not", "if", "prefixItems", "patternProperties", "dependentSchemas"}:
        raise _NotStrict
    made = {key: node[key] for key in _PLAIN if key in node}
    if "$defs" in node:
        made["$defs"] = {name: _node(d) for name, d in node["$defs"].items()}
    branches = node.get("anyOf") or node.get("oneOf")
    if branches:
        made["anyOf"] = [_node(b) for b in branches]
    if "allOf" in node:
        made |= _single(node["allOf"])
    if "object" in _types(node):
        made |= _object(node)
    if "array" in _types(node):
        made["items"] = _node(node.get("items"))
    if not set(made) & {"type", "enum", "const", "$ref", "anyOf"}:
        raise _NotStrict
    return made


def _types(node: Mapping[str, Json]) -> list[str]:
    kind = node.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def _single(branches: Json) -> dict[str, Json]:
    if len(branches) != 1:
        raise _NotStrict
    return _node(branches[0])


def _object(node: Mapping[str, Json]) -> dict[str, Json]:
    properties = node.get("properties")
    if not properties or isinstance(node.get("additionalProperties"), dict):
        raise _NotStrict
    required = node.get("required", [])
    made = {name: _node(p) if name in required else _nullable(_node(p)) for name, p in properties.items()}
    return {"properties": made, "required": list(made), "additionalProperties": False}


def _nullable(node: dict[str, Json]) -> dict[str, Json]:
    if "null" in _types(node) or {"type": "null"} in node.get("anyOf", []):
        return node
    return {"anyOf": [node, {"type": "null"}]}


def undo(schema: Json, value: Json) -> Json:
    """The value as the original schema would have it: nulls of optional properties are left out."""
    return _undo(schema, value, schema.get("$defs", {}) if isinstance(schema, dict) else {})


def _undo(node: Json, value: Json, defs: Mapping[str, Json]) -> Json:
    node = _resolve(node, defs)
    if isinstance(value, list):
        return [_undo(node.get("items", {}), v, defs) for v in value]
    if not isinstance(value, dict):
        return value
    owner = next((b for b in _branches(node, defs) if set(value) <= set(b.get("properties", {}))), node)
    properties, required = owner.get("properties", {}), owner.get("required", [])
    return {k: _undo(properties.get(k, {}), v, defs) for k, v in value.items() if v is not None or k in required}


def _resolve(node: Json, defs: Mapping[str, Json]) -> Mapping[str, Json]:
    if not isinstance(node, dict):
        return {}
    name = node.get("$ref", "").rpartition("/")[2]
    if name:
        return _resolve(defs.get(name, {}), defs)
    lists = [b for b in _branches(node, defs) if "items" in b]
    return lists[0] if lists else node


def _branches(node: Mapping[str, Json], defs: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The node itself when it is an object or list, else its alternatives."""
    found = node.get("anyOf") or node.get("oneOf") or node.get("allOf")
    return [_resolve(b, defs) for b in found] if found else [node]
