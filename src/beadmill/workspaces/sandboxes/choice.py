"""Which sandbox a run gets. Decided when the run starts, frozen with it, and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from beadmill.errors import Unavailable
from beadmill.processes.box import Health, Sandbox
from beadmill.processes.loading import by_path

AUTO: Final = "auto"
PATHS: Final[Mapping[str, str]] = {
    "bubblewrap": "beadmill.workspaces.sandboxes.bubblewrap:BubblewrapSandbox",
    "host": "beadmill.workspaces.sandboxes.host:HostSandbox",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """``why`` says what stood in the way of a real sandbox; empty when nothing did, or when host was wished for."""

    name: str
    health: Health
    why: str = ""


def load(name: str) -> Sandbox:
    """Raises Unavailable for a name nobody has."""
    if name not in PATHS:
        raise Unavailable(f"there is no sandbox {name!r}", code="NO_SANDBOX", next=f"one of: {', '.join(PATHS)}")
    made: Sandbox = by_path(PATHS[name])()
    return made


async def choose(wish: str) -> Chosen:
    """``auto`` = bubblewrap where its probe works, else the host. A sandbox that was named is taken or refused: raises
    Unavailable with what its probe says."""
    if wish != AUTO:
        return await _named(wish)
    health = await load("bubblewrap").probe()
    if health.ok:
        return Chosen("bubblewrap", health)
    return Chosen("host", await load("host").probe(), health.message)


async def _named(name: str) -> Chosen:
    health = await load(name).probe()
    if not health.ok:
        raise Unavailable(
            health.message, code="SANDBOX_MISSING", kept="nothing was started", next="mend it, or set sandbox to auto"
        )
    return Chosen(name, health)
