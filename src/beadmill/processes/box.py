"""The sandbox contract. Implementations live in workspaces/sandboxes/; running lives once, in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from beadmill.processes.spec import Policy


@dataclass(frozen=True, slots=True)
class Health:
    """``ok`` False carries what is wrong and what to do in ``message``. ``detail`` is shown, never parsed."""

    ok: bool
    message: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to exec. ``pass_fds`` stay open in the child."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()


class Box(Protocol):
    isolates: bool  # False = what runs in it can reach whatever the user can
    foreign: bool  # True = its programs are not this machine's: only it can say whether one is there

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], program: Path | None = None) -> Launch:
        """Turns a wish into an argv that runs inside the box; starts nothing. ``program`` is an executable that the
        box must let in, with the package it belongs to. Raises OSError when there is no such program."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...


class Sandbox(Protocol):
    name: str
    networks: frozenset[str]  # the network policies it can hold

    async def probe(self, image: str = "") -> Health:
        """Can this sandbox work here, with this image where it takes one? Never raises, and ends in a bounded time."""
        ...

    async def open(self, workspace: Path, policy: Policy) -> Box:
        """Raises Unavailable when the sandbox cannot honour the policy."""
        ...

    async def sweep(self, workspace: Path, mark: str) -> tuple[str, ...]:
        """Ends what of a session is no process of this machine's that carries its ``mark``, when its runner is gone.
        Returns the names of what stays. Idempotent."""
        ...
