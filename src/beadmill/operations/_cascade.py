"""The layers that a setting of a run comes from: built-in, installation, project, ticket. Later ones win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from beadmill.domain.values import Json
from beadmill.leaves import flat, live_part
from beadmill.profile import Profile
from beadmill.settings import RunSettings
from beadmill.store import tables as t
from beadmill.store.journal.visits import Live


@dataclass(frozen=True, slots=True)
class Cascade:
    """``layers``: name and values, lowest first, without the built-in defaults below them all."""

    layers: tuple[tuple[str, Mapping[str, Any]], ...]

    @classmethod
    def of(cls, profile: Profile, project: Mapping[str, Any] | None, ticket: Mapping[str, Any] | None) -> Cascade:
        own = (("project", project), ("ticket", ticket))
        return cls((*profile.layers(), *((name, layer) for name, layer in own if layer is not None)))

    def settings(self) -> RunSettings:
        """Raises pydantic.ValidationError."""
        return RunSettings().overlaid(*(dict(layer) for _, layer in self.layers))

    def by_layer(self) -> dict[str, dict[str, Any]]:
        """Per leaf the value that each layer has for it, as the run would read it; ``default`` has all."""
        plain = RunSettings()
        out = {path: {"default": value} for path, value in flat(plain.model_dump(mode="json")).items()}
        for name, layer in self.layers:
            read = flat(_alone(plain, layer).model_dump(mode="json"))
            for path in flat(layer):
                out[path][name] = read[path]
        return out


def _alone(plain: RunSettings, layer: Mapping[str, Any]) -> RunSettings:
    """A layer that no longer is valid is shown as far as it goes: not at all."""
    try:
        return plain.overlaid(dict(layer))
    except ValidationError:
        return plain


def live_settings(profile: Profile) -> Live:
    """What the engine reads at a boundary: the settings of a run's ticket that are not frozen, as they are now. A run
    without a ticket, and layers that have become invalid, change nothing: None."""

    def live(conn: Connection, run: str) -> dict[str, Json] | None:
        query = (
            sa.select(t.projects.c.overrides.label("project"), t.tickets.c.overrides.label("ticket"))
            .join(t.tickets, t.tickets.c.project_id == t.projects.c.id)
            .join(t.runs, t.runs.c.ticket_id == t.tickets.c.id)
        )
        row = conn.execute(query.where(t.runs.c.id == run)).first()
        if row is None:
            return None
        try:
            return live_part(Cascade.of(profile, row.project, row.ticket).settings())
        except ValidationError:
            return None

    return live
