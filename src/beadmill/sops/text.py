"""YAML text with places and comments: what is read back out is what a person wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from beadmill.domain.values import Json
from beadmill.errors import Invalid

MAX_BYTES = 256_000
MAX_NODES = 20_000  # aliases unfold: a small file must not become a large value


@dataclass(frozen=True, slots=True)
class Place:
    """1-based."""

    line: int
    column: int


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def parse(text: str, *, name: str) -> CommentedMap:
    """The tree with comments and places. Raises Invalid with the line and column of the trouble."""
    if len(text.encode()) > MAX_BYTES:
        raise Invalid(f"SOP {name}: larger than {MAX_BYTES} bytes", code="SOP_INVALID")
    try:
        tree = _yaml().load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        raise invalid(name, f"not YAML: {error.problem or error.context}", place) from error
    except (YAMLError, ValueError) as error:
        raise invalid(name, f"not YAML: {str(error).splitlines()[0]}", Place(1, 1)) from error
    if not isinstance(tree, CommentedMap):
        raise invalid(name, "an SOP is a mapping with title, start, nodes and edges", Place(1, 1))
    return tree


def invalid(name: str, message: str, place: Place) -> Invalid:
    return Invalid(
        f"SOP {name}, line {place.line}, column {place.column}: {message}",
        code="SOP_INVALID",
        details={"line": place.line, "column": place.column, "message": message},
        next="Correct the line and load it again.",
    )


def dump(tree: CommentedMap) -> str:
    out = StringIO()
    _yaml().dump(tree, out)
    return out.getvalue()


def edit(text: str, change: Callable[[CommentedMap], None], *, name: str = "") -> str:
    """``change`` alters the tree in place; comments, order and quotes of everything else stay."""
    tree = parse(text, name=name)
    change(tree)
    return dump(tree)


def plain(tree: Any) -> Json:
    """The tree as JSON values. Raises ValueError when it is no JSON value or unfolds beyond MAX_NODES."""
    return _Plain().value(tree)


class _Plain:
    def __init__(self) -> None:
        self.left = MAX_NODES

    def value(self, node: Any) -> Json:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {MAX_NODES} values")
        if isinstance(node, CommentedMap | CommentedSeq) and node.tag.value:
            raise ValueError(f"{node.tag.value} is not a plain value")
        if isinstance(node, CommentedMap):
            return {str(key): self.value(item) for key, item in node.items()}
        if isinstance(node, CommentedSeq):
            return [self.value(item) for item in node]
        for kind in (bool, int, float, str):
            if isinstance(node, kind):
                return kind(node)
        if node is None:
            return None
        raise ValueError(f"{type(node).__name__} is not a plain value")


def place(tree: Any, path: Sequence[str | int]) -> Place:
    """Where ``path`` is written; as deep as the tree goes, so a missing key points at its mapping."""
    found = Place(tree.lc.line + 1, tree.lc.col + 1)
    for part in path:
        try:
            line, column = tree.lc.key(part) if isinstance(tree, CommentedMap) else tree.lc.item(part)
            tree = tree[part]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
        found = Place(line + 1, column + 1)
    return found
