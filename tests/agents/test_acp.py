"""The generic adapter: what is data, what the settings add, and what only its CLIs do."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from beadmill.agents import acp_cli, registry
from beadmill.agents.acp import AcpAgent
from beadmill.agents.acp_options import choose
from beadmill.agents.acp_stream import AcpStream, Broken
from beadmill.app import Catalog
from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import Failed, Replied, SessionRef, Why
from beadmill.domain.values import Access, Brief, Json, Seat
from beadmill.errors import NotFound, Unavailable
from beadmill.processes.environment import TRUSTED_DIRS
from beadmill.processes.spec import AgentTask, EventKind
from tests.agents.bench_acp import opencode_options
from tests.processes.session_world import MINUTE, World

FIELDS = {f.name for f in fields(acp_cli.Cli)} - {"name"}
SAYS_3 = "#!/bin/sh\necho 'made 1.2.3 (x)'\n"


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(TRUSTED_DIRS, str(tmp_path))


def program(folder: Path, script: str = SAYS_3) -> Path:
    path = folder / "made"
    path.write_text(script)
    path.chmod(0o755)
    return path


# --- the table


def test_every_entry_of_the_table_is_an_agent_and_says_only_what_there_is() -> None:
    assert set(acp_cli.names()) == {name for name, path in registry.BUILTIN.items() if path == registry.ACP}
    for name in acp_cli.names():
        entry = tomllib.loads((acp_cli.TABLE / f"{name}.toml").read_text())
        assert set(entry) <= FIELDS, name
        assert entry["argv"], name


def test_the_runner_loads_it_with_its_packages_and_hands_on_the_keys_of_the_table() -> None:
    adapter = registry.adapter("gemini", {})
    assert (adapter.site, adapter.env) == (True, acp_cli.describe("gemini", {}).keys)


def test_settings_go_before_the_table_and_the_environment_is_merged() -> None:
    made = acp_cli.describe("copilot", {"usage": "none", "env": {"A": "1"}, "unknown": 1})
    assert (made.usage, made.argv) == ("none", ("copilot", "--acp"))
    assert made.env == {"COPILOT_AUTO_UPDATE": "false", "A": "1"}


async def test_a_cli_of_the_users_own_is_an_agent_beside_the_others(tmp_path: Path) -> None:
    own = {"adapter": "acp", "argv": [str(program(tmp_path)), "--acp"], "version_argv": ["made", "--version"]}
    catalog = Catalog({"mine": own, "second": {"adapter": "gemini"}, "codex": {"path": "x"}}, tmp_path)
    assert {"mine", "second", "codex", "gemini"} <= set(catalog.names())
    found = await catalog.load("mine").detect()
    assert found is not None
    assert (found.path, found.version, found.note) == (
        tmp_path / "made", "1.2.3", "unverified: no test of Beadmill drives this CLI",
    )  # fmt: skip
    assert catalog.adapters()["second"].options["name"] == "second"


def test_an_adapter_that_is_none_is_named() -> None:
    with pytest.raises(Unavailable, match="no agent 'mine' with the adapter 'nothing'"):
        registry.load("mine", {"adapter": "nothing"})
    with pytest.raises(NotFound):
        Catalog({}, Path()).load("mine")


async def test_an_agent_without_a_command_says_what_to_set() -> None:
    with pytest.raises(Unavailable, match="no argv for mine") as error:
        await registry.load("mine", {"adapter": "acp"}).detect()
    assert error.value.next == 'set [agents.mine] argv = ["…"]'


# --- what is installed


@pytest.mark.parametrize(
    ("files", "env", "signed_in"),
    [({}, {}, False), ({".key": "x"}, {}, True), ({}, {"MADE_KEY": "x"}, True)],
)
async def test_the_sign_in_is_known_by_its_file_or_its_key(
    tmp_path: Path, files: dict[str, str], env: dict[str, str], signed_in: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    data = {
        "argv": [str(program(tmp_path))],
        "signs_in": ["MADE_KEY"],
        "signed_in_by": [".key"],
        "sign_in": "made login",
    }
    agent = AcpAgent({"name": "made", "home": str(tmp_path), "env": env, **data})
    found = await agent.detect()
    assert found is not None
    assert (found.signed_in, found.sign_in) == (signed_in, "made login")


async def test_a_cli_that_says_nothing_of_its_sign_in_is_not_guessed(tmp_path: Path) -> None:
    found = await AcpAgent({"name": "made", "argv": [str(program(tmp_path))]}).detect()
    assert found is not None
    assert found.signed_in is None


def test_the_sign_in_is_linked_into_the_home_of_the_session_and_the_configuration_copied(tmp_path: Path) -> None:
    real, home = tmp_path / "real", tmp_path / "home"
    (real / ".made").mkdir(parents=True)
    home.mkdir()
    (real / ".made/key").write_text("secret")
    (real / ".made/settings.json").write_text("{}")
    data = {"auth": [".made/key", ".made/none"], "copied": [".made/settings.json", ".made/none.json"]}
    agent = AcpAgent({"name": "made", "home": str(real), **data})
    agent._lend(home)
    (home / ".made/settings.json").write_text("what an agent made of it")
    agent._lend(home)
    assert sorted(p.name for p in (home / ".made").iterdir()) == ["key", "settings.json"]
    assert ((home / ".made/key").readlink(), (home / ".made/settings.json").read_text()) == (real / ".made/key", "{}")
    assert agent.auth_paths == (real / ".made/key", real / ".made/none")


def test_an_environment_may_name_the_home_of_the_user(tmp_path: Path) -> None:
    agent = AcpAgent({"name": "made", "home": str(tmp_path), "argv": ["made"], "env": {"MADE_HOME": "{home}/.made"}})
    assert agent._environment()["MADE_HOME"] == f"{tmp_path}/.made"


def test_a_sandbox_shows_the_packages_beside_a_program_of_npm(tmp_path: Path) -> None:
    folder = tmp_path / "lib/node_modules/@maker/made/bin"
    folder.mkdir(parents=True)
    agent = AcpAgent({"name": "made", "path": str(program(folder))})
    assert agent.read_paths == (tmp_path / "lib/node_modules",)
    assert AcpAgent({"name": "made", "path": "/bin/sh"}).read_paths == ()
    assert AcpAgent({"name": "made"}).read_paths == ()


# --- model, effort, mode


class Offering:
    """Records what is chosen; answers as an agent does that has nothing new to offer."""

    def __init__(self) -> None:
        self.chosen: list[tuple[str, str]] = []

    async def choose(self, conversation: str, option: str, value: str) -> Json:
        self.chosen.append((option, value))
        return {}

    async def mode(self, conversation: str, mode: str) -> Json:
        self.chosen.append(("session mode", mode))
        return {}


OFFERED: Json = {
    "configOptions": [
        {"id": "model", "category": "model", "options": [{"value": "maker/large"}, {"value": "maker/small"}]},
        {"id": "effort", "category": "thought_level", "options": [{"group": "g", "options": [{"value": "high"}]}]},
    ],
    "modes": {"availableModes": [{"id": "https://protocol/modes#plan"}, {"id": "default"}]},
}


async def chosen(seat: Seat, access: Access = Access.WRITE) -> tuple[list[tuple[str, str]], list[str]]:
    talk, cli = Offering(), acp_cli.Cli("made", modes={"read": "plan", "write": "default"})
    task = AgentTask(seat, Brief("t", "do it"), access, Path(), MINUTE, MINUTE)
    warnings = await choose(talk, AcpStream(cli, "t"), OFFERED, cli=cli, task=task)
    return talk.chosen, warnings


async def test_model_effort_and_mode_are_chosen_from_what_is_offered() -> None:
    made, warnings = await chosen(Seat("made", "small", "high"), Access.READ)
    wanted = [("model", "maker/small"), ("effort", "high"), ("session mode", "https://protocol/modes#plan")]
    assert (made, warnings) == (wanted, [])


async def test_an_effort_that_is_not_offered_is_said_and_a_model_that_is_not_ends_the_turn() -> None:
    made, warnings = await chosen(Seat("made", effort="huge"))
    assert (made, warnings) == (
        [("session mode", "default")], ["made has no effort 'huge' here: its own default is used"],
    )  # fmt: skip
    with pytest.raises(Broken):
        await chosen(Seat("made", "gone"))


# --- live


@pytest.mark.acp
async def test_a_model_that_is_not_offered_is_a_bad_model(opencode_acp: World) -> None:
    task = replace(opencode_acp.task(), seat=Seat("opencode_acp", "gone"))
    end = await opencode_acp.run("t", task)
    assert isinstance(end, Failed)
    assert end.why is Why.BAD_MODEL
    assert "there are: scripted/scripted-large, scripted/scripted-small" in end.message


@pytest.mark.acp
async def test_model_and_effort_of_the_seat_reach_the_provider(opencode_acp: World, model: ModelServer) -> None:
    end = await opencode_acp.run("t", replace(opencode_acp.task(), seat=Seat("opencode_acp", "scripted-small", "high")))
    assert isinstance(end, Replied)
    assert (model.seen[-1]["model"], model.seen[-1]["reasoning_effort"]) == ("scripted-small", "high")


@pytest.mark.acp
async def test_a_refused_call_is_no_end_the_agent_goes_on_without_it(opencode_acp: World, model: ModelServer) -> None:
    """Without its own rules OpenCode asks, hears no and stops: it is told to go on."""
    options = {**opencode_options(model.url, opencode_acp.workspace), "limited_env": {}}
    opencode_acp.adapters["opencode_acp"] = registry.adapter("opencode_acp", options)
    opencode_acp.sessions = opencode_acp.open()
    go_on = {"match": {"text": "refused by the rules"}, "steps": [{"reply": "I only read"}]}
    opencode_acp.play_all([go_on, {"steps": [{"write": {"path": "new.txt", "content": "x\n"}}, {"reply": "never"}]}])
    session = await opencode_acp.start("t", opencode_acp.task(access=Access.READ))
    warned = [e.data["message"] async for _, e in session.events() if e.kind is EventKind.WARNING]
    end = session.ended()
    assert isinstance(end, Replied)
    assert (end.text, list(opencode_acp.tree.iterdir())) == ("I only read", [])
    assert any(message.startswith("not allowed with access 'read'") for message in warned)


@pytest.mark.acp
async def test_a_lost_conversation_is_said(copilot: World) -> None:
    gone = SessionRef("t0", "01a22c63-0000-41a1-8002-88a640a5fc66")
    end = await copilot.run("t", copilot.task(resume=gone))
    assert isinstance(end, Failed)
    assert "not found" in end.message.lower()


@pytest.mark.acp
async def test_detect_tells_the_binary_behind_npm_and_its_version(copilot: World) -> None:
    found = await registry.load("copilot", copilot.adapters["copilot"].options).detect()
    assert found is not None
    assert (found.path.read_bytes()[:4], found.version.count("."), found.note) == (b"\x7fELF", 2, "")
    assert found.signed_in


@pytest.mark.acp
async def test_a_repository_with_plugins_is_not_opened_until_a_person_trusts_it(opencode_acp: World) -> None:
    plugin = opencode_acp.tree / ".opencode" / "plugin" / "evil.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const Evil = async () => ({})\n")
    end = await opencode_acp.run("t", opencode_acp.task())
    assert isinstance(end, Failed)
    assert f"opencode_acp is not started: it would run {plugin}" in end.message
