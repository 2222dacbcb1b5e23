"""The product's modules as text and syntax trees, for the rules of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "beadmill"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """``name`` is the path below the package: ``store/db.py``."""

    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    def within(self, *places: str) -> bool:
        """Is it one of these files, or below one of these folders (``git/``)?"""
        return any(self.name == place or (place.endswith("/") and self.name.startswith(place)) for place in places)


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def modules() -> tuple[Module, ...]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple(Module(path.relative_to(PACKAGE).as_posix(), path.read_text()) for path in paths)


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of names and attributes; a call or anything else in between counts as ``?``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
