"""The part of JSON Schema that gates use for their payloads."""

from __future__ import annotations

from collections.abc import Sequence

from beadmill.domain.values import Json


def violations(form: Json, payload: Json, where: str = "payload") -> Sequence[str]:
    """The part of JSON Schema that forms use: type, required, properties, items, enum, additionalProperties, and the
    limits exclusiveMinimum, maxLength, maxItems."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    wanted = form.get("type")
    if isinstance(wanted, str) and wanted in kinds and not isinstance(payload, kinds[wanted]):
        return [f"{where} must be of type {wanted}"]
    found: list[str] = []
    if "enum" in form and payload not in form["enum"]:
        found.append(f"{where} must be one of {form['enum']}")
    if "exclusiveMinimum" in form and not payload > form["exclusiveMinimum"]:
        found.append(f"{where} must be more than {form['exclusiveMinimum']}")
    for limit, kind in (("maxLength", str), ("maxItems", list)):
        if limit in form and isinstance(payload, kind) and len(payload) > form[limit]:
            found.append(f"{where} is longer than {form[limit]}")
    if isinstance(payload, dict):
        properties = form.get("properties", {})
        found += [f"{where}.{name} is missing" for name in form.get("required", []) if name not in payload]
        rest = form.get("additionalProperties", True)
        for name, value in payload.items():
            inner = properties.get(name, rest)
            if inner is False:
                found.append(f"{where}.{name} is not asked for")
            elif isinstance(inner, dict):
                found += violations(inner, value, f"{where}.{name}")
    if isinstance(payload, list) and isinstance(form.get("items"), dict):
        for i, value in enumerate(payload):
            found += violations(form["items"], value, f"{where}[{i}]")
    return found
