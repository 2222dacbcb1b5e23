"""The acceptance lists name tests: each exists, and no point is without one."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.source import ROOT

LISTS = [ROOT / f"tests/acceptance/{name}.md" for name in ("planning", "execution")]
POINTS = [*map(str, (*range(1, 10), *range(21, 25)))]
LATER = [*map(str, (*range(10, 21), 25, 26))]
CASES = [f"C{n}" for n in (14, 29, *range(48, 55), *range(57, 62), 75, 76)]  # the public ones of these kinds


def named() -> dict[str, list[str]]:
    """By the number of the point or case, ``path::test``."""
    found: dict[str, list[str]] = {}
    for path in LISTS:
        sections = re.split(r"^##+ (C?\d+)\. ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        numbered = zip(sections[::2], sections[1::2], strict=True)
        found |= {number: re.findall(r"^- (\S+)$", body, re.MULTILINE) for number, body in numbered}
    return found


@cache
def defined_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_"))


def test_every_point_has_a_test_and_none_is_left_out() -> None:
    assert [number for number, tests in named().items() if tests] == [*POINTS, *CASES, *LATER]


@pytest.mark.parametrize("number", [*POINTS, *CASES, *LATER])
def test_the_named_tests_exist(number: str) -> None:
    missing = [one for one in named()[number] if one.partition("::")[2] not in defined_in(one.partition("::")[0])]
    assert missing == []
