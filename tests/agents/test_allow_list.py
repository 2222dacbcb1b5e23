"""Real CLIs behind an allow-list: they reach the model that is listed, by the proxy, and nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import Replied
from beadmill.processes.spec import BoxSpec, Policy
from tests.processes.session_world import World

CLIS = [
    pytest.param(name, marks=getattr(pytest.mark, mark))
    for name, mark in (("codex", "codex"), ("claude_code", "claude_code"), ("opencode_acp", "acp"), ("copilot", "acp"))
]


@pytest.mark.sandbox
@pytest.mark.parametrize("cli", CLIS)
async def test_a_cli_reaches_its_model_by_the_proxy(
    request: pytest.FixtureRequest, cli: str, model: ModelServer
) -> None:
    world: World = request.getfixturevalue(cli)
    listed = Policy(network="allow-list", hosts=(urlsplit(model.root).netloc,))
    world.box = BoxSpec("bubblewrap", world.workspace, listed)
    world.play({"shell": "echo made >file"}, {"reply": "done"})
    end = await world.run("t", world.task())
    assert isinstance(end, Replied), end
    assert (end.text, (world.tree / "file").read_text()) == ("done", "made\n")
