"""After which failures the same conversation may be told to go on (reference §1.4)."""

from __future__ import annotations

import pytest

from beadmill.agents import claude_errors, codex_stream, opencode_stream
from beadmill.agents._failures import continuable
from beadmill.domain.ended import Why

PASSING = (402, 408, 500, 502, 503, 504, 529)
FINAL = (400, 401, 403, 404, 413, 422)


@pytest.mark.parametrize("status", PASSING)
def test_a_status_that_may_pass_goes_on_in_every_agent(status: int) -> None:
    message = f"unexpected status {status}"
    found = (
        claude_errors.classify("it failed", status=status),
        codex_stream.classify(message),
        opencode_stream.classify("it failed", status=status),
    )
    assert [why is not None and continuable(why, status) for why in found] == [True, True, True]
    assert codex_stream.status_of(message) == status


@pytest.mark.parametrize("words", ["it failed", "the connection timed out", "the service is overloaded"])
@pytest.mark.parametrize("status", FINAL)
def test_a_status_that_says_no_never_goes_on_whatever_the_words(status: int, words: str) -> None:
    found = (
        claude_errors.classify(words, status=status),
        codex_stream.classify(f"{words}: unexpected status {status}"),
        opencode_stream.classify(words, status=status),
    )
    assert [why is not None and continuable(why, status) for why in found] == [False, False, False]


@pytest.mark.parametrize("status", [501, 505, 511])
def test_a_status_that_is_not_known_to_pass_does_not(status: int) -> None:
    assert not continuable(Why.OVERLOADED, status)


@pytest.mark.parametrize("words", ["insufficient_quota: check your billing details", "Your credit balance is too low"])
def test_a_used_up_balance_does_not_go_on_but_a_required_payment_may(words: str) -> None:
    why = claude_errors.classify(words)
    assert (why, continuable(Why.QUOTA), continuable(Why.QUOTA, 402)) == (Why.QUOTA, False, True)


@pytest.mark.parametrize(
    ("why", "goes_on"),
    [
        (Why.OVERLOADED, True),
        (Why.TRANSPORT, True),
        (Why.NO_RESULT, True),
        (Why.STEPS, True),
        (Why.AUTH, False),
        (Why.QUOTA, False),
        (Why.CONTEXT, False),
        (Why.TRUNCATED, False),
        (Why.REFUSED, False),
        (Why.BAD_MODEL, False),
        (Why.MISSING, False),
        (Why.LOST, False),
        (Why.INTERNAL, False),
    ],
)
def test_without_a_status_the_kind_of_failure_decides(why: Why, goes_on: bool) -> None:
    assert continuable(why) is goes_on


def test_a_limit_is_waited_for_and_is_no_failure() -> None:
    found = (claude_errors.classify("x", status=429), codex_stream.classify("unexpected status 429"))
    assert (*found, opencode_stream.classify("x", status=429)) == (None, None, None)
