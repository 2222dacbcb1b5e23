"""Documents as YAML for people and models, and back from a person's edit."""

from __future__ import annotations

import io
import re
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from beadmill.artifacts.base import KINDS, Document
from beadmill.artifacts.reading.fit import Fit
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.pipeline import told
from beadmill.artifacts.reading.tree import BadText, Work
from beadmill.artifacts.reading.tree import from_yaml as tree_from_yaml
from beadmill.errors import NotFound, Unprocessable

_ODD = re.compile(
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)  # not as they are


class _Representer(SafeRepresenter):
    """Strings with line breaks become blocks, as long as a block can hold them exactly."""


def _string(representer: SafeRepresenter, value: str) -> ScalarNode:
    lines = value.split("\n")
    block = len(lines) > 1 and lines[0][:1] not in ("", " ", "\t") and all(x == x.rstrip() for x in lines)
    style = '"' if _ODD.search(value) else "|" if block else None
    return representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Representer.add_representer(str, _string)


def to_yaml(document: Document) -> str:
    """Keys in the order of the model, multi-line strings as blocks, no aliases."""
    return dump(document.model_dump(mode="json"))


def dump(value: Any) -> str:
    """Any JSON value as block YAML."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda _data: True
    yaml.representer.sort_base_mapping_type_on_output = False
    out = io.StringIO()
    yaml.dump(value, out)
    return out.getvalue()


def from_yaml(kind: str, text: str) -> Document:
    """A person's edit of a ``kind``. Raises NotFound for an unknown kind, Unprocessable with line and column (from 1)."""
    model = KINDS.get(kind)
    if model is None:
        raise NotFound(f"there is no document kind {kind!r}")
    _refuse_conflict_markers(text)
    try:
        tree = tree_from_yaml(text, Work()).tree
    except BadText as error:
        last = text.rstrip().count("\n")
        line, column = (min(error.began, last), 0) if error.cut else (error.line, error.column)
        raise _wrong(error.message + (", begun here" if error.cut else ""), line, column) from error
    if not isinstance(tree, dict):
        raise _wrong(f"a {kind} is a mapping", 0, 0)
    notes = Notes()
    fitted = Fit({}, notes).model(model, tree)
    lost = [note.detail for note in notes.all() if note.category == "dropped"]
    if lost:
        line = _line_of(text, lost[0])
        raise _wrong(f"unknown key {lost[0]}", line, 0)
    try:
        return model.model_validate(fitted)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["loc"]
        raise _wrong(told(error), _line_of(text, ".".join(map(str, first))), 0) from error


def _refuse_conflict_markers(text: str) -> None:
    for n, line in enumerate(text.splitlines()):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise _wrong("conflict markers of a merge", n, 0)


def _line_of(text: str, path: str) -> int:
    """The line of the deepest written key of a dotted path: each key is looked for after its parent."""
    at = 0
    lines = text.splitlines()
    for part in (p for p in path.split(".") if not p.isdecimal()):
        found = next((n for n in range(at, len(lines)) if lines[n].strip(" -\"'").startswith(part)), None)
        at = at if found is None else found
    return at


def _wrong(message: str, line: int, column: int) -> Unprocessable:
    return Unprocessable(
        f"line {line + 1}, column {column + 1}: {message}",
        code="DOCUMENT_INVALID",
        details={"line": line + 1, "column": column + 1},
        kept="The stored document is unchanged.",
        next="Correct the line and save again.",
    )
