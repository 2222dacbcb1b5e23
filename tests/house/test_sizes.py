"""Modules and functions stay small enough to be read at once."""

from __future__ import annotations

from functools import cache
from statistics import median

from tests.house.source import functions, lines, modules

MIGRATIONS = "store/migrations/versions/"  # written once by a tool, read in one direction
WRITTEN = [module for module in modules() if not module.within(MIGRATIONS)]


@cache
def lengths() -> list[tuple[str, int]]:
    return [(f"{module.name}:{f.name}", lines(f)) for module in WRITTEN for f in functions(module.tree)]


def test_no_module_is_longer_than_400_lines() -> None:
    assert [module.name for module in WRITTEN if module.text.count("\n") > 400] == []


def test_no_function_is_longer_than_60_lines() -> None:
    assert [(name, length) for name, length in lengths() if length > 60] == []


def test_the_median_function_is_10_lines_or_shorter() -> None:
    assert median(length for _, length in lengths()) <= 10
