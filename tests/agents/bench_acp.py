"""The benches of the generic adapter: OpenCode's ACP mode and Copilot's, both with the scripted model (Chat)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json
from tests.agents.bench_opencode import without_its_plugins
from tests.processes.session_world import World

TOOLS = Path(__file__).parents[2] / ".test-tools" / "node_modules" / ".bin"
CACHE = TOOLS.parents[1] / "cache"  # Copilot unpacks itself: 235 MB, once for all tests
# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
OPENCODE = os.environ.get("BEADMILL_TEST_OPENCODE") or str(TOOLS / "opencode")
COPILOT = os.environ.get("BEADMILL_TEST_COPILOT") or str(TOOLS / "copilot")
KEY = "kq8Zr2vN5xWm7TbY3cLp"  # Copilot hides its key wherever it prints: one that is part of no other word
MODEL = "scripted-large"


# The tests of test_conformance.py that these CLIs do not take part in, by name, and why. Everything else they keep.
_SLOW_START = "it starts slower than the budget of the test; the cut is the one of the tests on stop and on steps"
_RECORDED = "test_acp_stream.py reads it recorded: each live session takes seconds to start, or retries for longer"
LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "copilot": {
        "test_a_spent_budget_lapses_and_leaves_nothing": _SLOW_START,
        "test_a_failing_provider_is_named": _RECORDED,
        "test_a_usage_limit_is_no_failure_and_says_until_when": "Copilot does not say until when (test_acp_stream.py)",
    },
    "opencode_acp": {
        "test_a_spent_budget_lapses_and_leaves_nothing": _SLOW_START,
        "test_silence_lapses_as_idle": _SLOW_START,
        "test_a_long_brief_arrives_whole": "Copilot shows it for the adapter; OpenCode starts for seconds",
        "test_a_resumed_turn_books_only_itself": "it tells the tokens of the last step alone (test_acp_stream.py)",
        "test_a_failing_provider_is_named": _RECORDED,
        "test_a_usage_limit_is_no_failure_and_says_until_when": "OpenCode retries without end and says nothing",
    },
}
# OpenCode boots for seconds in each case, and Copilot shows the same adapter: the others wait for --long.
SHORT = frozenset({"test_an_agent_that_may_write_edits_files"})


def opencode_options(url: str, home: Path) -> Mapping[str, Json]:
    """Everything that would leave the machine, or cost time and say nothing, is off."""
    prices = {"input": 2, "output": 10, "cache_read": 0.2}
    models = {name: {"tool_call": True, "reasoning": True, "limit": {"context": 1_000_000, "output": 8_192}, "cost": prices} for name in (MODEL, "scripted-small")}  # fmt: skip
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url, "apiKey": KEY}, "models": models}
    config = {
        "autoupdate": False, "share": "disabled", "snapshot": False, "lsp": False, "formatter": False,
        "enabled_providers": ["scripted"], "model": f"scripted/{MODEL}", "small_model": f"scripted/{MODEL}",
        "provider": {"scripted": provider},
    }  # fmt: skip
    off = ("MODELS_FETCH", "DEFAULT_PLUGINS", "EXTERNAL_SKILLS", "CLAUDE_CODE", "SHARE")
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    return {"path": OPENCODE, "home": str(home), "env": {**env, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}}


def copilot_options(url: str, home: Path) -> Mapping[str, Json]:
    env = {
        "COPILOT_OFFLINE": "true", "COPILOT_MODEL": MODEL, "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "1000000",
        "XDG_CACHE_HOME": str(CACHE),
    }  # fmt: skip
    return {"path": COPILOT, "home": str(home), "env": env}


def _seated(world: World, name: str, options: Mapping[str, Json]) -> World:
    assert Path(str(options["path"])).exists(), f"{options['path']} is missing: test.sh installs it"
    world.adapters[name] = registry.adapter(name, options)
    world.agent = name
    world.sessions = world.open()
    return world


@pytest.fixture
def opencode_acp(world: World, model: ModelServer, tmp_path: Path) -> World:
    """The world, with seats on OpenCode's ACP mode."""
    without_its_plugins(world.workspace / "home")
    return _seated(world, "opencode_acp", opencode_options(model.url, tmp_path))


@pytest.fixture
def copilot(world: World, model: ModelServer, tmp_path: Path) -> World:
    """The world, with seats on Copilot's ACP mode."""
    return _seated(world, "copilot", copilot_options(model.url, tmp_path))
