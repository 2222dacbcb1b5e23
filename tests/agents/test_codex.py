"""What only Codex has: its own sandbox, strict schemas, sign-in, npm's layout."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from beadmill import app
from beadmill.agents import registry
from beadmill.agents.codex import CodexAgent, native
from beadmill.agents.codex_home import CodexHome
from beadmill.agents.contract import Model
from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import Failed, Replied, SessionRef, Why
from beadmill.domain.values import Access, Actor, Seat
from beadmill.errors import Refused, Unavailable
from beadmill.operations import agents
from beadmill.processes.spec import EventKind
from beadmill.settings import Settings
from tests.agents.conftest import CODEX
from tests.processes.session_world import World


async def outputs(codex: World, command: str, access: Access = Access.WRITE) -> str:
    """What one shell command of the model printed."""
    codex.play({"shell": command}, {"reply": "done"})
    session = await codex.start("t", codex.task(access=access))
    done = [e.data async for _, e in session.events() if e.kind is EventKind.TOOL_DONE]
    return str(done[0]["output"])


@pytest.mark.codex
async def test_a_schema_is_asked_strictly_and_comes_back_as_data(codex: World, model: ModelServer) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "string"}, "n": {"type": "integer"}}, "required": ["v"]}
    codex.play({"reply": '{"v": "pass", "n": null}'})
    end = await codex.run("t", codex.task(schema=schema))
    assert isinstance(end, Replied)
    assert end.data == {"v": "pass"}
    asked = model.seen[-1]["text"]["format"]
    assert (asked["strict"], asked["schema"]["required"]) == (True, ["v", "n"])


@pytest.mark.codex
async def test_a_schema_that_is_not_strict_is_left_to_the_brief(codex: World, model: ModelServer) -> None:
    end = await codex.run("t", codex.task(schema={"type": "object", "additionalProperties": {"type": "string"}}))
    assert isinstance(end, Replied)
    assert "format" not in (model.seen[-1].get("text") or {})


@pytest.mark.codex
async def test_commands_of_the_model_see_neither_key_nor_temporary_folders(codex: World) -> None:
    seen = await outputs(codex, "env; touch /tmp/beadmill-leak 2>&1; touch $TMPDIR/leak 2>&1; true")
    assert "SCRIPTED_MODEL_KEY" not in seen
    assert seen.count("Read-only file system") == 2


@pytest.mark.codex
async def test_effort_and_model_of_the_seat_reach_the_provider(codex: World, model: ModelServer) -> None:
    await codex.run("t", replace(codex.task(), seat=Seat("codex", "scripted-small", "high")))
    assert (model.seen[-1]["model"], model.seen[-1]["reasoning"]["effort"]) == ("scripted-small", "high")


@pytest.mark.codex
async def test_a_resume_of_a_lost_conversation_says_so(codex: World) -> None:
    gone = SessionRef("t0", "01a22c63-0000-71a1-8002-88a640a5fc66")
    end = await codex.run("t", codex.task(resume=gone))
    assert isinstance(end, Failed)
    assert end.why is Why.NO_RESULT
    assert "no rollout found for thread id" in end.message


@pytest.mark.codex
async def test_detect_tells_the_binary_behind_npm_its_version_and_the_sign_in(codex: World) -> None:
    agent = registry.load("codex", codex.adapters["codex"].options)
    found = await agent.detect()
    assert found is not None
    assert (found.path.name, found.path.read_bytes()[:4], found.signed_in) == ("codex", b"\x7fELF", True)
    assert found.version.count(".") == 2


async def test_codex_that_is_not_there_is_not_detected(tmp_path: Path) -> None:
    assert await CodexAgent({"path": str(tmp_path / "codex"), "codex_home": str(tmp_path)}).detect() is None


async def test_a_codex_that_anybody_may_replace_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "codex"
    fake.write_bytes(b"\x7fELF")
    fake.chmod(0o777)
    with pytest.raises(Refused, match="everybody may write"):
        await CodexAgent({"path": str(fake), "codex_home": str(tmp_path)}).detect()


async def test_an_install_without_npm_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"npm install --global --prefix /.+ @openai/codex: npm cannot be started"):
        await CodexAgent({"prefix": str(tmp_path / "codex")}).install()


@pytest.mark.parametrize(
    "layout",
    [
        "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex",
    ],
)
def test_the_binary_is_found_in_every_layout_of_the_package(tmp_path: Path, layout: str) -> None:
    script = tmp_path / "node_modules/@openai/codex/bin/codex.js"
    for path, content in ((script, "#!/usr/bin/env node\n"), (tmp_path / layout, "\x7fELF")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert native(script) == tmp_path / layout


@pytest.mark.codex
def test_the_real_layout_is_one_of_them() -> None:
    assert native(Path(CODEX).resolve()).read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("files", "env", "signed_in"),
    [
        ({}, {}, False),
        ({"auth.json": "{}"}, {}, True),
        ({}, {"OPENAI_API_KEY": "x"}, True),
        ({"config.toml": 'model_provider="p"\n[model_providers.p]\nenv_key="P_KEY"\n'}, {}, False),
        ({"config.toml": 'model_provider="p"\n[model_providers.p]\nenv_key="P_KEY"\n'}, {"P_KEY": "x"}, True),
        ({"config.toml": 'model_provider="p"\n[model_providers.p]\n'}, {}, False),
        ({"config.toml": 'model_provider="p"\n[model_providers.p]\nname="local"\n'}, {}, True),
        ({"config.toml": "this is [not toml"}, {}, False),
    ],
)
def test_the_sign_in_is_known_without_asking_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], env: dict[str, str], signed_in: bool
) -> None:
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    agent = CodexAgent({"codex_home": str(tmp_path), "env": env})
    assert agent._signed_in() is signed_in


async def test_models_are_those_codex_keeps_on_disk(tmp_path: Path) -> None:
    cache = {"models": [{"slug": "large", "display_name": "Large", "supported_reasoning_levels": [{"effort": "low"}]}]}
    (tmp_path / "models_cache.json").write_text(json.dumps(cache))
    (tmp_path / "config.toml").write_text('model = "mine"\n')
    models = await CodexAgent({"codex_home": str(tmp_path)}).models()
    assert models == [Model("mine"), Model("large", "Large", ("low",))]


def test_the_runner_is_told_which_variables_codex_needs(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model_provider="p"\n[model_providers.p]\nenv_key="P_KEY"\n')
    adapter = registry.adapter("codex", {"codex_home": str(tmp_path)})
    assert (adapter.env, adapter.site) == (("CODEX_HOME", "OPENAI_API_KEY", "CODEX_API_KEY", "P_KEY"), False)


MINE = """
model = "large"
model_provider = "p"
notify = ["/home/me/notify"]
[mcp_servers.mine]
command = "/home/me/server"
[model_providers.p]
name = 'a "local" one'
base_url = "http://127.0.0.1:1/v1"
env_key = "P_KEY"
requires_openai_auth = false
request_max_retries = 2
http_headers = { "X-Team" = "ü" }
"""


def test_a_workspace_has_the_users_provider_and_nothing_that_runs(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(MINE)
    made = CodexHome(tmp_path).furnish(_folder(tmp_path / "home"))
    taken = tomllib.loads((made / "config.toml").read_text())
    assert taken == {k: v for k, v in tomllib.loads(MINE).items() if k.startswith("model")}
    assert sorted(p.name for p in made.iterdir()) == ["config.toml"]


def test_a_workspace_has_the_users_sign_in_and_none_of_his_conversations(tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text("{}")
    (tmp_path / "sessions").mkdir()
    home = CodexHome(tmp_path)
    made = home.furnish(_folder(tmp_path / "home"))
    assert sorted(p.name for p in made.iterdir()) == ["auth.json", "config.toml"]
    assert ((made / "auth.json").readlink(), home.shared[0]) == (tmp_path / "auth.json", tmp_path / "auth.json")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.codex
def test_the_real_codex_renews_a_sign_in_through_the_link(tmp_path: Path) -> None:
    user, home = _folder(tmp_path / "me"), _folder(tmp_path / "home")
    (user / "auth.json").write_text("{}")
    env = {"CODEX_HOME": str(CodexHome(user).furnish(home)), "HOME": str(home), "PATH": os.environ["PATH"]}
    argv = [str(native(Path(CODEX))), "login", "--with-api-key"]
    subprocess.run(argv, env=env, input=b"sk-renewed", check=True, capture_output=True)
    assert json.loads((user / "auth.json").read_text())["OPENAI_API_KEY"] == "sk-renewed"


def test_an_unknown_agent_lists_the_known_ones() -> None:
    with pytest.raises(Unavailable) as unknown:
        registry.load("nobody", {})
    assert unknown.value.next == f"choose one of: {', '.join(sorted(registry.BUILTIN))}"


@pytest.mark.codex
async def test_a_probing_turn_asks_the_real_codex_and_prices_it(codex: World, tmp_path: Path) -> None:
    options = dict(codex.adapters["codex"].options)
    price = {"codex/scripted-large": {"input": 2, "output": 10}}
    house = app.build(Settings(home=tmp_path / "home", agents={"codex": options}, prices=price))
    codex.play({"reply": "OK"})
    took = await agents.turn(house.ports, "codex", actor=Actor("user", "owner", "cli"))
    house.store.close()
    assert (took.ok, took.text, took.model, took.cost_source) == (True, "OK", "scripted-large", "override")
    assert took.cost_usd == pytest.approx(((took.input + took.cached) * 2 + took.output * 10) / 1_000_000)


@pytest.mark.codex
async def test_a_probing_turn_without_a_sign_in_says_how_to_sign_in(codex: World, tmp_path: Path) -> None:
    options = {**codex.adapters["codex"].options, "env": {}}
    house = app.build(Settings(home=tmp_path / "home", agents={"codex": options}))
    took = await agents.turn(house.ports, "codex", actor=Actor("user", "owner", "cli"))
    house.store.close()
    assert (took.ok, took.why) == (False, "auth")
    assert took.next == "sign in: set SCRIPTED_MODEL_KEY where the daemon starts"
