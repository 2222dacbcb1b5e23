"""Usage limits: who waits, who does not, and who takes over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Limited, SessionRef
from beadmill.domain.values import SYSTEM, Access, Outcome, Seat
from beadmill.engine.port import Visit
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from beadmill.store.journal import visits
from beadmill.store.journal.limits import account_of
from tests.engine.bench import Bench, agent_task, one

OK = Outcome("ok")
LATER = timedelta(hours=5)
OTHER = Seat("codex", "gpt-5")


def by(seat: Seat, access: Access = Access.WRITE) -> AgentTask:
    return replace(agent_task(access), seat=seat)


def asking(*seats: Seat) -> Any:
    async def body(v: Visit, _: Any) -> Outcome:
        async def ask(here: Visit, seat: Seat) -> None:
            await here.agent("ask", lambda: by(seat))

        await v.map(seats, ask, key=lambda seat: f"{seat.agent}-{seats.index(seat)}")
        return OK

    return body


async def limited(bench: Bench, part: str, *, after: timedelta = LATER) -> None:
    session = bench.sessions.one(part)
    session.end = Limited(session=SessionRef(session.token), until=bench.store.clock() + after, message="5 hours")
    await bench.until(lambda: bool(waits(bench)))


def waits(bench: Bench) -> list[str]:
    query = sa.select(tables.waits.c.kind, tables.waits.c.key).order_by(tables.waits.c.key)
    kinds = bench.store.read_now(lambda conn: list(conn.execute(query)))
    return [
        f"{row.kind} {row.key.partition('/')[0] if row.kind == 'limit' else row.key}"
        for row in kinds
        if row.kind != "session"
    ]


def events(bench: Bench, kind: str) -> list[dict[str, Any]]:
    query = sa.select(tables.events.c.data).where(tables.events.c.kind == kind)
    return bench.store.read_now(lambda conn: [row.data for row in conn.execute(query)])


@pytest.mark.parametrize(
    ("seat", "account"),
    [
        ("codex", "codex/"), ("codex/gpt-5", "codex/"), ("codex/gpt-5/high", "codex/"),
        ("opencode/anthropic/claude-5", "opencode/anthropic"), ("opencode/openai/gpt-5/high", "opencode/openai"),
    ],
)  # fmt: skip
def test_an_account_is_the_agent_and_its_provider(seat: str, account: str) -> None:
    assert account_of(seat) == account


async def test_c62_nobody_asks_an_account_whose_limit_was_met_and_others_go_on(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a"), OTHER))
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: len(bench.sessions.running) == 2)
        await limited(bench, "scripted-0")
        await bench.start(one("n"), run="r2")
        await bench.until(lambda: "limit scripted" in waits(bench))
        assert [token for token in bench.sessions.by_token if "scripted" in token] == ["r1/n.1/scripted-0/ask#0/1"]
        assert len([token for token in bench.sessions.by_token if "codex" in token]) == 2


async def test_the_first_answer_of_the_account_lets_everybody_go_on(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a")))
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bool(bench.sessions.running))
        await limited(bench, "r1/")
        await bench.start(one("n"), run="r2")
        await bench.until(lambda: "limit scripted" in waits(bench))
        await bench.store.write(lambda tx: visits.wake_now(tx, "r1", actor=SYSTEM))
        assert bench.dispatcher is not None
        bench.dispatcher.ring()
        await bench.until(lambda: bench.sessions.running == ["n.1/scripted-0/ask#0/2"])
        bench.sessions.reply("r1/")
        await bench.until(lambda: any(token.startswith("r2/") for token in bench.sessions.by_token))


async def test_a_person_of_another_run_need_not_wait_for_the_first(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a")))
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bool(bench.sessions.running))
        await limited(bench, "r1/")
        await bench.start(one("n"), run="r2")
        await bench.until(lambda: "limit scripted" in waits(bench))
        assert await bench.store.write(lambda tx: visits.wake_now(tx, "r2", actor=SYSTEM)) == ["r2/n.1"]
        assert bench.dispatcher is not None
        bench.dispatcher.ring()
        await bench.until(lambda: any(token.startswith("r2/") for token in bench.sessions.by_token))


# --- fallback -----------------------------------------------------------------------------------------------------
FALLBACK = {"fallback": {"agent": "codex", "model": "gpt-5", "effort": ""}, "wait_minutes": 60}


def tasks(bench: Bench) -> list[AgentTask]:
    return [s.work for s in bench.sessions.by_token.values() if isinstance(s.work, AgentTask)]


async def test_a_limit_that_ends_too_late_hands_the_task_to_the_fallback_with_what_was_begun(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a")))
    async with bench.daemon():
        await bench.start(one("n"), limits=FALLBACK)
        await bench.until(lambda: bool(bench.sessions.running))
        session = bench.sessions.one("r1/")
        session.end = Limited(session=SessionRef(session.token, "talk"), until=bench.store.clock() + LATER)
        await bench.until(lambda: bench.sessions.running == ["n.1/scripted-0/ask#0/2"])
        first, second = tasks(bench)
        assert (second.seat, second.resume) == (OTHER, None)
        assert second.brief.text.splitlines()[0] == first.brief.text.splitlines()[0]
        assert "was cut off by its provider's limit" in second.brief.text
        (told,) = events(bench, "seat.fell_back")
        assert (told["from"], told["to"]) == ("scripted/a", "codex/gpt-5")


async def test_a_limit_that_ends_soon_is_waited_for(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a")))
    async with bench.daemon():
        await bench.start(one("n"), limits=FALLBACK)
        await bench.until(lambda: bool(bench.sessions.running))
        await limited(bench, "r1/", after=timedelta(minutes=30))
        assert (waits(bench), events(bench, "seat.fell_back")) == (["time scripted-0/ask/limit-1"], [])


async def test_a_conversation_that_has_begun_waits_for_its_own_agent(bench: Bench) -> None:
    async def goes_on(v: Visit, _: Any) -> Outcome:
        resumed = replace(by(Seat("scripted", "a")), resume=SessionRef("before", "talk"))
        await v.agent("ask", lambda: resumed)
        return OK

    bench.node("n", goes_on)
    async with bench.daemon():
        await bench.start(one("n"), limits=FALLBACK)
        await bench.until(lambda: bool(bench.sessions.running))
        await limited(bench, "r1/")
        assert (waits(bench), len(tasks(bench))) == (["time ask/limit-1"], 1)


async def test_a_fallback_that_meets_its_own_limit_waits(bench: Bench) -> None:
    bench.node("n", asking(Seat("scripted", "a")))
    async with bench.daemon():
        await bench.start(one("n"), limits=FALLBACK)
        await bench.until(lambda: bool(bench.sessions.running))
        session = bench.sessions.one("r1/")
        session.end = Limited(session=SessionRef(session.token), until=bench.store.clock() + LATER)
        await bench.until(lambda: bench.sessions.running == ["n.1/scripted-0/ask#0/2"])
        await limited(bench, "ask#0/2")
        assert waits(bench) == ["time scripted-0/ask/limit-2"]
