"""docs/cases.md has a row for every public case, with a test that exists or a reason."""

from __future__ import annotations

import re

import pytest

from tests.house.source import ROOT
from tests.house.test_acceptance import defined_in

PAGE = (ROOT / "docs/cases.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (C\d\d) \|(.*)\|$", PAGE, re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_case_has_exactly_one_row() -> None:
    assert [case for case, _ in ROWS] == [f"C{n:02}" for n in range(1, 91)]


@pytest.mark.parametrize(("case", "row"), ROWS, ids=[case for case, _ in ROWS])
def test_a_case_has_tests_that_exist_or_a_reason(case: str, row: str) -> None:
    shown = row.rsplit("|", maxsplit=1)[-1].strip()
    missing = [f"{path}::{name}" for path, name in TEST.findall(shown) if name not in defined_in(path)]
    assert (missing, bool(shown)) == ([], True)
    assert ("::" in shown) == bool(TEST.findall(shown))
    if "see below" in row:
        assert f"**{case}**" in PAGE
