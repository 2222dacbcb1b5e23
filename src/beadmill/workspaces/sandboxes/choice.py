"""Which sandbox a run gets. Decided when the run starts, frozen with it, and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from beadmill.errors import Unavailable
from beadmill.processes.box import Health, Sandbox
from beadmill.processes.loading import by_path

AUTO: Final = "auto"
PATHS: Final[Mapping[str, str]] = {
    "bubblewrap": "beadmill.workspaces.sandboxes.bubblewrap:BubblewrapSandbox",
    "container": "beadmill.workspaces.sandboxes.container:ContainerSandbox",
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


async def choose(wish: str, network: str = "on", *, image: str = "") -> Chosen:
    """``auto`` = bubblewrap where its probe works, else a container, else the host. A sandbox that was named is taken or
    refused: raises Unavailable with what its probe says, and when the network policy cannot be held."""
    chosen = await _automatic(image) if wish == AUTO else await _named(wish, image)
    if network not in load(chosen.name).networks:
        raise Unavailable(
            f"the sandbox {chosen.name} cannot hold the network policy {network!r}. {chosen.why}".rstrip(),
            code="SANDBOX_POLICY",
            kept="nothing was started",
            next="set network to on, or make bubblewrap or a container work",
        )
    return chosen


async def _automatic(image: str) -> Chosen:
    against: list[str] = []
    for name in ("bubblewrap", "container"):
        health = await load(name).probe(image)
        if health.ok:
            return Chosen(name, health)
        against.append(health.message)
    return Chosen("host", await load("host").probe(), "; ".join(against))


async def _named(name: str, image: str) -> Chosen:
    health = await load(name).probe(image)
    if not health.ok:
        raise Unavailable(
            health.message, code="SANDBOX_MISSING", kept="nothing was started", next="mend it, or set sandbox to auto"
        )
    return Chosen(name, health)


class Choose(Protocol):
    """What an operation asks before a run starts."""

    async def __call__(self, wish: str, network: str = "on", *, image: str = "") -> Chosen: ...
