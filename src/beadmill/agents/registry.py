"""Agents by name. Built-ins and plugins come through the same door: a dotted path, loaded when it is needed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from beadmill.agents.contract import Agent
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes.loading import by_path
from beadmill.processes.sessions import Adapter

ACP: Final = "beadmill.agents.acp:AcpAgent"
GENERIC: Final = "acp"  # the ``adapter`` of an agent that the settings alone describe
BUILTIN: Final[Mapping[str, str]] = {
    "claude_acp": ACP,
    "claude_code": "beadmill.agents.claude_code:ClaudeCodeAgent",
    "codex": "beadmill.agents.codex:CodexAgent",
    "codex_acp": ACP,
    "copilot": ACP,
    "gemini": ACP,
    "kilo": ACP,
    "kimi": ACP,
    "opencode": "beadmill.agents.opencode:OpenCodeAgent",
    "opencode_acp": ACP,
    "qwen": ACP,
    "scripted": "beadmill.agents.scripted:ScriptedAgent",
}
GROUP: Final = "beadmill.agents"  # the entry-point group of plugins


def paths() -> Mapping[str, str]:
    """Every known agent; a plugin may not replace a built-in."""
    return {**_plugins(), **BUILTIN}


@functools.cache
def _plugins() -> Mapping[str, str]:
    """Of the packages that were installed when the process asked first: all of them are looked through."""
    from importlib.metadata import entry_points

    return {e.name: e.value for e in entry_points(group=GROUP)}


def names(options: Mapping[str, Mapping[str, Json]]) -> Sequence[str]:
    """Every known agent, and those the settings add with an ``adapter`` of their own."""
    return sorted({*paths(), *(name for name, own in options.items() if own.get("adapter"))})


def load(name: str, options: Mapping[str, Json]) -> Agent:
    """Raises Unavailable when there is no such agent or it cannot be loaded."""
    path = _path(name, options)
    return cast("Agent", by_path(path)(_options(name, path, options)))


def adapter(name: str, options: Mapping[str, Json]) -> Adapter:
    """What the runner needs to load the same agent. Raises Unavailable as ``load`` does.

    A plugin may import installed packages, and so does ACP; what of the daemon's environment an agent needs, it says
    in ``env_names``.
    """
    agent, path = load(name, options), _path(name, options)
    env: tuple[str, ...] = getattr(agent, "env_names", ())
    idle: float | None = getattr(agent, "server_idle", None)
    read: tuple[Path, ...] = getattr(agent, "server_files", ())
    site = path == ACP or path not in BUILTIN.values()
    return Adapter(path, _options(name, path, options), env=env, site=site, server_idle=idle, server_files=read)


def _path(name: str, options: Mapping[str, Json]) -> str:
    if name in BUILTIN:
        return BUILTIN[name]
    known = paths()
    base = str(options.get("adapter") or "")
    if name not in known and (base == GENERIC or BUILTIN.get(base) == ACP):
        return ACP
    if name not in known:
        raise Unavailable(
            f"there is no agent {name!r}" + (f" with the adapter {base!r}" if base else ""),
            code="NO_AGENT",
            next=f"choose one of: {', '.join(sorted(known))}",
        )
    return known[name]


def _options(name: str, path: str, options: Mapping[str, Json]) -> Mapping[str, Json]:
    """One class stands behind many names: it is told which."""
    return {**options, "name": name} if path == ACP else options
