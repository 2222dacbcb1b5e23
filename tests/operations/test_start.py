"""A start: everything is known to be right before anything is made, and what fails leaves the draft as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.agents.contract import Capabilities, Model
from beadmill.domain.sop import NodeDef
from beadmill.domain.values import Actor
from beadmill.errors import Conflict, Invalid, Unavailable
from beadmill.operations import tickets, views
from beadmill.operations._seats import check_seats
from beadmill.operations.ports import Ports
from beadmill.settings import RunSettings
from beadmill.store import tables as t
from beadmill.store.journal import tokens

CATALOG = Capabilities(catalog=True)
SEATS = {"council": {"seats": ["shop/acme/big", "shop/acme/small"]}}


@dataclass(frozen=True, slots=True)
class Shop:
    """An agent that knows its models."""

    can: Capabilities = CATALOG
    fails: bool = False

    async def models(self) -> Sequence[Model]:
        if self.fails:
            raise Unavailable("no network")
        return [Model("acme/big"), Model("acme/tiny")]


@dataclass(frozen=True, slots=True)
class Catalog:
    agent: Shop

    def names(self) -> Sequence[str]:
        return ("shop",)

    def load(self, name: str) -> Any:
        return self.agent


def with_agent(ports: Ports, agent: Shop) -> Ports:
    return replace(ports, agents=Catalog(agent))


@pytest.fixture
async def draft(ports: Ports, project: views.ProjectView, owner: Actor) -> str:
    made = await tickets.create(ports, project.short, title="One", sop="deliver", overrides=SEATS, actor=owner)
    return made.key


def runs(ports: Ports) -> int:
    query = sa.select(sa.func.count()).select_from(t.runs)
    return int(ports.store.read_now(lambda conn: conn.execute(query).scalar_one()))


async def test_a_model_that_its_agent_does_not_have_is_refused_before_anything_is_made(
    ports: Ports, draft: str, owner: Actor
) -> None:
    with pytest.raises(Invalid) as refused:
        await tickets.start(with_agent(ports, Shop()), draft, actor=owner)

    assert (refused.value.code, refused.value.message) == ("MODEL_UNKNOWN", "shop has no model 'acme/small'")
    assert (runs(ports), (await tickets.show(ports, draft, actor=owner)).state) == (0, "draft")


@pytest.mark.parametrize("agent", [Shop(fails=True), Shop(Capabilities())], ids=["cannot say now", "never says"])
async def test_an_agent_that_cannot_list_its_models_refuses_none(
    ports: Ports, draft: str, owner: Actor, agent: Shop
) -> None:
    assert (await tickets.start(with_agent(ports, agent), draft, actor=owner)).state == "active"


async def test_a_provider_that_the_agent_does_not_name_is_left_to_the_first_turn(
    ports: Ports, draft: str, owner: Actor
) -> None:
    await tickets.edit(ports, draft, {"overrides": {"council": {"seats": ["shop/other/x"] * 2}}}, actor=owner)
    assert (await tickets.start(with_agent(ports, Shop()), draft, actor=owner)).state == "active"


async def test_an_unknown_agent_is_refused_before_anything_is_made(ports: Ports, draft: str, owner: Actor) -> None:
    with pytest.raises(Invalid, match="no such agent: shop"):
        await tickets.start(ports, draft, actor=owner)
    assert runs(ports) == 0


async def test_of_two_starts_at_once_one_runs_and_the_other_is_told(ports: Ports, draft: str, owner: Actor) -> None:
    both = with_agent(ports, Shop(Capabilities()))
    ended = await asyncio.gather(*(tickets.start(both, draft, actor=owner) for _ in (1, 2)), return_exceptions=True)

    (refused,) = [one for one in ended if isinstance(one, BaseException)]
    assert isinstance(refused, Conflict)
    assert (refused.code, refused.status, runs(ports)) == ("NOT_DRAFT", 409, 1)


async def test_a_start_that_fails_half_way_leaves_a_draft_that_can_be_started(
    ports: Ports, draft: str, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("the disk is gone")

    able = with_agent(ports, Shop(Capabilities()))
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "start", fails)
        with pytest.raises(OSError, match="the disk is gone"):
            await tickets.start(able, draft, actor=owner, key="click")
    failed = await tickets.show(ports, draft, actor=owner)
    begun = await tickets.start(able, draft, actor=owner, key="click")

    assert (failed.state, failed.status, failed.runs) == ("draft", "draft", ())
    assert (begun.state, begun.run) == ("active", f"{draft}-r1")


async def test_the_same_start_again_is_the_same_start(ports: Ports, draft: str, owner: Actor) -> None:
    first = await tickets.start(with_agent(ports, Shop(Capabilities())), draft, actor=owner, key="click")
    again = await tickets.start(with_agent(ports, Shop()), draft, actor=owner, key="click")
    assert (again.run, runs(ports)) == (first.run, 1)


def test_an_sop_that_plans_with_one_seat_needs_one(ports_of_nobody: Ports) -> None:
    settings = RunSettings().overlaid({"council": {"seats": ["shop/x"]}})
    solo = [NodeDef(kind, kind, {"mode": "solo"}) for kind in ("interview", "prd", "beads")]
    check_seats(ports_of_nobody, settings, solo, project="API")
    with pytest.raises(Invalid, match="1 of at least 2 seats"):
        check_seats(ports_of_nobody, settings, [*solo, NodeDef("more", "prd")], project="API")


@pytest.fixture
def ports_of_nobody() -> Any:
    @dataclass(frozen=True, slots=True)
    class Only:
        agents: Catalog = Catalog(Shop())

    return Only()
