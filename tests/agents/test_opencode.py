"""What only OpenCode has: a server, provider/model names, a channel for questions, and a repository that may be hostile."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.agents.contract import Model
from beadmill.agents.opencode import OpenCodeAgent
from beadmill.agents.opencode_home import Home, code_of_project, read_jsonc
from beadmill.domain.ended import Asked, Failed, Lost, Replied, SessionRef, Stopped, Why
from beadmill.domain.values import Access, Json, Seat
from beadmill.processes.folder import read_json
from beadmill.processes.session import FolderSession
from beadmill.processes.spec import BoxSpec, EventKind
from tests.agents.bench_opencode import Shared
from tests.processes.session_world import World, until

SCHEMA = {"type": "object", "properties": {"v": {"type": "string"}, "n": {"type": "integer"}}, "required": ["v"]}


async def output(opencode: World, command: str, token: str = "t") -> str:
    """What one shell command of the model printed."""
    opencode.play({"shell": command}, {"reply": "done"})
    session = await opencode.start(token, opencode.task())
    (done,) = [e.data async for _, e in session.events() if e.kind is EventKind.TOOL_DONE]
    return str(done["output"])


def tools(request: Json) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools") or []}


def prompts(shared: Shared, text: str) -> int:
    """How often the model was asked with this text as the last word of the user."""
    said = [[m for m in request["messages"] if m["role"] == "user"][-1] for request in shared.model.seen]
    return sum(text in json.dumps(message["content"]) for message in said)


@pytest.mark.opencode
async def test_a_schema_comes_back_as_data(opencode: World) -> None:
    opencode.play({"reply": '{"v": "pass", "n": 3}'})
    end = await opencode.run("t", opencode.task(schema=SCHEMA))
    assert isinstance(end, Replied)
    assert (end.data, json.loads(end.text)) == ({"v": "pass", "n": 3}, {"v": "pass", "n": 3})


@pytest.mark.opencode
async def test_a_reply_that_is_no_data_is_read_as_text(opencode: World) -> None:
    opencode.play({"reply": "I would rather not"})
    end = await opencode.run("t", opencode.task(schema=SCHEMA))
    assert isinstance(end, Replied)
    assert (end.data, end.text) == (None, "I would rather not")


@pytest.mark.opencode
async def test_the_model_is_asked_once_per_step_and_never_for_a_title(opencode: World, opencode_shared: Shared) -> None:
    opencode.play({"shell": "true"}, {"reply": "done"})
    seat = Seat("opencode", "scripted-small", "high")
    await opencode.run("t", replace(opencode.task(), seat=seat))
    asked = [(r["model"], r.get("reasoning_effort"), "bash" in tools(r)) for r in opencode_shared.model.seen]
    assert asked == [("scripted-small", "high", True)] * 2


@pytest.mark.opencode
@pytest.mark.parametrize(
    ("access", "offered"),
    [
        (Access.NONE, set()),
        (Access.READ, {"read", "glob", "grep", "todowrite"}),
        (Access.WRITE, {"read", "glob", "grep", "todowrite", "bash", "edit", "write"}),
    ],
)
async def test_an_access_decides_which_tools_are_offered(
    opencode: World, opencode_shared: Shared, access: Access, offered: set[str]
) -> None:
    await opencode.run("t", opencode.task(access=access))
    assert tools(opencode_shared.model.seen[-1]) == offered


@pytest.mark.opencode
async def test_a_question_ends_the_turn_and_its_answer_goes_on(opencode: World) -> None:
    ask = {"ask": {"question": "Which colour?", "options": ["red", "blue"]}}
    opencode.play_all([{"match": {"text": "blue it is"}, "steps": [{"reply": "painted"}]}, {"steps": [ask]}])
    asked = await opencode.run("t1", replace(opencode.task(), questions=True))
    assert isinstance(asked, Asked)
    assert (asked.question, asked.options) == ("Which colour?", ("red", "blue"))
    end = await opencode.run("t2", replace(opencode.task("blue it is", resume=asked.session), questions=True))
    assert isinstance(end, Replied)
    assert (end.text, end.session.conversation) == ("painted", asked.session.conversation)


@pytest.mark.opencode
async def test_commands_of_the_model_see_no_key_and_carry_their_session(opencode: World) -> None:
    seen = dict(line.partition("=")[::2] for line in (await output(opencode, "env")).splitlines())
    assert (seen["SCRIPTED_MODEL_KEY"], seen["OPENCODE_SERVER_PASSWORD"], seen["BEADMILL_SESSION"]) == ("", "", "t")


@pytest.mark.opencode
async def test_money_is_what_opencode_says_and_nothing_for_a_model_without_prices(opencode: World) -> None:
    ends = []
    for n, model in enumerate(("scripted/scripted-large", "scripted/unpriced")):
        ends.append(await opencode.run(f"t{n}", replace(opencode.task(), seat=Seat("opencode", model))))
    priced, free = (end.usage for end in ends)
    assert priced.cost_usd == pytest.approx((2 * priced.input + 10 * priced.output + 0.2 * priced.cached) / 1e6)
    assert replace(free, model="") == replace(priced, cost_usd=None, model="")


@pytest.mark.opencode
async def test_a_model_nobody_knows_is_named(opencode: World) -> None:
    end = await opencode.run("t", replace(opencode.task(), seat=Seat("opencode", "nobody/nothing")))
    assert isinstance(end, Failed)
    assert (end.why, "nobody/nothing" in end.message) == (Why.BAD_MODEL, True)


@pytest.mark.opencode
async def test_a_conversation_that_is_gone_is_said(opencode: World) -> None:
    gone = SessionRef("t0", "ses_dd2e8adacffeaEfWYqqE4lX1bF")
    end = await opencode.run("t", opencode.task(resume=gone))
    assert isinstance(end, Failed)
    assert "does not know the conversation ses_dd2e8adacffeaEfWYqqE4lX1bF" in end.message


@pytest.mark.opencode
@pytest.mark.parametrize("why", ["truncated", "garbled", "internal"])
async def test_what_else_a_provider_does_ends_the_turn(opencode: World, why: str) -> None:
    expected = {"truncated": Why.TRUNCATED, "garbled": Why.TRANSPORT, "internal": Why.OVERLOADED}
    opencode.play({"fail": {"why": why}})
    end = await opencode.run("t", opencode.task())
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (expected[why], why != "truncated")


# --- nothing is asked twice


def kill_runner(session: FolderSession) -> None:
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)


@pytest.mark.opencode
async def test_an_answer_that_came_while_the_runner_was_dead_is_found_and_not_asked_for_again(
    opencode: World, opencode_shared: Shared
) -> None:
    opencode.play({"shell": "touch up; while [ ! -e go ]; do sleep 0.02; done"}, {"reply": "the answer"})
    lost = await opencode.start("/code.1/a#0/1", opencode.task("a riddle"))
    await until((opencode.tree / "up").exists)
    os.kill(read_json(lost.folder / "owner.json")["pid"], signal.SIGSTOP)  # it hears no more, and lets nobody release
    (opencode.tree / "go").touch()
    await until(lambda: prompts(opencode_shared, "a riddle") == 2)
    kill_runner(lost)
    assert await lost.wait() == Lost()
    again = await opencode.run("/code.1/a#0/2", opencode.task("a riddle"))
    assert isinstance(again, Replied)
    assert (again.text, prompts(opencode_shared, "a riddle")) == ("the answer", 2)


@pytest.mark.opencode
async def test_a_prompt_that_was_not_answered_is_taken_out_and_asked_once_more(
    opencode: World, opencode_shared: Shared
) -> None:
    opencode.play({"shell": "touch up; sleep 300; sleep 300"}, {"reply": "never"})
    lost = await opencode.start("/code.1/b#0/1", opencode.task("another riddle"))
    await until((opencode.tree / "up").exists)
    kill_runner(lost)
    await lost.wait()
    await lost.stop("lost")
    assert lost.running() == set()
    opencode.play({"reply": "the answer"})
    again = await opencode.run("/code.1/b#0/2", opencode.task("another riddle"))
    assert isinstance(again, Replied)
    users = [m for m in opencode_shared.model.seen[-1]["messages"] if m["role"] == "user"]
    assert (again.text, len(users)) == ("the answer", 1)


@pytest.mark.opencode
async def test_a_server_killed_in_the_middle_fails_the_turn_and_its_conversation_can_go_on(opencode: World) -> None:
    opencode.play({"shell": "touch up; sleep 300; sleep 300"}, {"reply": "never"})
    session = await opencode.start("/code.1/c#0/1", opencode.task())
    await until((opencode.tree / "up").exists)
    server = FolderSession(Path(read_json(session.folder / "server.json")["folder"]), "")
    for proc in server.running():
        if proc.command.startswith("opencode"):
            os.kill(proc.pid, signal.SIGKILL)
    end = await session.wait()
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (Why.TRANSPORT, True)
    assert session.running() == set()
    opencode.play({"reply": "back again"})
    went_on = await opencode.run("/code.1/c#1/1", opencode.task("go on", resume=end.session))
    assert isinstance(went_on, Replied)
    assert (went_on.text, went_on.session.conversation) == ("back again", end.session.conversation)


@pytest.mark.opencode
@pytest.mark.parametrize(
    "sandbox",
    [
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("container", marks=[pytest.mark.container, pytest.mark.long]),
    ],
)
async def test_in_a_box_opencode_works_sees_no_home_and_is_stopped_with_its_tools(
    opencode: World, opencode_shared: Shared, sandbox: str
) -> None:
    opencode.box = BoxSpec(sandbox, opencode.workspace)
    seen = await output(opencode, f"echo made > a.txt; ls {Path.home()} {opencode_shared.config} 2>&1; true")
    assert ((opencode.tree / "a.txt").read_text(), seen.count("opencode.json"), "cannot access" in seen) == (
        "made\n",
        1,  # its own configuration
        True,
    )
    opencode.play({"shell": "touch up; sleep 300; sleep 300"}, {"reply": "never"})
    session = await opencode.start("t2", opencode.task())
    await until((opencode.tree / "up").exists)
    await session.stop("canceled")
    assert (session.running(), isinstance(session.ended(), Stopped)) == (set(), True)


# --- a hostile repository


@pytest.mark.opencode
async def test_configuration_and_code_of_the_repository_do_not_run(opencode: World) -> None:
    evil = opencode.tree.parent / "evil"
    evil.unlink(missing_ok=True)
    config: Json = {
        "permission": {"webfetch": "allow"},
        "mcp": {"evil": {"type": "local", "command": ["touch", str(evil)], "enabled": True}},
    }
    (opencode.tree / "opencode.json").write_text(json.dumps(config))
    (opencode.tree / "bunfig.toml").write_text('preload = ["./evil.js"]\n')
    (opencode.tree / "evil.js").write_text(f'require("fs").writeFileSync({json.dumps(str(evil))}, "x")\n')
    tool = opencode.tree / ".opencode" / "tool" / "evil.js"
    tool.parent.mkdir(parents=True)
    tool.write_text((opencode.tree / "evil.js").read_text())
    end = await opencode.run("t", opencode.task(access=Access.READ))
    assert isinstance(end, Replied)
    assert not evil.exists()


@pytest.mark.opencode
async def test_plugins_of_the_repository_keep_opencode_from_starting_a_turn(
    opencode: World, opencode_shared: Shared
) -> None:
    plugin = opencode.tree / ".opencode" / "plugins" / "evil.ts"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export default {}\n")
    end = await opencode.run("t", opencode.task())
    assert isinstance(end, Failed)
    assert f"opencode is not started: it would run {plugin}" in end.message
    assert opencode_shared.model.seen == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("repo/.opencode/plugin/a.js", "", True),
        ("repo/.opencode/plugins/a.ts", "", True),
        ("repo/.opencode/plugin/a.md", "", False),
        ("repo/opencode.jsonc", '{"plugin" : ["x"]}', True),
        ("repo/opencode.json", '{"plugins": []}', True),
        ("repo/.opencode/opencode.json", '{"model": "plugin"}', False),
        (".opencode/plugin/a.js", "", False),  # above the repository
    ],
)
def test_code_of_the_repository_is_found_up_to_its_root(tmp_path: Path, path: str, text: str, found: bool) -> None:
    folder = tmp_path / "repo" / "packages" / "one"
    folder.mkdir(parents=True)
    (tmp_path / "repo" / ".git").touch()
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    assert (code_of_project(folder) == tmp_path / path) is found


# --- what is installed


@pytest.mark.opencode
async def test_detect_tells_the_binary_its_version_and_the_sign_in(opencode: World) -> None:
    found = await registry.load("opencode", opencode.adapters["opencode"].options).detect()
    assert found is not None
    assert (found.path.read_bytes()[:4], found.version.count("."), found.signed_in) == (b"\x7fELF", 2, None)


@pytest.mark.parametrize(
    ("files", "env", "signed_in"),
    [
        ({}, {}, False),
        ({"auth.json": '{"anthropic": {"type": "api", "key": "k"}}'}, {}, True),
        ({"auth.json": "{}"}, {}, False),
        ({}, {"ANTHROPIC_API_KEY": "x"}, True),
        ({"opencode.jsonc": '{"provider": {"local": {}}, // mine\n}'}, {}, None),
    ],
)
def test_the_sign_in_is_known_without_asking_the_provider(
    tmp_path: Path, files: dict[str, str], env: dict[str, str], signed_in: bool | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    agent = OpenCodeAgent({"config_home": str(tmp_path), "data_home": str(tmp_path), "env": env})
    assert agent._signed_in() is signed_in


async def test_models_are_the_configured_ones_and_those_of_signed_in_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "opencode").mkdir()
    cached = {"known": {"env": [], "models": {"a": {"name": "A"}}}, "foreign": {"models": {"b": {}}}}
    (tmp_path / "opencode" / "models.json").write_text(json.dumps(cached))
    (tmp_path / "auth.json").write_text('{"known": {}}')
    mine: Json = {"model": "mine/m", "provider": {"mine": {"models": {"m": {"variants": {"high": {}}}}}}}
    (tmp_path / "opencode.json").write_text(json.dumps(mine))
    models = await OpenCodeAgent({"config_home": str(tmp_path), "data_home": str(tmp_path)}).models()
    assert models == [Model("known/a", "A"), Model("mine/m", "", ("high",))]


def test_the_runner_is_told_which_variables_the_configuration_names(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"provider": {"p": {"options": {"apiKey": "{env:P_KEY}"}}}}')
    adapter = registry.adapter("opencode", {"config_home": str(tmp_path), "server_idle_s": 5})
    assert ("P_KEY" in adapter.env, adapter.site, adapter.server_idle) == (True, False, 5.0)


def test_comments_and_trailing_commas_are_no_reason_to_know_nothing(tmp_path: Path) -> None:
    path = tmp_path / "opencode.jsonc"
    path.write_text('{\n  // the "model"\n  "model": "a//b", /* old */ "list": [1, 2,],\n}\n')
    assert read_jsonc(path) == {"model": "a//b", "list": [1, 2]}


def test_a_link_that_an_agent_planted_in_its_home_leads_the_next_server_nowhere(tmp_path: Path) -> None:
    user, home = tmp_path / "me", tmp_path / "home"
    (home / "opencode/.local/share").mkdir(parents=True)
    user.mkdir()
    (user / "auth.json").write_text("mine")
    (home / "opencode/.local/share/opencode").symlink_to(user)
    (home / "opencode/.config").symlink_to(user)
    Home(home / "opencode").furnish(user / "auth.json")
    assert [(p.name, p.is_symlink(), p.read_text()) for p in user.iterdir()] == [("auth.json", False, "mine")]
    assert (home / "opencode/.local/share/opencode/auth.json").readlink() == user / "auth.json"
