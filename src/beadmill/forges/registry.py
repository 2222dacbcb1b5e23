"""Forges by name. Loaded when they are wanted, so that nobody pays for the others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from beadmill.errors import Unavailable
from beadmill.forges.contract import Forge

BUILTIN: Mapping[str, str] = {"local": "beadmill.forges.local:LocalForge"}


def load(name: str, repository: Path, *, remote: str = "origin") -> Forge:
    """The forge ``name`` for a checkout. Raises Unavailable for an unknown name."""
    path = BUILTIN.get(name)
    if path is None:
        known = ", ".join(sorted(BUILTIN))
        raise Unavailable(f"there is no forge {name!r}", code="NO_FORGE", next=f"Choose one of: {known}.")
    module, _, attribute = path.partition(":")
    made: Forge = getattr(import_module(module), attribute)(repository, remote=remote)
    return made
