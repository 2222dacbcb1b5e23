"""Documents as YAML for people and models, and back from a person's edit."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from beadmill.artifacts.base import KINDS, Document
from beadmill.artifacts.problems import Checked, Path, Problem, accepted, fitted, meaning, of_tree, placed
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.tree import BadText, Work
from beadmill.artifacts.reading.tree import from_yaml as tree_from_yaml
from beadmill.errors import NotFound

_ODD = re.compile(
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)  # not as they are


class _Emitter(Emitter):
    """``\\u2029`` instead of ``\\P``: a reader that takes ``C:\\Program`` for a path needs no special case."""

    ESCAPE_REPLACEMENTS = {'"': '"', "\\": "\\", "\t": "t", "\n": "n", "\r": "r"}


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
    yaml.Emitter = _Emitter
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
    return accepted(check_yaml(kind, text))


def check_yaml(kind: str, text: str) -> Checked:
    """Every problem of a person's edit. Raises NotFound for an unknown kind."""
    model = KINDS.get(kind)
    if model is None:
        raise NotFound(f"there is no document kind {kind!r}")
    lines = text.split("\n")
    if conflicts := tuple(markers(lines)):
        return Checked(None, conflicts)
    tree = _tree(text, lines)
    if isinstance(tree, tuple):
        return Checked(None, tree)
    if not isinstance(tree, dict):
        return Checked(None, (Problem(f"a {kind} is a mapping", 1, 1, lines[0]),))
    document, found = fitted(model, tree)
    found += [*of_tree(tree), *(meaning(document) if document is not None else ())]
    return Checked(None if found else document, placed(found, _Places(text).of, lines) if found else ())


def markers(lines: Sequence[str]) -> Iterator[Problem]:
    """What git leaves in a file when a merge did not end."""
    inside = False
    for n, line in enumerate(lines, 1):
        inside = inside or line.startswith("<<<<<<< ")
        if line.startswith(("<<<<<<< ", ">>>>>>> ", "||||||| ")) or (inside and line.rstrip() == "======="):
            yield Problem("conflict marker of a merge: keep one side and delete the marker", n, 1, line)


def _tree(text: str, lines: Sequence[str]) -> Any:
    """The tree, or a tuple of problems. The parser stops at the first; each top-level part is asked for its own."""
    try:
        return tree_from_yaml(text, Work()).tree
    except BadText as error:
        first = _bad(error, text, lines, 0)
    starts = [n for n, line in enumerate(lines) if re.match(r"[A-Za-z_][\w-]*:(\s|$)", line)]
    parts = [(n, "\n".join(lines[n:end])) for n, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    found = [first, *(one for n, part in parts if (one := _part(part, lines, n)) is not None)]
    return tuple(sorted({p.line: p for p in reversed(found)}.values(), key=lambda p: p.line))


def _part(text: str, lines: Sequence[str], offset: int) -> Problem | None:
    try:
        tree_from_yaml(text, Work())
    except BadText as error:
        return _bad(error, text, lines, offset)
    return None


def _bad(error: BadText, text: str, lines: Sequence[str], offset: int) -> Problem:
    last = text.rstrip().count("\n")
    line, column = (min(error.began, last), 0) if error.cut else (error.line, error.column)
    reason = error.message + (", begun here" if error.cut else "")
    at = min(offset + line, len(lines) - 1)
    return Problem(reason, at + 1, column + 1, lines[at])


class _Places:
    """Where each part of a YAML text that could be read is written."""

    def __init__(self, text: str) -> None:
        self.root: Node | None = YAML(typ="safe", pure=True).compose(text)

    def of(self, path: Path) -> tuple[int, int]:
        """Line and column, from 1, of the deepest written part of ``path``."""
        node, mark = self.root, None
        for part in path:
            key, node = _below(node, part)
            if node is None:
                break
            mark = key.start_mark
        return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _below(node: Node | None, part: str | int) -> tuple[Any, Node | None]:
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if squash(str(key.value)) == squash(str(part)):
                return key, value
    return None, None
