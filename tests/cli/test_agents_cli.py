"""Agents at the command line: an install that is followed, failed, cancelled; a turn; a blind budget's warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_for_tests import Cli
from registry_for_tests import Registry, registry

from beadmill.cli.common import blind, money


@pytest.fixture(scope="module")
def shop() -> Iterator[Registry]:
    with registry() as made:
        made.add("@openai/codex", {"bin/codex": "#!/bin/sh\necho codex-cli 9.9.9\n"}, bin={"codex": "bin/codex"})
        yield made


@pytest.fixture(scope="module")
def cli(place: Path, shop: Registry) -> Iterator[Cli]:
    """A daemon whose npm knows one registry, and whose scripted agent says OK."""
    scenario = place / "scenario.json"
    scenario.write_text(json.dumps({"replies": [{"match": {"template": "probe"}, "steps": [{"reply": "OK"}]}]}))
    (place / "home").mkdir(mode=0o700)
    (place / "home/config.toml").write_text(f'[agents.scripted]\nscenario = "{scenario}"\n')
    npm = (("npm_config_registry", shop.url), ("npm_config_fetch_retries", "0"))
    made = Cli(place, (*npm, ("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(place))))
    yield made
    made("stop")


def test_an_install_shows_what_npm_says_and_how_it_ended(cli: Cli) -> None:
    said = cli("agent", "install", "codex")
    assert (said.code, said.out) == (0, "codex 9.9.9 is installed: beadmill agent probe codex\n")
    lines = said.err.splitlines()
    assert lines.count(f"$ npm install --global --prefix {cli.home}/agents/codex @openai/codex") == 1
    assert any("npm http fetch GET 200" in line for line in lines)


def test_a_failed_install_names_the_command_what_is_kept_and_what_to_do(cli: Cli, shop: Registry) -> None:
    kept = shop.packages.pop("@openai/codex")
    said = cli("agent", "install", "codex")
    shop.packages["@openai/codex"] = kept
    rows = dict(line.split("  ", 1) for line in said.out.splitlines())
    assert said.code == 1
    assert (
        rows["failed"]
        .strip()
        .startswith(f"npm install --global --prefix {cli.home}/agents/codex @openai/codex: failed")
    )
    assert "npm config get registry" in rows["next"]


def test_an_install_that_runs_is_told_and_cancelled(cli: Cli, shop: Registry) -> None:
    shop.go.clear()
    begun = cli("agent", "install", "codex", "--detach", "--json").json
    cancelled = cli("agent", "cancel", "codex")
    shop.go.set()
    assert begun["state"] == "running"
    assert cancelled.out == "canceled; what was installed before is still there\n"


def test_a_turn_is_taken_when_asked_for(cli: Cli) -> None:
    took = cli("agent", "probe", "scripted", "--turn", "--model", "small", "--json")
    assert (took.code, took.json["text"], took.json["model"], took.json["cost_source"]) == (
        0,
        "OK",
        "small",
        "unpriced",
    )
    told = cli("agent", "probe", "scripted", "--turn")
    assert "1 unpriced turn" in told.out


def test_a_probe_without_a_turn_lists_the_models(cli: Cli) -> None:
    said = cli("agent", "probe", "scripted")
    assert (said.code, said.out.splitlines()[-1].split()[0]) == (0, "scripted")


def test_money_says_what_it_does_not_hold() -> None:
    spend = {"tokens": 1200, "cost_usd": 1.2, "unpriced": 3}
    assert money(spend) == "1,200 tokens, $1.20 + 3 unpriced turns"


def test_a_blind_budget_is_told_with_the_way_out() -> None:
    run = {"budget": {"blind": True, "usd": 5.0, "unpriced": 2}}
    assert list(blind(run)) == [
        "The budget of $5.00 does not see 2 unpriced turns: set a price in config.toml ([prices]), or limit tokens"
    ]
