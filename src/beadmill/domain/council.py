"""Order and count of an anonymous vote (reference looptroop-lifecycle §2.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

_MASK = (1 << 64) - 1


class Line(Protocol):
    """One score: which draft (seat position), how many points."""

    @property
    def draft(self) -> int: ...
    @property
    def total(self) -> int: ...


class Vote(Protocol):
    """One voter's ballot; artifacts.council.Ballot is one. Only ``completed`` ones count."""

    @property
    def voter(self) -> int: ...
    @property
    def outcome(self) -> str: ...
    @property
    def order(self) -> Sequence[int]: ...
    @property
    def scores(self) -> Sequence[Line]: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """``means`` by seat, only drafts somebody scored; ``tie_break`` is "", "implementer" or "earliest seat"."""

    means: dict[int, float]
    winner: int
    tie_break: str = ""


class NoWinner(ValueError):
    """No valid ballot scored any draft."""


def order(seed: str, seats: Sequence[int]) -> tuple[int, ...]:
    """Fisher-Yates over ``seats``, driven by ``seed`` alone, so an audit can draw it again anywhere."""
    drawn = list(seats)
    numbers = _splitmix64(seed)
    for last in range(len(drawn) - 1, 0, -1):
        pick = next(numbers) * (last + 1) >> 64
        drawn[last], drawn[pick] = drawn[pick], drawn[last]
    return tuple(drawn)


def _splitmix64(seed: str) -> Iterator[int]:
    # random.Random promises no stable shuffle between Python versions, and the order is kept for years.
    state = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def tally(ballots: Sequence[Vote], *, implementer: int = 0) -> Tally:
    """Highest mean of valid scores. With three drafts or more a voter's own draft does not count. A tie goes to the
    implementer's draft if it is among the tied, else to the earliest seat. Raises NoWinner."""
    valid = [ballot for ballot in ballots if ballot.outcome == "completed"]
    drafts = {seat for ballot in valid for seat in (*ballot.order, *(line.draft for line in ballot.scores))}
    points: dict[int, list[int]] = {}
    for ballot in valid:
        for line in ballot.scores:
            if line.draft != ballot.voter or len(drafts) < 3:
                points.setdefault(line.draft, []).append(line.total)
    if not points:
        raise NoWinner("no valid ballot scored a draft")
    # Division of whole numbers is correctly rounded: equal means tie exactly, however many votes each is made of.
    means = {seat: sum(given) / len(given) for seat, given in sorted(points.items())}
    best = max(means.values())
    tied = [seat for seat, mean in means.items() if mean == best]
    winner = implementer if implementer in tied else tied[0]
    reason = "" if len(tied) == 1 else "implementer" if winner == implementer else "earliest seat"
    return Tally(means, winner, reason)
