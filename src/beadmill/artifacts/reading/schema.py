"""JSON Schema of a reply for the strict structured-output modes: closed objects, every property required."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

_KEEP = (
    "type",
    "enum",
    "const",
    "properties",
    "items",
    "anyOf",
    "required",
    "additionalProperties",
    "$ref",
    "description",
)
_PAIR = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
    "required": ["name", "value"],
    "additionalProperties": False,
}


def strict_schema(
    model: type[BaseModel], *, leave_out: frozenset[str], name: str, context: Mapping[str, object]
) -> dict[str, Any]:
    """Self-contained (``$defs`` inside). Open maps become lists of name/value pairs; defaults and lengths are left to
    reading, which checks them anyway."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    defs = {key: _strict(value) for key, value in raw.pop("$defs", {}).items()}
    out: dict[str, Any] = _strict(raw, leave_out)
    if name == "votes":
        _votes(out, defs, context)
    used = _reachable(out, defs)
    if used:
        out["$defs"] = {key: defs[key] for key in sorted(used)}
    return out


def _strict(node: Any, leave_out: frozenset[str] = frozenset()) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "object" and "properties" not in node:
        return _map(node)
    if not any(key in node for key in (*_KEEP, "allOf")):
        return {"type": "string"}  # Any
    out = {key: node[key] for key in _KEEP if key in node and key != "properties"}
    for key in ("items", "anyOf"):
        if key in out:
            out[key] = _strict(out[key])
    if "prefixItems" in node:
        out["items"] = _strict(node["prefixItems"][0])
    if "const" in out:
        out["enum"] = [out.pop("const")]
        out.setdefault("type", "string" if isinstance(out["enum"][0], str) else "integer")
    if "properties" in node:
        out["properties"] = {k: _strict(v) for k, v in node["properties"].items() if k not in leave_out}
        out["required"] = list(out["properties"])
        out["additionalProperties"] = False
    return out


def _map(node: dict[str, Any]) -> dict[str, Any]:
    names: Sequence[str] = (node.get("propertyNames") or {}).get("enum", ())
    value = node.get("additionalProperties")
    if names:
        inner = _strict(value)
        return closed(dict.fromkeys(names, inner))
    return {"type": "array", "items": _PAIR}


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _votes(out: dict[str, Any], defs: dict[str, Any], context: Mapping[str, object]) -> None:
    """Labels and category names are known only with the ballot."""
    labels, rubric = context.get("labels"), context.get("rubric")
    if not isinstance(labels, Sequence) or not isinstance(rubric, Sequence):
        return
    number = {"type": "integer"}
    line = closed({**{str(c): number for c in rubric}, "total_score": number, "reason": {"type": "string"}})
    defs["Line"] = line
    out["properties"]["draft_scores"] = closed({str(label): {"$ref": "#/$defs/Line"} for label in labels})


def _reachable(node: Any, defs: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> frozenset[str]:
    if isinstance(node, list):
        for item in node:
            seen = _reachable(item, defs, seen)
    elif isinstance(node, dict):
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in defs and name not in seen:
            seen = _reachable(defs[name], defs, seen | {name})
        for key, item in node.items():
            seen = seen if key == "$ref" else _reachable(item, defs, seen)
    return seen
