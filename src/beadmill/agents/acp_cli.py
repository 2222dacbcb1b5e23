"""CLIs that speak the Agent Client Protocol, as data: ``cli/<agent>.toml`` and the settings. Standard library only."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from beadmill.domain.values import Json

TABLE: Final = Path(__file__).parent / "cli"
GENERIC: Final = "acp"  # the ``adapter`` of a CLI that the settings alone describe
# What the usage of an answer means: this turn · all turns of this process · the last step of this turn · nothing is told.
Told: TypeAlias = Literal["turn", "process", "last_step", "none"]


@dataclass(frozen=True, slots=True)
class Cli:
    """One CLI. Paths are relative to the user's home; ``limited_…`` is what a seat that may not write gets on top."""

    name: str
    title: str = ""
    argv: tuple[str, ...] = ()  # of its ACP mode
    version_argv: tuple[str, ...] = ()  # empty = it cannot tell
    package: str = ""  # on npm
    native: tuple[str, ...] = ()  # globs below node_modules: the binary behind npm's script
    sign_in: str = ""  # what a person runs to sign in
    keys: tuple[str, ...] = ()  # variables of the daemon that are handed on
    signs_in: tuple[str, ...] = ()  # those of them that are a sign-in
    auth: tuple[str, ...] = ()  # of its sign-in, shared with the user: files, since what lies in a folder may be run
    copied: tuple[str, ...] = ()  # files of its configuration: a session has a copy
    signed_in_by: tuple[str, ...] = ()  # of both, those that are there only when it is signed in
    env: Mapping[str, str] = field(default_factory=dict)  # {home} is the user's
    limited_env: Mapping[str, str] = field(default_factory=dict)
    limited_argv: tuple[str, ...] = ()
    model_argv: tuple[str, ...] = ()  # with {model}; empty = by the session's own options
    effort_argv: tuple[str, ...] = ()  # with {effort}; empty = by the session's own options
    efforts: tuple[str, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)  # read, write: the session mode of each
    resume: bool = True
    usage: Told = "none"
    cost: bool = False
    error: str = ""  # regex over a message: the provider failed with group 1
    noise: str = ""  # regex over a message: not the model's words; group 1 is shown as a warning
    trailer: str = ""  # regex behind a command's output; group 1 is its exit code
    runs_plugins: bool = False  # of the repository, as OpenCode does, whatever its switches say
    trust_project: bool = False  # and a person trusts them
    verified: str = ""  # the version that the tests drive; empty = none


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in TABLE.glob("*.toml")))


def describe(name: str, options: Mapping[str, Json]) -> Cli:
    """The table's entry, with whatever the options say instead; ``env`` is merged.

    ``adapter`` names the entry to start from when it is not the agent's own name.
    """
    entry = _entry(str(options.get("adapter") or name))
    known = {f.name for f in fields(Cli)} - {"name"}
    made = {**entry, **{k: v for k, v in options.items() if k in known}}
    made["env"] = {**entry.get("env", {}), **(options.get("env") or {})}
    values: Mapping[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in made.items()}
    return Cli(name, **values)


@functools.cache
def _entry(name: str) -> Mapping[str, Json]:
    """Ours, as packaged: it does not change while we run."""
    path = TABLE / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if name != GENERIC and path.exists() else {}
