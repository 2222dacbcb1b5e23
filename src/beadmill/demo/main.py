"""``beadmill demo``: one ticket from draft to merged change, by the real daemon through its public API, with no key."""

from __future__ import annotations

import asyncio
import json as jsonlib
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from beadmill.demo import house, material
from beadmill.demo.client import Api
from beadmill.demo.clis import CLIS
from beadmill.demo.person import Person, Stuck
from beadmill.demo.show import Screen, screen
from beadmill.demo.watch import Look, Story, look
from beadmill.errors import BeadmillError, Conflict

Answers = Literal["auto", "ask"]
KEY = f"{material.SHORT}-1"
SEATS = ("alpha", "beta", "gamma")
SOON = 0.7  # seconds between two looks while much happens: the API allows 200 reads a minute
LATE = 5.0  # seconds after which we look even if nothing was heard


@dataclass(frozen=True, slots=True)
class Wish:
    agents: tuple[str, ...]  # the three seats are dealt out to them in turn
    answers: Answers
    keep: bool


def run_demo(*, agent: str = "scripted", answers: Answers = "auto", json: bool = False, keep: bool = False) -> int:
    """Returns 0 only when the change was merged. ``agent`` may name several, with commas. Words go to stderr; with ``json`` the result is one line on stdout."""
    try:
        result = asyncio.run(_demo(Wish(tuple(agent.split(",")), answers, keep)))
    except KeyboardInterrupt:
        print("\nDetached; nothing was canceled. Back to it: beadmill demo --keep", file=sys.stderr)  # noqa: T201
        return 130
    except BeadmillError as error:
        if isinstance(error, Stuck):
            error.next = house.command(house.place().home, error.next)
        _tell(error)
        if json:
            print(jsonlib.dumps(error.envelope(), ensure_ascii=False))  # noqa: T201
        return error.exit_code
    if json:
        print(jsonlib.dumps(result, ensure_ascii=False))  # noqa: T201
    return 0 if result["status"] == "completed" and result["change"]["state"] == "merged" else 1


def _tell(error: BeadmillError) -> None:
    for label, text in (("demo: ", error.message), ("kept: ", error.kept), ("next: ", error.next)):
        if text:
            print(f"{label}{text}", file=sys.stderr)  # noqa: T201


async def _demo(wish: Wish) -> dict[str, Any]:
    place, ask = house.place(), wish.answers == "ask"
    with screen() as out:
        out.say(_introduction(wish.agents))
        out.say(f"Everything of the demo lies in {place.root}")
        async with house.opened(place, agents=wish.agents, keep=wish.keep, stay=ask, say=out.say) as opened:
            await _prepared(opened.api, place, wish)
            if ask:
                out.say(f"The same in the browser, signed in once: {await opened.link()}")
            began = time.monotonic()
            person = None if ask else Person(opened.api, KEY)
            last = await Watch(opened.api, out, person, place.home).until_over()
            result = await summary(opened.api, last, time.monotonic() - began)
    for line in _ending(result, place):
        out.say(line)
    return result


def _introduction(agents: Sequence[str]) -> str:
    real = [CLIS[name].title for name in agents if name in CLIS]
    if not real:
        return "Beadmill demo. The model is SCRIPTED: its replies ship with Beadmill and no model is asked. All else is real."
    names = f"{', '.join(real[:-1])} and {real[-1]}" if len(real) > 1 else real[0]
    return f"Beadmill demo with the real {names}. The model is SCRIPTED, on a loopback port; no model is asked."


async def _prepared(api: Api, place: material.Place, wish: Wish) -> None:
    """The project is attached, the ticket there and started. Each is done once, however often the demo is called."""
    with suppress(Conflict):  # attached already
        body = {"path": str(place.checkout), "short": material.SHORT, "name": "units (demo)"}
        await api.call("projects.add", body=body, once="demo:project")
    seats = [f"{agent}/{model}" for agent, model in zip(cycle(wish.agents), SEATS, strict=False)]
    new = {"project": material.SHORT, **material.ticket(), "overrides": {"council": {"seats": seats}}}
    await api.call("tickets.create", body=new, once="demo:ticket")
    ticket = await api.call("tickets.show", key=KEY)
    if ticket["state"] == "draft":
        await api.call("tickets.start", key=KEY, once="demo:start")


@dataclass(slots=True)
class Watch:
    """Looks at the ticket whenever something happened to it, tells what changed, and answers when it is asked to."""

    api: Api
    out: Screen
    person: Person | None
    home: Path
    told: set[str] = field(default_factory=set)

    async def until_over(self) -> Look:
        """The last look. Raises Stuck when only a real person can go on, Unavailable when the daemon is gone."""
        heard = asyncio.Event()
        listening = asyncio.create_task(self._listen(heard))
        story, seen = Story(self.api), None
        try:
            while True:
                heard.clear()
                seen = await look(self.api, KEY, seen)
                for line in await story.lines(seen):
                    self.out.say(f"  {line}")
                self.out.update(seen)
                if seen.over:
                    return seen
                await self._gates(seen)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LATE):
                        await heard.wait()
                await asyncio.sleep(SOON)
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening

    async def _listen(self, heard: asyncio.Event) -> None:
        async for _ in self.api.follow(f"ticket:{KEY}"):
            heard.set()

    async def _gates(self, seen: Look) -> None:
        for gate in seen.gates:
            if self.person is not None:
                said = await self.person.answer(gate)
                if said:
                    self.out.say(f"  > {said}")
            elif gate["id"] not in self.told:
                self.told.add(gate["id"])
                self.out.say(f"  waits for you: {gate['title']}\n    {house.command(self.home, gate['answer_with'])}")


async def summary(api: Api, last: Look, wall: float) -> dict[str, Any]:
    """The result as one JSON object. ``cost_usd`` None = nothing was priced; seconds are of this call."""
    run, change = last.run, last.run.get("change") or {}
    answered = await api.call("gates.listing", query={"ticket": KEY, "state": "answered", "limit": 200})
    done = sum(bead["state"] == "done" for bead in last.beads)
    return {
        "ticket": KEY,
        "status": last.status,
        "change": {
            "state": change.get("state", ""),
            "sha": change.get("merge_sha"),
            "branch": change.get("branch", ""),
        },
        "visits": len(run.get("visits", ())),
        "beads": {"done": done, "total": len(last.beads)},
        "retries": sum(bead["attempts"] for bead in last.beads) - done,
        "gates": len(answered["items"]),
        "tokens": run["spend"]["tokens"],
        "cost_usd": run["spend"]["cost_usd"],
        "agent_seconds": round(run["spend"]["agent_seconds"], 3),
        "wall_seconds": round(wall, 3),
    }


def _ending(result: Mapping[str, Any], place: material.Place) -> list[str]:
    change, beads = result["change"], result["beads"]
    if change["state"] != "merged":
        return [f"{result['ticket']} ended as {result['status']}; its change is {change['state'] or 'not there'}."]
    return [
        f"{result['ticket']} is merged: {change['branch']} as {change['sha'][:12]}.",
        f"{beads['done']} beads, {result['retries']} of their tries undone and repeated, {result['gates']} decisions at gates.",
        f"{result['tokens']:,} tokens of a scripted model, {result['wall_seconds']:.0f} s.",
        f"The merged change:  git -C {shlex.quote(str(place.origin))} log -p main",
        f"All of it again:    {house.command(place.home, 'beadmill open')}",
        "Your own ticket:    beadmill project add <path of a repository>",
    ]
