"""How settings are typed on the command line."""

from __future__ import annotations

import pytest

from beadmill.cli.common import changes, overrides
from beadmill.errors import Invalid


def test_a_setting_is_a_number_a_word_or_json_and_nothing_inherits_again() -> None:
    typed = ["build.attempts=3", "sandbox=host", "questions.enabled=false", "budget.usd=", "budget.tokens=none"]
    assert changes(typed) == {
        "build.attempts": 3,
        "sandbox": "host",
        "questions.enabled": False,
        "budget.usd": None,
        "budget.tokens": "none",
    }


@pytest.mark.parametrize("typed", ["codex/gpt-5, codex", '["codex/gpt-5", "codex"]'])
def test_seats_are_written_with_commas_or_as_json(typed: str) -> None:
    assert changes([f"council.seats={typed}"]) == {"council.seats": ["codex/gpt-5", "codex"]}
    assert overrides([f"council.seats={typed}"]) == {"council": {"seats": ["codex/gpt-5", "codex"]}}


def test_a_word_without_a_value_is_refused() -> None:
    with pytest.raises(Invalid, match="is not of the form key=value"):
        changes(["build.attempts"])
