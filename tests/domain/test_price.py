"""Who says what a turn costs is pure data: patterns, parts, words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from beadmill.domain.ended import (
    CommandResult,
    Ended,
    Failed,
    Lapsed,
    Limited,
    Lost,
    Ran,
    Replied,
    SessionRef,
    Stopped,
    Why,
)
from beadmill.domain.money import said
from beadmill.domain.price import Rates, chosen, paid_for
from beadmill.domain.values import Usage

S = SessionRef("t")
LONG = timedelta(seconds=5)


def test_every_part_of_a_turn_has_its_own_rate() -> None:
    used = Usage(input=1_000_000, cached=2_000_000, output=500_000, reasoning=100_000)
    assert Rates(input=3, cached=0.5, output=10).cost(used) == 3 + 1 + 5


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("gpt-5",), "exact"),
        (("GPT-5",), "exact"),
        (("gpt-5-mini",), "minis"),
        (("gpt-4",), "all gpt"),
        (("codex/gpt-5", "gpt-5"), "codex"),
        (("opencode/anthropic/claude-x", "anthropic/claude-x"), "claude"),
        (("", "gpt-5"), "exact"),
        (("mistral",), None),
        ((), None),
    ],
)
def test_the_exact_name_goes_before_patterns_and_the_longest_pattern_first(
    names: tuple[str, ...], expected: str | None
) -> None:
    table = {"gpt-*": "all gpt", "gpt-5": "exact", "gpt-5*": "minis", "codex/*": "codex", "*claude*": "claude"}
    assert chosen(table, *names) == expected


@pytest.mark.parametrize(
    ("usd", "unpriced", "expected"),
    [
        (None, 0, ""),
        (0.0, 0, "$0.00"),
        (0.001, 0, "<$0.01"),
        (1.2, 3, "$1.20 + 3 unpriced turns"),
        (None, 1, "1 unpriced turn"),
    ],
)
def test_a_sum_says_what_it_does_not_hold(usd: float | None, unpriced: int, expected: str) -> None:
    assert said(usd, unpriced) == expected


@pytest.mark.parametrize(
    ("end", "paid"),
    [
        (Replied(session=S, text="ok", usage=Usage(input=5)), True),
        (Replied(session=S, text="ok"), True),
        (Lapsed(session=S, worked=LONG), True),
        (Stopped(session=S, worked=LONG), True),
        (Stopped(session=S), False),
        (Limited(session=S, worked=LONG), False),
        (Limited(session=S, worked=LONG, usage=Usage(output=1)), True),
        (Failed(session=S, why=Why.AUTH, worked=LONG), False),
        (Failed(session=S, why=Why.TRANSPORT, worked=LONG), True),
        (Lost(), True),
        (Ran((CommandResult("true", 0, 0.1),)), False),
    ],
)
def test_a_turn_is_paid_for_when_a_model_may_have_worked(end: Ended | Ran | Lost, paid: bool) -> None:
    assert paid_for(end) is paid
