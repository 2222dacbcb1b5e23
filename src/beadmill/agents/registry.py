"""Agents by name. Built-ins and plugins come through the same door: a dotted path, loaded when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from beadmill.agents.contract import Agent
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes.loading import by_path
from beadmill.processes.sessions import Adapter

BUILTIN: Final[Mapping[str, str]] = {
    "codex": "beadmill.agents.codex:CodexAgent",
    "opencode": "beadmill.agents.opencode:OpenCodeAgent",
    "scripted": "beadmill.agents.scripted:ScriptedAgent",
}
GROUP: Final = "beadmill.agents"  # the entry-point group of plugins


def paths() -> Mapping[str, str]:
    """Every known agent; a plugin may not replace a built-in."""
    from importlib.metadata import entry_points

    return {**{e.name: e.value for e in entry_points(group=GROUP)}, **BUILTIN}


def load(name: str, options: Mapping[str, Json]) -> Agent:
    """Raises Unavailable when there is no such agent or it cannot be loaded."""
    known = BUILTIN if name in BUILTIN else paths()
    if name not in known:
        raise Unavailable(
            f"there is no agent {name!r}", code="NO_AGENT", next=f"choose one of: {', '.join(sorted(known))}"
        )
    return cast("Agent", by_path(known[name])(options))


def adapter(name: str, options: Mapping[str, Json]) -> Adapter:
    """What the runner needs to load the same agent. Raises Unavailable as ``load`` does.

    A plugin may import installed packages; what of the daemon's environment it needs, it says in ``env_names``.
    """
    agent = load(name, options)
    known = BUILTIN if name in BUILTIN else paths()
    env: tuple[str, ...] = getattr(agent, "env_names", ())
    idle: float | None = getattr(agent, "server_idle", None)
    read: tuple[Path, ...] = getattr(agent, "server_files", ())
    site = name not in BUILTIN
    return Adapter(known[name], options, env=env, site=site, server_idle=idle, server_files=read)
