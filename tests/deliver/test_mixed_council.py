"""OpenCode, Codex and Claude Code, the real ones, in one council: planning from the ticket to the last approval.

The model behind them is scripted and on a loopback port; the run is canceled when the plan of work is approved.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from beadmill.demo import house, material
from beadmill.demo.client import RestApi
from beadmill.demo.person import Person

# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
CLIS = {name: os.environ.get(f"BEADMILL_TEST_{name.upper()}", "") for name in ("codex", "opencode")}
CLIS["claude_code"] = os.environ.get("BEADMILL_TEST_CLAUDE", "")
SEATS = ["claude_code/alpha", "codex/beta", "opencode/gamma"]
NODES = ("interview", "prd", "beads")
KEY = "DEMO-1"

pytestmark = [
    pytest.mark.deliver,
    pytest.mark.codex,
    pytest.mark.claude_code,
    pytest.mark.opencode,
    pytest.mark.timeout(600),
]


@dataclass(frozen=True, slots=True)
class Planned:
    """``councils`` by node, as the API shows them; ``visits`` with their outcomes; the project's record."""

    councils: Mapping[str, Any]
    visits: Mapping[str, str]
    record: Any


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    root = tmp_path_factory.mktemp("mixed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root))
        patch.setenv("BEADMILL_HOME", str(root / "home"))
        patch.setenv("BEADMILL_AGENTS", json.dumps({name: {"path": path} for name, path in CLIS.items()}))
        return asyncio.run(plan(house.place()))


async def plan(place: material.Place) -> Planned:
    agents = [seat.partition("/")[0] for seat in SEATS]
    async with house.opened(place, agents=agents, keep=False, stay=False, say=lambda _: None) as opened:
        api = opened.api
        await api.call("projects.add", body={"path": str(place.checkout), "short": material.SHORT})
        ticket = {"project": material.SHORT, **material.ticket(), "overrides": {"council": {"seats": SEATS}}}
        await api.call("tickets.create", body=ticket)
        await api.call("tickets.start", key=KEY)
        run = await approved(api)
        councils = {node: await api.call("councils.show", run=run["id"], node=node) for node in NODES}
        visits = {v["node"]: v["outcome"] for v in run["visits"] if v["node"] in NODES}
        record = await api.call("councils.record", short=material.SHORT)
        await api.call("tickets.cancel", key=KEY)
    await house.clear(place)
    return Planned(councils, visits, record)


async def approved(api: RestApi) -> Any:
    """The demo's person answers every gate; the run as it is when the plan of work is approved."""
    person = Person(api, KEY)
    async for _ in api.follow(f"ticket:{KEY}"):
        run = (await api.call("tickets.show", key=KEY))["current"]
        if any(v["node"] == "beads" and v["outcome"] for v in run["visits"]):
            return run
        for gate in run["gates"]:
            await person.answer(gate)
    raise AssertionError("the events ended")


def test_three_real_clis_plan_a_ticket_through_all_three_artifacts(planned: Planned) -> None:
    assert planned.visits == dict.fromkeys(NODES, "approved")


@pytest.mark.parametrize("node", NODES)
def test_every_cli_drafts_and_votes_on_the_two_other_drafts(planned: Planned, node: str) -> None:
    found = planned.councils[node]
    drafts = [(one["label"], one["outcome"]) for one in found["drafts"]["drafts"]]
    assert drafts == [(seat, "completed") for seat in SEATS]
    assert [sorted(b["order"]) for b in found["votes"]["ballots"]] == [[1, 2], [0, 2], [0, 1]]
    assert [len(b["scores"]) for b in found["votes"]["ballots"]] == [2, 2, 2]


def test_every_cli_wins_once_and_the_ideas_of_others_are_booked_to_them(planned: Planned) -> None:
    wins = {seat["label"]: list(seat["wins"]) for seat in planned.record["seats"]}
    assert wins == {"claude_code/alpha": ["prd"], "codex/beta": ["interview"], "opencode/gamma": ["beads"]}
    assert sum(seat["adopted"] for seat in planned.record["seats"]) > 0


def test_the_work_of_every_cli_is_counted(planned: Planned) -> None:
    assert [seat["spend"]["tokens"] > 0 for seat in planned.record["seats"]] == [True] * 3
