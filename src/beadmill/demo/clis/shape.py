"""What the demo must know of a CLI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json


@dataclass(frozen=True, slots=True)
class DemoCli:
    """``title`` as in "with the real Codex CLI". ``options`` are the adapter's, for a home of the demo's own;
    ``point_at`` writes what makes the CLI ask the scripted model. The port is another at every start of the demo, so
    what it writes must be read at every start of a session."""

    title: str
    options: Callable[[Path], Mapping[str, Json]]
    point_at: Callable[[Path, ModelServer], None]
