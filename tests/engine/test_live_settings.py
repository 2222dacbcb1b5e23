"""What a run does not freeze: recorded when a visit begins and when a try begins, and kept from then on."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from beadmill.domain.values import Json, Outcome
from beadmill.engine.port import Visit
from beadmill.errors import Blocked
from beadmill.store import tables
from tests.engine.bench import Bench, agent_task, chain, one

OK = Outcome("ok")


def tries(n: int) -> dict[str, Json]:
    return {"build": {"attempts": n}}


class Seen:
    """A node of two tries that tells what it goes by, at every activation anew."""

    def __init__(self) -> None:
        self.visit: list[int] = []
        self.tries: list[list[int]] = []

    async def __call__(self, v: Visit, _: Any) -> Outcome:
        self.visit.append(v.settings.build.attempts)
        self.tries.append([])
        for n in (1, 2):
            here = await v.at(f"try-{n}").renewed()
            self.tries[-1].append(here.settings.build.attempts)
            await here.at("inner").agent("code", agent_task)
        return OK


async def test_a_try_reads_the_settings_when_it_begins_and_keeps_them(bench: Bench) -> None:
    seen = Seen()
    bench.live = tries(7)
    bench.node("n", seen)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(1)
        bench.live = tries(8)
        bench.sessions.reply("try-1")
        await bench.started(2)
        bench.live = tries(9)
        bench.sessions.reply("try-2")
        await bench.state("n.1", "done")

    assert (seen.visit, seen.tries) == ([7, 7, 7], [[7], [7, 8], [7, 8]])


async def test_the_next_stage_reads_them_when_it_begins(bench: Bench) -> None:
    found: list[int] = []

    async def body(v: Visit, _: Any) -> Outcome:
        found.append(v.settings.build.attempts)
        bench.live = tries(8)
        return OK

    bench.live = tries(7)
    bench.node("a", body)
    bench.node("b", body)
    async with bench.daemon():
        await bench.start(chain("a", "b"), build={"attempts": 3})
        await bench.state("b.1", "done")

    assert found == [7, 8]


async def test_a_retry_of_a_try_reads_them_again(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        here = await v.at("try-1").renewed()
        if here.settings.build.attempts == 7:
            raise Blocked("SEVEN", "seven are too many", forget=(here.scope,))
        return OK

    bench.live = tries(7)
    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
        bench.live = tries(6)
        await bench.answer("blocked", "retry")
        await bench.state("n.1", "done")


async def test_a_visit_that_began_before_settings_were_recorded_keeps_what_its_run_froze(bench: Bench) -> None:
    seen = Seen()
    bench.node("n", seen)
    async with bench.daemon():
        await bench.start(one("n"), build={"attempts": 3})
        await bench.started(1)
        await bench.state("n.1", "parked")
    bench.live = tries(7)
    async with bench.daemon():
        bench.sessions.reply("try-1")
        await bench.started(2)
        bench.sessions.reply("try-2")
        await bench.state("n.1", "done")

    assert (seen.visit, seen.tries) == ([3, 3, 3], [[3], [3, 3], [3, 3]])
    names = bench.rows(sa.select(tables.steps.c.name).where(tables.steps.c.kind == "settings"))
    assert names == []


async def test_a_setting_that_is_gone_since_it_was_recorded_is_left_out(bench: Bench) -> None:
    seen = Seen()
    bench.live = {"build": {"attempts": 7, "speed": 9}, "moods": 1}
    bench.node("n", seen)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(1)

    assert (seen.visit, seen.tries) == ([7], [[7]])
