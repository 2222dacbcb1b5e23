"""No call goes round for ever: questions, limits, stops and losses of one call are counted, then a person decides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Asked, Limited, Lost, SessionRef, Stopped
from beadmill.domain.values import Access, Outcome
from beadmill.engine import turns
from beadmill.engine.port import Visit
from beadmill.processes.spec import AgentTask, Batch, BoxSpec
from beadmill.store import tables
from beadmill.store.journal import visits
from tests.engine.bench import ME, Bench, ManualSession, agent_task, one

FEW = 4  # instead of up to fifty


async def looks(v: Visit, _: Any) -> Outcome:
    await v.agent("look", lambda: agent_task(Access.READ))
    return Outcome("ok")


def always(bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Every session ends at once, and in the same way."""
    real = bench.sessions.attach

    async def attach(token: str, work: AgentTask | Batch, box: BoxSpec) -> ManualSession:
        session = await real(token, work, box)
        session.end = END[kind](SessionRef(token, "talk"))
        return session

    monkeypatch.setattr(bench.sessions, "attach", attach)


END: dict[str, Any] = {
    "asked": lambda ref: Asked(session=ref, question="And now?"),
    "limited": lambda ref: Limited(session=ref, message="5 h limit"),
    "stopped": lambda ref: Stopped(session=ref, worked=timedelta(seconds=1)),
    "lost": lambda _: Lost(),
}


async def answers(bench: Bench) -> None:
    """A person who always answers, and never waits for a provider."""
    g = tables.gates.c
    open_ = bench.rows(sa.select(g.id).where(g.state == "open", g.kind == "question"))
    if open_:
        await bench.answer("question", "answer", payload={"answer": "Go on."})
    await bench.write(visits.wake_now, "r1", actor=ME)
    bench.ring()


@pytest.mark.parametrize(
    ("kind", "sessions", "code"),
    [
        ("asked", FEW + 1, "AGENT_FAILED"),
        ("limited", FEW + 1, "AGENT_QUOTA"),
        ("stopped", FEW + 1, "AGENT_STOPPED"),
        ("lost", turns.LOST_RETRIES + 1, "AGENT_LOST"),
    ],
)
async def test_an_agent_that_always_ends_the_same_way_is_a_persons_in_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, kind: str, sessions: int, code: str
) -> None:
    for bound in ("MOST_ASKED", "MOST_LIMITS", "MOST_STOPS"):
        monkeypatch.setattr(turns, bound, FEW)
    bench.node("n", looks)
    always(bench, monkeypatch, kind)
    blocked = sa.select(tables.gates.c.detail).where(tables.gates.c.kind == "blocked")
    async with bench.daemon():
        await bench.start(one("n"))
        while not bench.rows(blocked):
            await answers(bench)
            await bench.state("n.1", "parked")
    assert (len(bench.sessions.started), bench.rows(blocked)[0][0]["code"]) == (sessions, code)


async def test_a_limit_in_the_far_future_is_asked_about_again_within_a_week(bench: Bench) -> None:
    bench.node("n", looks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        session = bench.sessions.one("look")
        far = bench.store.clock() + timedelta(days=4000)
        session.end = Limited(session=SessionRef(session.token), until=far)
        await bench.until(lambda: bench.rows(sa.select(tables.waits.c.kind)) == [("time",)])
    (at,) = bench.rows(sa.select(tables.visits.c.wake_at))[0]
    assert at < (bench.store.clock() + turns.LONGEST + timedelta(minutes=1)).isoformat()


async def test_a_person_ends_a_pause_and_the_next_limit_pauses_again(bench: Bench) -> None:
    bench.node("n", looks)
    waits = sa.select(tables.waits.c.key).where(tables.waits.c.kind == "time")
    async with bench.daemon():
        await bench.start(one("n"))
        for turn in (1, 2):
            await bench.until(lambda t=turn: bench.sessions.running == [f"n.1/look#0/{t}"])  # type: ignore[misc]
            session = bench.sessions.one("look")
            session.end = Limited(session=SessionRef(session.token), until=bench.store.clock() + timedelta(hours=1))
            await bench.until(lambda t=turn: bench.rows(waits) == [(f"look/limit-{t}",)])  # type: ignore[misc]
            if turn == 1:
                await bench.write(visits.wake_now, "r1", actor=ME)
                bench.ring()
    assert bench.sessions.started == ["n.1/look#0/1", "n.1/look#0/2"]
