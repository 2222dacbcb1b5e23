"""What a turn costs, and by whose word. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from beadmill.domain.ended import Ended, Failed, Limited, Lost, Ran, Stopped, Why
from beadmill.domain.values import Usage

T = TypeVar("T")
MILLION: Final = 1_000_000
# The provider turned the turn away, so there is nothing to pay for.
_TURNED_AWAY: Final = frozenset({Why.AUTH, Why.QUOTA, Why.BAD_MODEL, Why.MISSING})


class Source(StrEnum):
    """Who said what a turn costs."""

    NOTHING = ""  # there was nothing to pay for
    REPORTED = "reported"  # the CLI
    PRICED = "priced"  # the table of prices that ships with Beadmill
    OVERRIDE = "override"  # the settings
    UNPRICED = "unpriced"  # nobody: the model has no price, or the CLI did not say what it used


@dataclass(frozen=True, slots=True)
class Price:
    """``usd`` None = unknown, never zero by guess. ``model`` as far as it is known."""

    usd: float | None = None
    source: Source = Source.NOTHING
    model: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        parts = usage.input * self.input + usage.cached * self.cached + usage.output * self.output
        return parts / MILLION


def paid_for(end: Ended | Ran | Lost) -> bool:
    """False when no model worked: commands, a turn that never began or was turned away."""
    if isinstance(end, Ran):
        return False
    if isinstance(end, Lost):
        return True
    if end.usage.tokens or end.usage.cost_usd:
        return True
    turned_away = isinstance(end, Limited) or (isinstance(end, Failed) and end.why in _TURNED_AWAY)
    return not turned_away and not (isinstance(end, Stopped) and not end.worked)


def chosen(table: Mapping[str, T], *names: str) -> T | None:
    """The entry for the first of ``names`` that has one: its exact name before patterns, the longest pattern first."""
    known = {pattern.lower(): value for pattern, value in table.items()}
    for name in (name.lower() for name in names if name):
        if name in known:
            return known[name]
        fitting = [pattern for pattern in known if fnmatchcase(name, pattern)]
        if fitting:
            return known[max(fitting, key=len)]
    return None
