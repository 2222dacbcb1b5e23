"""Agents as operations: installs that are watched, cancelled and asked for twice, and one tiny real turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from house_for_tests import OWNER
from registry_for_tests import Registry, registry

from beadmill import app
from beadmill.domain.values import Actor
from beadmill.errors import NotFound, Refused
from beadmill.operations import agents, events, views
from beadmill.operations.ports import Ports
from beadmill.settings import Settings
from beadmill.store.db import Store

PROGRAM = "#!/bin/sh\necho codex-cli 9.9.9\n"
READER = Actor("user", "reader", "api", scopes=("read",))
Take = Callable[..., Any]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with a codex, and a machine that has none."""
    with registry() as made:
        made.add("@openai/codex", {"bin/codex": PROGRAM}, bin={"codex": "bin/codex"})
        monkeypatch.setenv("npm_config_registry", made.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex-home"))
        monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path))
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        yield made


async def ended(ports: Ports) -> views.InstallView:
    await asyncio.wait_for(ports.desk.installs["codex"].over.wait(), 30)
    task = ports.desk.installs["codex"].task
    assert task is not None
    await task
    return await agents.progress(ports, "codex", actor=OWNER)


async def codex(ports: Ports) -> views.AgentView:
    return next(a for a in await agents.listing(ports, actor=OWNER) if a.name == "codex")


@pytest.mark.usefixtures("shop")
async def test_an_installed_agent_is_found_in_the_data_home(ports: Ports) -> None:
    begun = await agents.install(ports, "codex", actor=OWNER)
    over = await ended(ports)
    found = await codex(ports)
    assert (begun.state, over.state, over.version) == ("running", "done", "9.9.9")
    assert (found.state, found.version, found.ours) == ("ready", "9.9.9", True)
    assert Path(found.path).is_relative_to(ports.settings.home / "agents" / "codex")
    assert (found.signed_in, found.sign_in.startswith("codex login")) == (False, True)


@pytest.mark.usefixtures("shop")
async def test_what_npm_says_is_told_as_events_each_line_once(ports: Ports) -> None:
    await agents.install(ports, "codex", actor=OWNER)
    over = await ended(ports)
    told = (await events.since(ports, topics=["agents"], actor=OWNER)).events
    lines = [line for event in told for line in event.data["lines"]]
    assert tuple(lines) == over.lines
    assert [event.data["first"] for event in told] == sorted({event.data["first"] for event in told})
    assert (told[-1].kind, told[-1].data["state"], told[-1].actor) == ("agent.install", "done", str(OWNER))


@pytest.mark.usefixtures("shop")
async def test_an_install_that_ends_while_its_lines_are_written_tells_its_end(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store.write

    async def late(self: Store, work: Any) -> Any:
        await ports.desk.installs["codex"].over.wait()
        return await real(self, work)

    monkeypatch.setattr(Store, "write", late)
    await agents.install(ports, "codex", actor=OWNER)
    await ended(ports)
    told = (await events.since(ports, topics=["agents"], actor=OWNER)).events
    assert [event.data["state"] for event in told] == ["running", "done"]


async def test_a_second_request_joins_the_install_that_runs(ports: Ports, shop: Registry) -> None:
    shop.go.clear()
    first = await agents.install(ports, "codex", actor=OWNER)
    await asyncio.to_thread(shop.asked.wait, 30)
    second = await agents.install(ports, "codex", actor=OWNER)
    shop.go.set()
    assert (second.started, second.state, second.lines[0]) == (first.started, "running", over_command(ports))
    assert (await ended(ports)).state == "done"


def over_command(ports: Ports) -> str:
    return f"$ npm install --global --prefix {ports.settings.home}/agents/codex @openai/codex"


async def test_a_cancelled_install_ends_and_can_be_asked_for_again(ports: Ports, shop: Registry) -> None:
    shop.go.clear()
    await agents.install(ports, "codex", actor=OWNER)
    await asyncio.to_thread(shop.asked.wait, 30)
    assert (await agents.cancel(ports, "codex", actor=OWNER)).state == "canceled"
    assert (await codex(ports)).ours is False
    shop.go.set()
    await agents.install(ports, "codex", actor=OWNER)
    assert (await ended(ports)).state == "done"


async def test_a_failed_install_keeps_the_command_the_words_and_the_remedy(ports: Ports, shop: Registry) -> None:
    shop.packages.clear()
    await agents.install(ports, "codex", actor=OWNER)
    error = (await ended(ports)).error
    assert error is not None
    assert (error["code"], error["kept"]) == ("AGENT_INSTALL", "nothing was changed")
    assert error["details"]["command"] == over_command(ports)[2:]
    assert "no such package" in error["next"]
    assert any("404" in line for line in error["details"]["tail"])


async def test_an_install_that_was_never_asked_for_is_not_found(ports: Ports) -> None:
    for operation in (agents.progress, agents.cancel):
        with pytest.raises(NotFound, match="codex was not installed since the daemon started"):
            await operation(ports, "codex", actor=OWNER)


async def test_who_only_reads_may_neither_install_nor_cancel_nor_spend(ports: Ports) -> None:
    for operation in (agents.install, agents.cancel, agents.turn):
        with pytest.raises(Refused):
            await operation(ports, "codex", actor=READER)


async def test_a_listing_may_be_answered_from_what_was_just_found(ports: Ports) -> None:
    looked = await agents.listing(ports, actor=OWNER)
    again = await agents.listing(ports, within=60, actor=OWNER)
    assert again == looked
    assert all(a.can is b.can for a, b in zip(again, looked, strict=True))


# --- a turn -------------------------------------------------------------------------------------------------------
@pytest.fixture
def take(tmp_path: Path) -> Iterator[Take]:
    """``await take(*steps)``: a turn of the scripted agent that acts out these steps."""
    opened: list[app.House] = []
    price = {"scripted/*": {"input": 1_000_000, "output": 0}}

    async def run(*steps: Any, model: str = "") -> views.TurnView:
        scenario = tmp_path / "scenario.json"
        scenario.write_text(json.dumps({"replies": [{"match": {"template": "probe"}, "steps": list(steps)}]}))
        options = {"scripted": {"scenario": str(scenario)}}
        opened.append(app.build(Settings(home=tmp_path / "home", agents=options, prices=price)))
        return await agents.turn(opened[-1].ports, "scripted", model=model, actor=OWNER)

    yield run
    for house in opened:
        house.store.close()


async def test_a_turn_tells_time_model_tokens_and_cost(take: Take) -> None:
    took = await take({"reply": "OK"}, model="small")
    assert (took.ok, took.end, took.text, took.model) == (True, "Replied", "OK", "small")
    assert (took.cost_source, took.cost_usd) == ("override", float(took.input + took.cached))
    assert took.seconds > 0


async def test_a_turn_that_fails_says_why_and_what_to_do(take: Take) -> None:
    took = await take({"fail": {"why": "bad_model", "message": "there is no model small"}})
    assert (took.ok, took.end, took.why, took.message) == (False, "Failed", "bad_model", "there is no model small")
    assert took.next.startswith("beadmill agent probe lists its models")


async def test_a_limit_is_an_answer_too(take: Take) -> None:
    took = await take({"limit": {"seconds": 60, "message": "too many requests"}})
    assert (took.end, took.why, took.message) == ("Limited", "limit", "too many requests")


async def test_a_turn_leaves_nothing_behind(take: Take, tmp_path: Path) -> None:
    await take({"shell": "touch here"}, {"reply": "OK"})
    home = tmp_path / "home"
    assert (list((home / "sessions").iterdir()), list((home / "workspaces/probes").iterdir())) == ([], [])


async def test_an_agent_that_cannot_start_is_an_answer(take: Take, tmp_path: Path) -> None:
    house = app.build(Settings(home=tmp_path / "home"))
    took = await agents.turn(house.ports, "scripted", actor=OWNER)
    house.store.close()
    assert (took.ok, took.why, took.message) == (False, "missing", "the scripted agent has no scenario file")
