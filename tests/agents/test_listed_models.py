"""Real CLIs behind an allow-list: they reach the model that is listed, by the proxy, and nothing else."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import Replied
from beadmill.processes.spec import BoxSpec, Policy
from tests.agents.bench_acp import _seated as seated
from tests.agents.bench_acp import opencode_options
from tests.processes.session_world import World

CLIS = [
    pytest.param(name, marks=getattr(pytest.mark, mark))
    for name, mark in (("codex", "codex"), ("claude_code", "claude_code"))
]


@pytest.mark.sandbox
@pytest.mark.parametrize("cli", CLIS)
async def test_a_cli_reaches_its_model_by_the_proxy(
    request: pytest.FixtureRequest, cli: str, model: ModelServer
) -> None:
    await works(request.getfixturevalue(cli), urlsplit(model.root).netloc)


@pytest.mark.sandbox
@pytest.mark.acp
async def test_a_cli_with_a_server_of_its_own_reaches_it_beside_a_model_on_localhost(
    world: World, model: ModelServer, tmp_path: Path
) -> None:
    url = model.url.replace("127.0.0.1", "localhost")
    await works(seated(world, "opencode_acp", opencode_options(url, tmp_path)), urlsplit(url).netloc)


async def works(world: World, listed: str) -> None:
    world.box = BoxSpec("bubblewrap", world.workspace, Policy(network="allow-list", hosts=(listed,)))
    world.play({"shell": "echo made >file"}, {"reply": "done"})
    end = await world.run("t", world.task())
    assert isinstance(end, Replied), end
    assert (end.text, (world.tree / "file").read_text()) == ("done", "made\n")
