"""One bench per agent: the same scenario file drives the scripted agent and, over the wire, the real Codex."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.demo.model.server import ModelServer
from tests.agents.bench_acp import LEFT_OUT, SHORT, copilot, opencode_acp
from tests.agents.bench_claude import claude_code, claude_home
from tests.agents.bench_opencode import opencode, opencode_shared
from tests.processes.session_world import World

__all__ = [
    "claude_code",
    "claude_home",
    "copilot",
    "opencode",
    "opencode_acp",
    "opencode_shared",
]  # fixtures of the benches
TOOLS = Path(__file__).parents[2] / ".test-tools"
# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
CODEX = os.environ.get("BEADMILL_TEST_CODEX") or str(TOOLS / "node_modules" / ".bin" / "codex")

CONFIG = """
model = "scripted-large"
model_provider = "scripted"
[analytics]
enabled = false
[model_providers.scripted]
name = "Scripted"
base_url = "{url}"
env_key = "SCRIPTED_MODEL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 5000
supports_websockets = false
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "[opencode_acp" in item.name and "test_conformance" in item.nodeid and item.name.split("[")[0] not in SHORT:
            item.add_marker(pytest.mark.long)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def codex_home() -> Iterator[Path]:
    """Outside the temporary folder: Codex keeps helper binaries there, and refuses to do so in a temporary one."""
    TOOLS.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="codex-home-", dir=TOOLS))
    yield home
    shutil.rmtree(home)


@pytest.fixture
def model(world: World) -> Iterator[ModelServer]:
    with ModelServer(world.scenario) as server:
        yield server


@pytest.fixture
def codex(world: World, codex_home: Path, model: ModelServer) -> World:
    """The world, with seats on the real Codex."""
    assert Path(CODEX).exists(), f"{CODEX} is missing: test.sh installs it, or set BEADMILL_TEST_CODEX"
    (codex_home / "config.toml").write_text(CONFIG.format(url=model.url))
    options = {"path": CODEX, "codex_home": str(codex_home), "env": {"SCRIPTED_MODEL_KEY": "a-key-of-the-tests"}}
    world.adapters["codex"] = registry.adapter("codex", options)
    world.agent = "codex"
    world.sessions = world.open()
    return world


ACP = pytest.mark.acp


@pytest.fixture(
    params=[
        "scripted",
        pytest.param("codex", marks=pytest.mark.codex),
        pytest.param("claude_code", marks=pytest.mark.claude_code),
        pytest.param("opencode", marks=pytest.mark.opencode),
        pytest.param("opencode_acp", marks=ACP),
        pytest.param("copilot", marks=ACP),
    ]
)
def bench(request: pytest.FixtureRequest, world: World) -> World:
    name: str = request.function.__name__
    if reason := LEFT_OUT.get(request.param, {}).get(name):
        pytest.skip(reason)
    if request.param != "scripted":
        request.getfixturevalue(request.param)
    return world
