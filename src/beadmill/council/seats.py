"""Who sits where. A seat is known by its position; two seats may be the same model."""

from __future__ import annotations

from beadmill.domain.values import Seat
from beadmill.errors import Blocked
from beadmill.settings import RunSettings, SeatConfig

MOST = 10


def seats(settings: RunSettings) -> tuple[Seat, ...]:
    """The council in its order; the implementer is always first (reference §2.2). Raises Blocked NO_SEATS."""
    council = list(settings.council.seats)
    first = settings.implementer
    if first is not None:
        council = [first, *_without(council, first)]
    if not council:
        raise Blocked(
            "NO_SEATS",
            "no agent is chosen for this run",
            next="choose at least one seat in the settings and start again",
        )
    return tuple(Seat(c.agent, c.model, c.effort) for c in council[:MOST])


def implementer(settings: RunSettings) -> Seat:
    """The seat that does every single-agent step."""
    return seats(settings)[0]


def _without(council: list[SeatConfig], first: SeatConfig) -> list[SeatConfig]:
    """One appearance of the implementer is its own seat; a second one is another seat of the same model."""
    return [c for n, c in enumerate(council) if c != first or first in council[:n]]
