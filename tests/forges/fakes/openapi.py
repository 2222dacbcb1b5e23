"""A small reader of API descriptions (OpenAPI 3.0): is this request one the service knows, is this answer one it gives?

It also fills an answer with what the description requires, so that a fake names only what matters.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = Any
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True)
class Spec:
    """``strict``: a field that the description does not name is a problem."""

    document: Mapping[str, Json]

    def operation(self, method: str, path: str) -> Mapping[str, Json] | None:
        """By the most literal template; a last parameter may hold slashes (a branch's name)."""
        found = [t for t in self.document["paths"] if _pattern(t).fullmatch(path)]
        for template in sorted(found, key=lambda t: -len(re.sub(r"\{[^}]+\}", "", t))):
            if method.lower() in self.document["paths"][template]:
                known: Mapping[str, Json] = self.document["paths"][template][method.lower()]
                return known
        return None

    def request(self, method: str, path: str, *, query: Mapping[str, str], body: Json) -> list[str]:
        """What is wrong with a request; empty = nothing."""
        operation = self.operation(method, path)
        if operation is None:
            return [f"{method} {path}: no such operation"]
        known = {p["name"]: p for p in map(self._resolved, operation.get("parameters", ())) if p["in"] == "query"}
        problems = [f"{method} {path}: no parameter {name!r}" for name in query.keys() - known.keys()]
        for name, value in query.items():
            enum = self._resolved(known[name]["schema"]).get("enum") if name in known else None
            if enum and value not in enum:
                problems.append(f"{method} {path}: {name}={value} is none of {enum}")
        content = self._resolved(operation.get("requestBody", {})).get("content", {}).get("application/json")
        if body is None:
            return problems
        if content is None:
            return [*problems, f"{method} {path}: takes no body"]
        return [*problems, *self.check(content["schema"], body, f"{method} {path}: body")]

    def answer_schema(self, method: str, path: str, status: int) -> Mapping[str, Json] | None:
        """None when the description gives this status no JSON."""
        operation = self.operation(method, path) or {}
        answer = self._resolved(operation.get("responses", {}).get(str(status), {}))
        schema: Mapping[str, Json] | None = answer.get("content", {}).get("application/json", {}).get("schema")
        return schema

    def check(self, schema: Mapping[str, Json], value: Json, where: str) -> list[str]:
        return list(self._problems(schema, value, where))

    def fill(self, schema: Mapping[str, Json], value: Json) -> Json:
        """``value`` with everything that is required beside it."""
        schema = self._object_of(schema, value)
        if isinstance(value, list):
            return [self.fill(schema.get("items", {}), one) for one in value]
        if not isinstance(value, dict) or "properties" not in schema:
            return value
        known = schema["properties"]
        own = {name: self.fill(known[name], one) if name in known else one for name, one in value.items()}
        missing = {n: self._sample(known[n]) for n in schema.get("required", ()) if n not in value and n in known}
        return {**missing, **own}

    def _sample(self, schema: Mapping[str, Json]) -> Json:
        schema = self._resolved(schema)
        if schema.get("nullable"):
            return None
        if "enum" in schema:
            return schema["enum"][0]
        whole = self._object_of(schema, {})
        if "properties" in whole:
            return self.fill(whole, {})
        return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}.get(whole.get("type", ""), {})

    def _object_of(self, schema: Mapping[str, Json], value: Json) -> Mapping[str, Json]:
        """allOf joined; of oneOf and anyOf the first that could be this value."""
        schema = self._resolved(schema)
        if "allOf" in schema:
            parts = [self._object_of(part, value) for part in schema["allOf"]]
            properties = {k: v for part in parts for k, v in part.get("properties", {}).items()}
            required = [name for part in parts for name in part.get("required", ())]
            return {**parts[0], "properties": properties, "required": required}
        for word in ("oneOf", "anyOf"):
            for one in schema.get(word, ()):
                found = self._object_of(one, value)
                if isinstance(value, TYPES.get(found.get("type", "object"), (dict,))):
                    return found
        return schema

    def _problems(self, schema: Mapping[str, Json], value: Json, where: str) -> Iterator[str]:
        schema = self._resolved(schema)
        if value is None and (schema.get("nullable") or not schema):
            return
        for part in schema.get("allOf", ()):
            yield from self._problems(part, value, where)
        for word in ("anyOf", "oneOf"):
            tried = [list(self._problems(part, value, where)) for part in schema.get(word, ())]
            if tried and all(tried):
                yield from min(tried, key=len)
        kind = schema.get("type", "object" if "properties" in schema else "")
        wrong = isinstance(value, bool) and kind in ("integer", "number")
        if kind and (wrong or not isinstance(value, TYPES[kind])):
            yield f"{where}: {value!r} is no {kind}"
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is none of {schema['enum']}"
        elif isinstance(value, list):
            for n, one in enumerate(value):
                yield from self._problems(schema.get("items", {}), one, f"{where}[{n}]")
        elif isinstance(value, dict):
            yield from self._fields(schema, value, where)

    def _fields(self, schema: Mapping[str, Json], value: Mapping[str, Json], where: str) -> Iterator[str]:
        known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from (f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        composed = any(word in schema for word in ("allOf", "anyOf", "oneOf"))
        for name, one in value.items():
            if name in known:
                yield from self._problems(known[name], one, f"{where}.{name}")
            elif known and not composed and not more:
                yield f"{where}: there is no field {name!r}"

    def _resolved(self, schema: Mapping[str, Json]) -> Mapping[str, Json]:
        while "$ref" in schema:
            found: Json = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema


@functools.cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]+\})", template)
    last = max((n for n, part in enumerate(parts) if part.startswith("{")), default=-1)
    text = [
        (".+" if n == last and not parts[-1] else "[^/]+") if part.startswith("{") else re.escape(part)
        for n, part in enumerate(parts)
    ]
    return re.compile("".join(text))


@functools.cache
def load(path: Path) -> Spec:
    return Spec(json.loads(path.read_text("utf-8")))


def shape(fields: Mapping[str, str]) -> dict[str, Json]:
    """A schema from ``{"id": "int", "body": "str?", "user": "User", "labels": "[str]", "-line": "int"}``: ``?`` = may be
    null, ``-`` before a name = may be left out."""
    required = [name for name in fields if not name.startswith("-")]
    properties = {name.lstrip("-"): _typed(word) for name, word in fields.items()}
    return {"type": "object", "required": required, "properties": properties}


def _typed(word: str) -> dict[str, Json]:
    names = {"str": "string", "int": "integer", "bool": "boolean", "any": ""}
    bare = word.rstrip("?")
    null = {"nullable": True} if word.endswith("?") else {}
    if bare.startswith("["):
        return {"type": "array", "items": _typed(bare[1:-1]), **null}
    if "|" in bare:
        return {"type": "string", "enum": bare.split("|"), **null}
    if bare in names:
        return {**({"type": names[bare]} if names[bare] else {}), **null}
    return {"allOf": [{"$ref": f"#/components/schemas/{bare}"}], **null}


def written(shapes: Mapping[str, Mapping[str, str]], operations: Mapping[str, Mapping[str, Json]]) -> Spec:
    """A description kept by hand: ``{"GET /x/{id}": {"query": "page limit", "body": {…}, "200": "[Thing]"}}``."""
    paths: dict[str, dict[str, Json]] = {}
    for key, told in operations.items():
        method, path = key.split(" ")
        query = [{"name": n, "in": "query", "schema": {}} for n in told.get("query", "").split()]
        body = {"content": {"application/json": {"schema": shape(told["body"])}}} if "body" in told else {}
        answers = {
            status: {"content": {"application/json": {"schema": _typed(word)}}}
            for status, word in told.items()
            if status.isdigit()
        }
        paths.setdefault(path, {})[method.lower()] = {"parameters": query, "requestBody": body, "responses": answers}
    return Spec({"paths": paths, "components": {"schemas": {name: shape(one) for name, one in shapes.items()}}})
