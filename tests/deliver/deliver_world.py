"""A whole run of ``deliver`` in this process: the demo's repository and scripted model, the real house, a person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from beadmill.app import House, build
from beadmill.demo import material
from beadmill.domain.values import Actor
from beadmill.operations import gates, interviews, projects, tickets
from beadmill.settings import RunSettings, Settings
from beadmill.store import tables

ME = Actor("user", "owner", "test")
SEATS = ["scripted/alpha", "scripted/beta", "scripted/gamma"]
KEY = "DEMO-1"


@dataclass(frozen=True, slots=True)
class World:
    """``place`` holds the repository, its origin, the home and the scenario."""

    place: material.Place

    @classmethod
    async def make(cls, root: Path) -> World:
        place = material.Place(root)
        await material.make_repository(place)
        material.write_scenario(place)
        return cls(place)

    def settings(self) -> Settings:
        agents = {"scripted": {"scenario": str(self.place.scenario)}}
        defaults = RunSettings(manual_qa="off")
        return Settings(home=self.place.home, agents=agents, port=0, defaults=defaults)

    def house(self) -> House:
        return build(self.settings())

    async def begin(self, house: House, **overrides: Any) -> None:
        """Attaches the repository, writes the ticket and starts it."""
        wanted = {"council": {"seats": SEATS}, **overrides}
        await projects.add(
            house.ports, str(self.place.checkout), actor=ME, name="Units", short=material.SHORT, overrides=wanted
        )
        await tickets.create(house.ports, material.SHORT, actor=ME, **material.ticket())
        await tickets.start(house.ports, KEY, actor=ME)


async def answer_one(house: House, gate: Mapping[str, Any]) -> None:
    """As a person would: the demo's answers, approve, merge. A blocked run is a failure of the test."""
    assert gate["kind"] in ("interview", "approve", "merge"), dict(gate)
    if gate["kind"] == "interview":
        view = await interviews.show(house.ports, KEY, actor=ME)
        said = {q["id"]: material.answers()[q["id"]] for q in view.questions if q["id"] in material.answers()}
        await interviews.answer(house.ports, KEY, answers=said, etag=gate["etag"], actor=ME, key=gate["id"])
        return
    choice = "merge" if gate["kind"] == "merge" else "approve"
    await gates.answer(house.ports, gate["id"], choice, etag=gate["etag"], actor=ME, key=gate["id"])


def open_gates(house: House) -> list[Mapping[str, Any]]:
    g, v = tables.gates, tables.visits
    query = sa.select(g).join(v, v.c.id == g.c.visit_id).where(g.c.state == "open", v.c.state == "parked")
    return [dict(row) for row in house.store.read_now(lambda conn: conn.execute(query).mappings().all())]


def run_state(house: House) -> str:
    query = sa.select(tables.runs.c.state)
    return str(house.store.read_now(lambda conn: conn.execute(query).scalar()))


async def through(house: House, *, seconds: float = 300) -> None:
    """Answers everything until the run has ended."""
    async with asyncio.timeout(seconds):
        async for _ in house.store.events.subscribe(every=lambda: 0.1, rest=0.2):
            if run_state(house) != "active":
                return
            for gate in open_gates(house):
                await answer_one(house, gate)
