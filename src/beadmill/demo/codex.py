"""The real Codex CLI for the demo: its own home, which points at the scripted model on a loopback port."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beadmill.agents import registry
from beadmill.errors import Unavailable
from beadmill.settings import Settings


async def options(home: Path) -> dict[str, Any]:
    """The adapter's options: the user's own executable, the demo's own home. Raises Unavailable when it is missing."""
    mine: Mapping[str, Any] = {k: v for k, v in Settings().agents.get("codex", {}).items() if k == "path"}
    wanted = {**mine, "codex_home": str(home)}
    found = await registry.load("codex", wanted).detect()
    if found is None:
        raise Unavailable(
            "the Codex CLI was not found",
            code="AGENT_MISSING",
            kept="nothing was started",
            next="beadmill agent list says how to install it; beadmill demo without --agent codex needs no CLI",
        )
    return {**wanted, "path": str(found.path)}


def point_at(home: Path, url: str) -> None:
    """Codex reads this file at every start of a session, so a new port counts at once."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(url=json.dumps(url)), encoding="utf-8")


CONFIG = """\
model = "alpha"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "Beadmill's scripted model"
base_url = {url}
wire_api = "responses"
supports_websockets = false
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 15000
"""
