"""The real OpenCode for the tests: one server and one workspace for all of them, since it takes seconds to boot."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json
from beadmill.processes.sessions import FolderSessions
from beadmill.processes.spec import BoxSpec
from tests.processes.session_world import World

TOOLS = Path(__file__).parents[2] / ".test-tools"
# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
OPENCODE = os.environ.get("BEADMILL_TEST_OPENCODE") or str(TOOLS / "node_modules" / ".bin" / "opencode")
MODEL = "scripted/scripted-large"


def configuration(url: str) -> Json:
    known = {
        "tool_call": True,
        "reasoning": True,
        "limit": {"context": 128_000, "output": 8192},
        "variants": {"high": {"reasoningEffort": "high"}},
    }
    cost = {"input": 2, "output": 10, "cache_read": 0.2, "cache_write": 2.5}
    options = {"baseURL": url, "apiKey": "{env:SCRIPTED_MODEL_KEY}"}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": options,
        "models": {"scripted-large": {**known, "cost": cost}, "scripted-small": known, "unpriced": known},
    }
    return {"model": MODEL, "small_model": MODEL, "enabled_providers": ["scripted"], "provider": {"scripted": provider}}


def without_its_plugins(home: Path) -> None:
    """OpenCode fetches packages for plugins at each start unless its lock has them: seconds, for nothing here."""
    place = home / ".config" / "opencode"
    (place / "node_modules").mkdir(parents=True)
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (place / "package-lock.json").write_text(json.dumps(lock))


class Shared:
    """What lives as long as the test session: the workspace, the script's place, the model, the servers' folder."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        (self.workspace / "tree").mkdir(parents=True)
        without_its_plugins(self.workspace / "home" / "opencode")
        self.servers = root / "servers"
        self.config = root / "config"
        self.config.mkdir()
        self.scenario = root / "scenario.json"
        self.scenario.write_text('{"replies": []}')
        self.model = ModelServer(self.scenario)

    @property
    def options(self) -> dict[str, Json]:
        return {
            "path": OPENCODE,
            "config_home": str(self.config),
            "data_home": str(self.config),
            "env": {"SCRIPTED_MODEL_KEY": "a-key-of-the-tests"},
            "retries": 1,
        }

    def sessions(self) -> FolderSessions:
        return FolderSessions(self.servers, adapters={}, sandboxes={})


@pytest.fixture(scope="session")
def opencode_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    assert Path(OPENCODE).exists(), f"{OPENCODE} is missing: test.sh installs it, or set BEADMILL_TEST_OPENCODE"
    shared = Shared(tmp_path_factory.mktemp("opencode"))
    with shared.model:
        (shared.config / "opencode.json").write_text(json.dumps(configuration(shared.model.url)))
        yield shared
        for server in shared.sessions().servers.live():
            asyncio.run(server.stop("the tests are over"))


@pytest.fixture
def opencode(world: World, opencode_shared: Shared) -> World:
    """The world, with seats on the real OpenCode."""
    at_opencode(world, opencode_shared)
    return world


def at_opencode(world: World, shared: Shared) -> None:
    world.workspace, world.tree = shared.workspace, shared.workspace / "tree"
    for left in world.tree.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    world.box = BoxSpec(world.box.sandbox, world.workspace)
    world.scenario, world.servers = shared.scenario, shared.servers
    world.adapters["opencode"] = registry.adapter("opencode", shared.options)
    world.agent = "opencode"
    world.sessions = world.open()
    world.play({"reply": "done"})
    shared.model.seen.clear()
