"""The real OpenCode for the demo: its own configuration, which points at the scripted model on a loopback port."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from beadmill.demo.clis.shape import DemoCli
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json

MODELS: Final = ("alpha", "beta", "gamma")


def options(home: Path) -> Mapping[str, Json]:
    return {"config_home": str(home), "data_home": str(home)}


def point_at(home: Path, model: ModelServer) -> None:
    """A server that still knows another port is not used again once this has changed."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "opencode.json").write_text(json.dumps(configuration(model.url)), encoding="utf-8")


def configuration(url: str) -> Json:
    known = {"tool_call": True, "limit": {"context": 200_000, "output": 32_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Beadmill's scripted model",
        "options": {"baseURL": url, "apiKey": "scripted"},
        "models": {name: {"name": name, **known} for name in MODELS},
    }
    return {
        "model": f"scripted/{MODELS[0]}",
        "small_model": f"scripted/{MODELS[0]}",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
    }


CLI: Final = DemoCli("OpenCode", options, point_at)
