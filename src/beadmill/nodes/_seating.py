"""Who sits where while a run is executed."""

from __future__ import annotations

from beadmill.domain.values import Seat
from beadmill.errors import Blocked
from beadmill.settings import RunSettings, SeatConfig


def seat(config: SeatConfig) -> Seat:
    return Seat(config.agent, config.model, config.effort)


def implementer(settings: RunSettings) -> Seat:
    """The seat that works: the named one, else the first of the council. Raises Blocked("NO_IMPLEMENTER")."""
    config = settings.implementer or next(iter(settings.council.seats), None)
    if config is None:
        raise Blocked("NO_IMPLEMENTER", "no agent is set for this run", next="choose an implementer in the settings")
    return seat(config)


def reviewer(settings: RunSettings) -> Seat:
    """Another seat than the implementer's where there is one, so that nobody reviews their own work."""
    working = implementer(settings)
    others = [seat(config) for config in settings.council.seats if seat(config) != working]
    return next((other for other in others if other.model != working.model), others[0] if others else working)
