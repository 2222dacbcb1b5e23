"""Turns of one call: stops, limits, continues, budgets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Asked, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import SYSTEM, Access, Outcome, Usage
from beadmill.engine.port import Visit
from beadmill.errors import Invalid
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from beadmill.store.journal import attempts, budgets, visits
from tests.engine.bench import Bench, ManualSession, agent_task, one

OK = Outcome("ok")


async def asks(v: Visit, _: Any) -> Outcome:
    await v.agent("code", lambda: agent_task(Access.WRITE))
    return OK


def task(session: ManualSession) -> AgentTask:
    assert isinstance(session.work, AgentTask)
    return session.work


async def test_turns_of_one_call_share_its_working_time(bench: Bench) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        session = bench.sessions.one("code")
        until = bench.store.clock() + timedelta(hours=1)
        session.end = Limited(session=SessionRef(session.token), until=until, worked=timedelta(minutes=10))
        await bench.until(lambda: bench.rows(sa.select(tables.waits).where(tables.waits.c.kind == "time")) != [])
        await bench.write(visits.wake_now, "r1", actor=SYSTEM)
        bench.ring()
        await bench.until(lambda: bench.sessions.running == ["n.1/code#0/2"])

    assert task(bench.sessions.one("code")).budget == timedelta(minutes=50)


@pytest.mark.parametrize(("choice", "answered"), [("answer", 1), ("decide_yourself", 0)])
async def test_a_reply_tells_how_many_of_its_questions_a_person_answered(
    bench: Bench, *, choice: str, answered: int
) -> None:
    heard: list[int] = []

    async def body(v: Visit, _: Any) -> Outcome:
        heard.append((await v.agent("look", lambda: replace(agent_task(), questions=True))).answered)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(1)
        session = bench.sessions.one("look")
        session.end = Asked(session=SessionRef(session.token, "talk"), question="Which?")
        await bench.gate_open("question")
        await bench.answer("question", choice, payload={"answer": "The first."})
        await bench.started(2)
        bench.sessions.reply("look")
        await bench.until(lambda: bench.run_state() == "completed")
    assert heard == [answered]


async def test_a_reset_time_that_has_passed_is_a_pause_not_a_turn_at_once(bench: Bench) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        session = bench.sessions.one("code")
        until = bench.store.clock() - timedelta(hours=1)
        session.end = Limited(session=SessionRef(session.token), until=until)
        await bench.until(lambda: bench.rows(sa.select(tables.waits.c.kind)) == [("time",)])

    assert bench.sessions.started == ["n.1/code#0/1"]


async def fail(bench: Bench, part: str) -> None:
    session = bench.sessions.one(part)
    session.end = Failed(
        session=SessionRef(session.token, "talk"), why=Why.OVERLOADED, message="busy", continuable=True
    )
    await bench.gate_open("blocked")


async def test_a_retry_after_an_earlier_continue_starts_a_fresh_conversation(bench: Bench) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        await fail(bench, "code#0")
        await bench.answer("blocked", "continue")
        await bench.until(lambda: bench.sessions.running == ["n.1/code#1/1"])
        await bench.state("n.1", "parked")
        await fail(bench, "code#1")
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.sessions.running == ["n.1/code#2/1"])

    assert task(bench.sessions.one("code#2")).resume is None


async def over(bench: Bench, count: int) -> None:
    async def work(v: Visit, item: int) -> None:
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(range(count), work, key=str)
        return OK

    bench.node("n", body)
    await bench.start(one("n"), budget={"tokens": 10})
    await bench.write(lambda tx: tx.run(sa.update(tables.runs).values(tokens=10)))


async def test_parallel_calls_over_budget_wait_at_one_gate(bench: Bench) -> None:
    await over(bench, 3)
    async with bench.daemon():
        await bench.gate_open("budget")
        await bench.answer("budget", "raise", payload={"tokens": 100})
        await bench.until(lambda: len(bench.sessions.running) == 3)


@pytest.mark.parametrize("payload", [{"tokens": -5}, {"tokens": 0}])
async def test_a_limit_that_is_none_is_refused(bench: Bench, payload: dict[str, float]) -> None:
    await over(bench, 1)
    async with bench.daemon():
        await bench.gate_open("budget")
        with pytest.raises(Invalid):
            await bench.answer("budget", "raise", payload=payload)


async def test_half_a_token_is_a_limit_of_whole_tokens_and_blocks_nothing(bench: Bench) -> None:
    await over(bench, 1)
    async with bench.daemon():
        await bench.gate_open("budget")
        await bench.answer("budget", "raise", payload={"tokens": 10.5})
        await bench.until(lambda: len(bench.sessions.running) == 1)

    limits = bench.store.read_now(lambda conn: budgets.spending(conn, "r1").limits)
    assert limits.tokens == 11


async def test_a_warning_is_given_once_when_four_fifths_are_spent(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        for name in ("one", "two", "three"):
            await v.agent(name, agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"), budget={"tokens": 100})
        for name, tokens in (("one", 50), ("two", 31), ("three", 5)):
            await bench.until(lambda name=name: bench.sessions.running == [f"n.1/{name}#0/1"])  # type: ignore[misc]
            session = bench.sessions.one(name)
            session.end = Replied(session=SessionRef(session.token), text="ok", usage=replace(Usage(), input=tokens))
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.events("budget.") == ["budget.warning"]


async def test_an_edit_that_is_taken_back_starts_a_new_try(bench: Bench) -> None:
    await bench.start(one("n"))
    key = "r1/n.1/b@1/try-1/begin#0"
    await bench.write(attempts.begin, "r1", "r1/n.1", "b", bead_sha="1", tree="", start_commit="c", key=key)

    await bench.write(attempts.replace_open, "r1/n.1", ["r1/n.1/b@1/try-1/code#0/1"])

    rounds = bench.rows(sa.select(tables.scopes.c.scope, tables.scopes.c.round))
    states = bench.rows(sa.select(tables.bead_attempts.c.state))
    assert ([tuple(r) for r in rounds], [r.state for r in states]) == ([("b@1/try-1", 1)], [AttemptState.REPLACED])


async def test_a_node_hears_what_people_wrote_beside_the_retries_of_its_own_scope(bench: Bench) -> None:
    heard: dict[str, tuple[str, ...]] = {}

    async def item(v: Visit, name: str) -> None:
        heard[name] = v.at("inside").retry_notes
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(["a", "ab"], item, key=str)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(2)
        bench.sessions.reply("n.1/ab/code")
        await bench.until(lambda: bench.sessions.running == ["n.1/a/code#0/1"])
        await fail(bench, "n.1/a/code")
        await bench.answer("blocked", "retry", note=" first\n")
        await bench.started(3)
    assert heard == {"a": (" first\n",), "ab": ()}


async def test_c59_a_done_that_an_earlier_run_left_ends_nothing_in_the_next(bench: Bench) -> None:
    for run in ("r1", "r2"):
        await bench.start(one("n"), run=run)
    await bench.write(attempts.begin, "r1", "r1/n.1", "b", bead_sha="1", tree="", start_commit="c", key="k")
    await bench.write(attempts.finish, "r1", "b", 1, state=AttemptState.DONE)
    states = {run: bench.store.read_now(lambda conn, r=run: attempts.listed(conn, r)) for run in ("r1", "r2")}  # type: ignore[misc]
    assert ([a.state for a in states["r1"]], states["r2"]) == ([AttemptState.DONE], ())
