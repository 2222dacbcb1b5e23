"""The corpus as Python values: valid replies, and cases of damage with what must come of them.

A case of ``cases/*.yaml`` starts from ``reply`` or from a valid reply (``of``) with ``damage``: pairs ``[old, new]`` whose
old text occurs once, ``{every: old, by: new}``, ``{cut: text}`` (the reply ends before that text), ``{around: [a, b]}``.
Wanted: ``same: true`` (the document of the undamaged reply), ``fields`` by dotted path, ``notes`` (titles of all
interventions in order), or ``refused`` (the failure) with ``error`` (words of its text).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML

from beadmill.artifacts.interview import Interview
from beadmill.artifacts.reading import Reading, read
from beadmill.artifacts.reading.shapes import SHAPES

HERE = Path(__file__).parent
VALID = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "valid").glob("*.txt"))}


@dataclass(frozen=True)
class Case:
    name: str
    source: str  # case of the public reports or number of the bug kind it stands for
    shape: str
    of: str
    reply: str
    context: Mapping[str, Any]
    wanted: Mapping[str, Any]
    repair: str = ""  # title of the repair that must act
    spares: str = ""  # title of the repair that must not act although the text looks alike

    def read(self) -> Reading[Any]:
        return read(SHAPES[self.shape], self.reply, context=self.context)


def _load(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((HERE / name).read_text(encoding="utf-8"))


@cache
def _contexts() -> dict[str, Any]:
    found: dict[str, Any] = _load("contexts.yaml")
    return found


def shape_of(valid: str) -> str:
    """``coverage_prd`` → ``coverage``: the name of a valid reply begins with its shape."""
    return max((name for name in SHAPES if valid.startswith(name)), key=len)


@cache
def context_of(valid: str) -> dict[str, Any]:
    return {key: _resolved(value) for key, value in _contexts().get(valid, {}).items()}


def _resolved(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"valid"}:
        return accepted(value["valid"])
    if value.keys() == {"refs"}:
        return accepted(value["refs"]).refs()
    if value.keys() == {"interview"}:
        return Interview.model_validate(_contexts()["interviews"][value["interview"]])
    return {key: _resolved(inner) for key, inner in value.items()}


@cache
def accepted(valid: str) -> Any:
    """The document of a valid reply."""
    reading = read(SHAPES[shape_of(valid)], VALID[valid], context=context_of(valid))
    assert reading.value is not None, f"{valid}: {reading.error}"
    return reading.value


def plain(value: Any) -> Any:
    """Any value that reading gives as lists, mappings and scalars."""
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def at(value: Any, path: str) -> Any:
    """``epics.0.title`` in a plain value; ``#`` at the end counts the entries."""
    for part in path.split(".") if path else ():
        value = len(value) if part == "#" else value[int(part)] if isinstance(value, list) else value[part]
    return value


def _damaged(text: str, steps: list[Any]) -> str:
    for step in steps:
        if isinstance(step, list):
            assert text.count(step[0]) == 1, f"{step[0]!r} occurs {text.count(step[0])} times"
            text = text.replace(*step)
        elif "every" in step:
            assert step["every"] in text, f"{step['every']!r} does not occur"
            text = text.replace(step["every"], step["by"])
        elif "cut" in step:
            assert text.count(step["cut"]) == 1, f"{step['cut']!r} occurs {text.count(step['cut'])} times"
            text = text[: text.index(step["cut"])]
        else:
            text = step["around"][0] + text + step["around"][1]
    return text


def _case(shape: str, row: dict[str, Any]) -> Case:
    of = row.get("of", shape if shape in VALID else "")
    reply = row["reply"] if "reply" in row else _damaged(VALID[of], row["damage"])
    context = ({} if row.get("alone") else context_of(of)) | {
        k: _resolved(v) for k, v in row.get("context", {}).items()
    }
    wanted: dict[str, Any] = {key: row[key] for key in ("same", "fields", "notes", "refused", "error") if key in row}
    return Case(
        row["name"],
        row["source"],
        shape,
        of,
        reply,
        context,
        wanted,
        repair=row.get("repair", ""),
        spares=row.get("spares", ""),
    )


def cases() -> Iterator[Case]:
    for path in sorted((HERE / "cases").glob("*.yaml")):
        for row in _load(f"cases/{path.name}"):
            yield _case(row.get("shape", path.stem), row)
