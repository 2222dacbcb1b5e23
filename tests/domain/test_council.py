"""Orders and counts of the anonymous vote."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beadmill.domain.council import NoWinner, Tally, order, tally


@dataclass(frozen=True)
class Line:
    draft: int
    total: int


@dataclass(frozen=True)
class Vote:
    voter: int
    scores: tuple[Line, ...]
    outcome: str = "completed"
    order: tuple[int, ...] = ()


def vote(voter: int, totals: dict[int, int], *, outcome: str = "completed") -> Vote:
    return Vote(voter, tuple(Line(*pair) for pair in totals.items()), outcome, tuple(totals))


def test_a_seed_draws_the_same_order_for_ever() -> None:
    assert order("b5b8c6a4", range(6)) == (1, 4, 0, 2, 5, 3)
    assert order("", [7]) == (7,)
    assert order("x", []) == ()


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.text(), st.lists(st.integers(0, 20), unique=True))
def test_an_order_holds_every_seat_once(seed: str, seats: list[int]) -> None:
    assert sorted(order(seed, seats)) == sorted(seats)


def test_every_order_is_about_equally_likely() -> None:
    drawn = [order(f"seed {n}", (0, 1, 2)) for n in range(6000)]
    counts = [drawn.count(each) for each in set(drawn)]
    assert len(counts) == 6
    assert 900 < min(counts) <= max(counts) < 1100


def test_the_highest_mean_wins_not_the_highest_sum() -> None:
    ballots = [vote(0, {1: 60, 2: 90}), vote(1, {0: 50, 2: 80}), vote(2, {0: 70, 1: 95}), vote(3, {0: 60, 1: 95})]
    assert tally(ballots) == Tally({0: 60.0, 1: 250 / 3, 2: 85.0}, 2)


def test_with_three_drafts_a_voter_does_not_score_its_own() -> None:
    ballots = [vote(0, {0: 100, 1: 50, 2: 40}), vote(1, {0: 10, 1: 100, 2: 60})]
    assert tally(ballots) == Tally({0: 10.0, 1: 50.0, 2: 50.0}, 1, "earliest seat")


def test_with_two_drafts_every_score_counts() -> None:
    assert tally([vote(0, {0: 90, 1: 50}), vote(1, {0: 40, 1: 60})]) == Tally({0: 65.0, 1: 55.0}, 0)


def test_drafts_that_were_only_shown_count_as_drafts() -> None:
    ballots = [Vote(0, (Line(0, 90), Line(1, 20)), order=(0, 1, 2))]
    assert tally(ballots) == Tally({1: 20.0}, 1)


def test_a_tie_goes_to_the_implementer_if_it_is_among_the_tied() -> None:
    ballots = [vote(0, {1: 50, 2: 50}), vote(3, {1: 50, 2: 50, 0: 10})]
    assert tally(ballots, implementer=2) == Tally({0: 10.0, 1: 50.0, 2: 50.0}, 2, "implementer")
    assert tally(ballots, implementer=0) == Tally({0: 10.0, 1: 50.0, 2: 50.0}, 1, "earliest seat")


def test_equal_means_of_different_counts_tie_exactly() -> None:
    ballots = [vote(3, {1: 1, 2: 1}), vote(4, {1: 0, 2: 0}), vote(5, {1: 0, 2: 0})]
    six = [vote(n, {2: 1 if n < 7 else 0}) for n in range(6, 9)]
    assert tally([*ballots, *six], implementer=2).tie_break == "implementer"


def test_only_completed_ballots_count_and_an_unscored_draft_cannot_win() -> None:
    ballots = [vote(0, {1: 10}), vote(1, {0: 100}, outcome="timed_out")]
    assert tally(ballots) == Tally({1: 10.0}, 1)


def test_without_a_valid_score_there_is_no_winner() -> None:
    with pytest.raises(NoWinner, match="no valid ballot"):
        tally([vote(0, {1: 10}, outcome="invalid_output")])
