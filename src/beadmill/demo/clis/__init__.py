"""The real CLIs that the demo can drive in front of its scripted model: one module each, one table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from beadmill.agents import registry
from beadmill.demo.clis import claude_code, codex, opencode
from beadmill.demo.clis.shape import DemoCli
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.settings import Settings

CLIS: Final[Mapping[str, DemoCli]] = {"claude_code": claude_code.CLI, "codex": codex.CLI, "opencode": opencode.CLI}


async def options(name: str, home: Path) -> dict[str, Json]:
    """The adapter's options: the user's own executable, the demo's own home. Raises Unavailable when it is missing."""
    mine: Mapping[str, Json] = {k: v for k, v in Settings.read().agents.get(name, {}).items() if k == "path"}
    wanted = {**mine, **CLIS[name].options(home)}
    found = await registry.load(name, wanted).detect()
    if found is None:
        raise Unavailable(
            f"the {CLIS[name].title} was not found",
            code="AGENT_MISSING",
            kept="nothing was started",
            next=f"beadmill agent list says how to install it; beadmill demo without --agent {name} needs no CLI",
        )
    return {**wanted, "path": str(found.path)}
