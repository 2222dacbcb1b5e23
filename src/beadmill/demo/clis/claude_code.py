"""The real Claude Code for the demo: settings of its own, which point at the scripted model on a loopback port."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from beadmill.demo.clis.shape import DemoCli
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json


def options(home: Path) -> Mapping[str, Json]:
    return {"config_home": str(home), "retries": 2, "stream_idle": 15}


def point_at(home: Path, model: ModelServer) -> None:
    """The adapter reads this file at every start of a session, so a new port counts at once."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    env = {"ANTHROPIC_BASE_URL": model.root, "ANTHROPIC_API_KEY": "the-scripted-model-wants-no-key"}
    (home / "settings.json").write_text(json.dumps({"env": env}), encoding="utf-8")


CLI: Final = DemoCli("Claude Code", options, point_at)
