"""The fold of plan and ledger, and the checks of the graph."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from beadmill.domain.bead import Attempt, BeadState, check_graph, runnable, status, undone
from beadmill.domain.machine import AttemptState

DONE, FAILED, OPEN, REPLACED = AttemptState.DONE, AttemptState.FAILED, AttemptState.OPEN, AttemptState.REPLACED


@dataclass(frozen=True)
class B:
    id: str
    blocked_by: tuple[str, ...] = ()
    priority: int = 1
    sha: str = "s1"
    skipped: bool = False


def tries(bead: str, *states: AttemptState, sha: str = "s1") -> list[Attempt]:
    return [Attempt(bead, n, sha, state) for n, state in enumerate(states, 1)]


def state_of(bead: B, *attempts: Attempt) -> BeadState:
    return status([bead], attempts)["a"]


def test_a_bead_nobody_tried_is_pending() -> None:
    assert state_of(B("a")) is BeadState.PENDING


def test_an_open_attempt_means_in_progress() -> None:
    assert state_of(B("a"), *tries("a", FAILED, OPEN)) is BeadState.IN_PROGRESS


def test_a_done_attempt_means_done_whatever_came_before() -> None:
    assert state_of(B("a"), *tries("a", FAILED, DONE)) is BeadState.DONE


def test_a_failed_last_attempt_means_error() -> None:
    assert state_of(B("a"), *reversed(tries("a", REPLACED, FAILED))) is BeadState.ERROR


def test_a_replaced_attempt_leaves_the_bead_pending() -> None:
    assert state_of(B("a"), *tries("a", FAILED, REPLACED)) is BeadState.PENDING


def test_attempts_at_an_older_version_of_the_bead_do_not_count() -> None:
    assert state_of(B("a", sha="s2"), *tries("a", DONE)) is BeadState.PENDING


def test_attempts_at_another_bead_do_not_count() -> None:
    assert state_of(B("a"), *tries("b", DONE)) is BeadState.PENDING


def test_a_skipped_bead_counts_as_done() -> None:
    plan = [B("a", skipped=True), B("b", ("a",))]
    assert [b.id for b in runnable(plan, [])] == ["b"]
    assert undone(plan, []) == ("b",)


def test_runnable_waits_for_blockers_and_goes_by_priority() -> None:
    plan = [B("a"), B("b", ("a",), 2), B("c", (), 3), B("d", (), 1)]
    assert [b.id for b in runnable(plan, [])] == ["a", "d", "c"]
    assert [b.id for b in runnable(plan, tries("a", DONE))] == ["d", "b", "c"]


def test_a_bead_in_error_is_found_again_by_a_retry() -> None:
    assert [b.id for b in runnable([B("a")], tries("a", FAILED))] == ["a"]


def test_a_bead_in_progress_is_runnable_so_it_is_re_entered() -> None:
    assert [b.id for b in runnable([B("a"), B("b", ("a",))], tries("a", OPEN))] == ["a"]


def test_a_blocker_that_does_not_exist_blocks_for_ever_and_is_told() -> None:
    plan = [B("a", ("ghost",))]
    assert runnable(plan, []) == []
    assert check_graph(plan) == ("a: is blocked by ghost, which is not in the plan",)


def test_a_sound_graph_has_no_problem() -> None:
    plan = [B("a"), B("b", ("a",)), B("c", ("a",)), B("d", ("b", "c", "b"))]
    assert check_graph(plan) == ()


def test_a_self_edge_is_told_once() -> None:
    assert check_graph([B("a", ("a", "a"))]) == ("a: is blocked by itself",)


def test_c28_a_duplicate_id_is_told() -> None:
    assert check_graph([B("a"), B("a")]) == ("a: this id is used twice",)


def test_a_cycle_is_told_with_its_path() -> None:
    plan = [B("x", ("a",)), B("a", ("b",)), B("b", ("c", "c")), B("c", ("a",))]
    assert check_graph(plan) == ("cycle: a -> b -> c -> a",)


def test_a_chain_of_five_thousand_beads_is_checked() -> None:
    plan = [B("0"), *(B(str(n), (str(n - 1),)) for n in range(1, 5000))]
    assert check_graph(list(reversed(plan))) == ()


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=1, max_size=6))
def test_a_plan_without_problems_is_worked_off_and_one_with_a_cycle_is_not(blockers: list[set[int]]) -> None:
    plan = [B(str(n), tuple(str(o) for o in sorted(others))) for n, others in enumerate(blockers)]
    attempts: list[Attempt] = []
    while ready := runnable(plan, attempts):
        attempts += tries(ready[0].id, DONE)
    assert (undone(plan, attempts) == ()) == (check_graph(plan) == ())
