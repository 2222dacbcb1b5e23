"""The real Claude Code in front of the scripted model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json
from tests.processes.session_world import World

TOOLS = Path(__file__).parents[2] / ".test-tools"
# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
CLAUDE = os.environ.get("BEADMILL_TEST_CLAUDE") or str(TOOLS / "node_modules" / ".bin" / "claude")
KEY = "sk-ant-a-key-of-the-tests"
# A subscription's token: only with one does the provider say when a limit ends.
TOKEN = "sk-ant-oat01-a-token-of-the-tests"


@pytest.fixture
def claude_home(tmp_path: Path) -> Path:
    """The user's own configuration folder."""
    home = tmp_path / "person" / ".claude"
    home.mkdir(parents=True)
    return home


@pytest.fixture
def claude_code(world: World, claude_home: Path, model: ModelServer) -> World:
    """The world, with seats on the real Claude Code, paid for by a subscription."""
    assert Path(CLAUDE).exists(), f"{CLAUDE} is missing: test.sh installs it, or set BEADMILL_TEST_CLAUDE"
    at_claude(world, claude_home, env={"ANTHROPIC_BASE_URL": model.root, "CLAUDE_CODE_OAUTH_TOKEN": TOKEN})
    return world


def at_claude(world: World, home: Path, *, env: dict[str, str], **more: Json) -> None:
    options = {"path": CLAUDE, "config_home": str(home), "env": env, "retries": 1, "request_timeout": 5, **more}
    world.adapters["claude_code"] = registry.adapter("claude_code", {**options, "stream_idle": 3})
    world.agent = "claude_code"
    world.sessions = world.open()
