"""Tests that share something run on one worker."""

from __future__ import annotations

import pytest

from tests.house.source import ROOT
from tests.together import TOGETHER, group


@pytest.mark.parametrize("start", TOGETHER)
def test_every_group_names_something_that_is_there(start: str) -> None:
    path, _, name = start.partition("::")
    assert (ROOT / path).exists()
    assert not name or name in (ROOT / path).read_text()


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("tests/domain/test_bead.py::test_x[a-b]", "tests/domain/test_bead.py::test_x[a-b]"),
        ("tests/cli/test_daemon.py::test_x", "tests/cli/test_daemon.py"),
        ("tests/demo/test_demo_run.py::TestScripted::test_x", "tests/demo/test_demo_run.py::TestScripted"),
        ("tests/agents/test_conformance.py::test_x[opencode-none]", "opencode"),
        (
            "tests/agents/test_conformance.py::test_x[opencode_acp]",
            "tests/agents/test_conformance.py::test_x[opencode_acp]",
        ),
    ],
)
def test_a_test_goes_with_its_group_and_all_others_alone(test: str, wanted: str) -> None:
    assert group(test) == wanted


def test_no_two_test_modules_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "corpus" not in path.parts]
    assert sorted(names) == sorted(set(names))  # pytest imports them by their bare names
