"""The comparison behind the kills can fail: it sees what is too many, too few, other bytes, and what is left over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deliver.reckoning import TABLES, Reckoning, Rows, agreed, damage, differences

NAMES = (*TABLES, "said by a session", "ref", "merged tree", "merge")


def reckoning(*steps: str, wrong: tuple[str, ...] = (), **measured: str) -> Reckoning:
    rows: dict[str, Rows] = {**{name: Rows() for name in NAMES}, "step": Rows((step,) for step in steps)}
    return Reckoning(rows, {(name,): value for name, value in measured.items()}, wrong)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (reckoning("a", "b", bill="1"), []),
        (reckoning("a", "b", "b", bill="1"), ["repeated: step ('b',) × 1"]),
        (reckoning("a", bill="1"), ["lost: step ('b',) × 1"]),
        (reckoning("a", "b", bill="2"), ["repeated: ('bill',) is 2, not 1"]),
        (reckoning("a", "b", bill="1", wrong=("orphaned: a process",)), ["orphaned: a process"]),
    ],
)
def test_a_disturbed_run_is_compared_with_an_undisturbed_one(seen: Reckoning, said: list[str]) -> None:
    assert differences(reckoning("a", "b", bill="1"), seen) == said


def test_what_two_undisturbed_runs_disagree_on_is_asked_of_nobody() -> None:
    same = agreed(reckoning("a", bill="1", bytes="x"), reckoning("a", bill="1", bytes="y"))
    assert dict(same.measured) == {("bill",): "1"}


def test_two_undisturbed_runs_that_did_different_things_are_no_reference() -> None:
    with pytest.raises(AssertionError, match="lost: step"):
        agreed(reckoning("a", "b"), reckoning("a"))


def test_a_session_that_was_hit_may_cost_a_try_and_nothing_else() -> None:
    seen = reckoning("a", "again")
    seen.exact["attempt"].update([("bead", 1, "failed", 1), ("bead", 2, "done", 1)])
    assert damage(reckoning("a"), seen, 1) == []
    seen.exact["attempt"].update([("bead", 3, "done", 1)])
    assert damage(reckoning("a"), seen, 1) == ["repeated: bead was done 2 times"]
    assert damage(reckoning("a"), seen, 0)[-1] == "repeated: 1 tries failed, 0 do undisturbed"


def test_a_list_of_crash_points_kills_at_the_first_pass_of_each_and_notes_what_is_reached(tmp_path: Path) -> None:
    points = tmp_path / "points"
    points.write_text("a\nb")
    code = "from beadmill.crashpoints import reach\nfor name in 'xaab': reach(name)"
    env = {**os.environ, "BEADMILL_TESTING": "1", "BEADMILL_CRASH": f"each:{points}"}
    codes = [subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode for _ in range(3)]
    assert (codes, points.with_name("points.died").read_text()) == ([-9, -9, 0], "a\nb\n")
    assert set(points.with_name("points.reached").read_text().split()) == {"x", "a", "b"}
