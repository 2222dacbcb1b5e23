"""The real Codex CLI for the demo: its own home, which points at the scripted model on a loopback port."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from beadmill.demo.clis.shape import DemoCli
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json


def options(home: Path) -> Mapping[str, Json]:
    return {"codex_home": str(home)}


def point_at(home: Path, model: ModelServer) -> None:
    """Codex reads this file at every start of a session, so a new port counts at once."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(url=json.dumps(model.url)), encoding="utf-8")


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

CLI: Final = DemoCli("Codex CLI", options, point_at)
