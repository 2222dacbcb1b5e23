"""Small helpers for reading context values and trees, with the types that come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.shape import Context
from beadmill.artifacts.reading.tree import Tree, Unfit

V = TypeVar("V")
_OCTAL = re.compile(r"\\([0-3][0-7]{2})")  # one byte of a path in Git's output


def given(context: Context, key: str, kind: type[V]) -> V | None:
    """The context value when it is there and of that type. A wrong type is the caller's bug, so it is TypeError."""
    value = context.get(key)
    if value is None:
        return None
    if not isinstance(value, kind):
        raise TypeError(f"context {key!r} must be {kind.__name__}, not {type(value).__name__}")
    return value


def names(context: Context, key: str) -> tuple[str, ...] | None:
    """A collection of strings from the context."""
    value = context.get(key)
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"context {key!r} must be a collection of strings")
    return tuple(str(item) for item in value)


def count(context: Context, key: str) -> int | None:
    return given(context, key, int)


def rows(tree: Tree, key: str) -> list[dict[str, Tree]]:
    """The mappings in the list ``tree[key]``; anything else in it is left to validation."""
    value = tree.get(key) if isinstance(tree, Mapping) else None
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def twice(items: Sequence[str]) -> tuple[str, ...]:
    """What occurs more than once, in order."""
    return tuple(dict.fromkeys(item for n, item in enumerate(items) if item in items[:n]))


def need(wrong: Sequence[str]) -> None:
    """Raises Unfit with one line per problem, twelve at most."""
    if wrong:
        more = [f"… and {len(wrong) - 12} more"] if len(wrong) > 12 else []
        raise Unfit("\n".join([*wrong[:12], *more]))


def outside(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths that are not inside the repository, or are Git's own."""
    bad = []
    for path in paths:
        parts = PurePosixPath(path).parts
        leaves = not path.strip() or path.startswith(("/", "~")) or ".." in parts or re.match(r"^[A-Za-z]:[\\/]", path)
        if leaves or "\\" in path or ".git" in parts:
            bad.append(path)
    return tuple(bad)


def plain_paths(row: dict[str, Tree], keys: Sequence[str], notes: Notes) -> None:
    """Paths as Git quotes them (``"caf\\303\\251.py"``) become the paths they stand for."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str):
            row[key] = _unquoted(value, notes)
        elif isinstance(value, list):
            row[key] = [_unquoted(one, notes) if isinstance(one, str) else one for one in value]


def _unquoted(path: str, notes: Notes) -> str:
    if not _OCTAL.search(path):
        return path
    try:
        plain = _OCTAL.sub(lambda found: chr(int(found[1], 8)), path.strip('"')).encode("latin-1").decode()
    except ValueError:  # other letters beside the octal ones, or bytes that are no UTF-8
        return path
    notes.cleaned("path as Git quotes it written plainly", plain)
    return plain
