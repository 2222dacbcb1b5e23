"""Questions of agents during work: one countdown per visit, working time that stands still, and who decided (rule 8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Asked, SessionRef
from beadmill.domain.values import Access, GateKind, GateRequest, Outcome
from beadmill.engine.port import Visit
from beadmill.errors import Conflict
from beadmill.processes.spec import AgentTask, Hold, Release
from beadmill.store import tables
from beadmill.store.journal import countdown, gates, visits
from tests.engine.bench import ME, Bench, agent_task, one

OK = Outcome("ok")
SEATS = ("a", "b")
MINUTES = timedelta(minutes=5)
g = tables.gates


def asker(*, questions: bool = True, access: Access = Access.READ) -> AgentTask:
    return replace(agent_task(access), questions=questions)


async def two_seats(v: Visit, _: Any) -> Outcome:
    async def seat(at: Visit, name: str) -> None:
        await at.agent("draft", asker)

    await v.map(SEATS, seat, key=str)
    return OK


def ask(bench: Bench, part: str, question: str = "Which?") -> None:
    session = bench.sessions.one(part)
    session.end = Asked(session=SessionRef(session.token, "talk"), question=question, worked=timedelta(minutes=10))


def request(within: timedelta = MINUTES) -> GateRequest:
    return GateRequest(GateKind.QUESTION, "?", ("answer", "decide_yourself"), within=within, lapse="decide_yourself")


def deadlines(bench: Bench) -> list[str | None]:
    return [row[0] for row in bench.rows(sa.select(g.c.lapse_at).order_by(g.c.id))]


def deciders(bench: Bench) -> list[tuple[str, ...]]:
    d = tables.decisions
    query = sa.select(d.c.choice, d.c.actor, d.c.note).order_by(d.c.gate_id)
    return [tuple(row) for row in bench.rows(query)]


@pytest.fixture
async def opened(bench: Bench) -> Bench:
    """A visit in which one seat has asked, with four minutes left; no daemon runs."""
    await bench.start(one("n"))
    await bench.write(gates.open_gate, "r1/n.1/a#0", "r1/n.1", request(timedelta(minutes=4)))
    return bench


async def test_a_new_asker_sets_the_running_countdown_of_all_to_full(opened: Bench) -> None:
    before = deadlines(opened)[0]
    await opened.write(gates.open_gate, "r1/n.1/b#0", "r1/n.1", request())
    first, second = deadlines(opened)
    assert (first == second, first > before) == (True, True)  # type: ignore[operator]


async def test_the_same_question_again_leaves_the_countdown_alone(opened: Bench) -> None:
    before = deadlines(opened)
    await opened.write(gates.open_gate, "r1/n.1/a#0", "r1/n.1", request())
    assert deadlines(opened) == before


async def test_a_new_asker_never_restarts_a_stopped_countdown(opened: Bench) -> None:
    await opened.write(gates.hold, "r1/n.1/a#0", actor=ME)
    await opened.write(gates.open_gate, "r1/n.1/b#0", "r1/n.1", request())
    assert deadlines(opened) == [None, None]


async def test_answering_one_of_several_stops_the_countdown_of_the_others(opened: Bench) -> None:
    await opened.write(gates.open_gate, "r1/n.1/b#0", "r1/n.1", request())
    await opened.answer("a#0", "answer", payload={"answer": "red"})
    assert deadlines(opened) == [None, None]


async def test_stopping_it_twice_is_stopping_it_once(opened: Bench) -> None:
    for _ in range(2):
        await opened.write(gates.hold, "r1/n.1/a#0", actor=ME)
    assert opened.events("gate.held") == ["gate.held"]


async def test_a_question_that_is_decided_cannot_be_held(opened: Bench) -> None:
    await opened.answer("a#0", "decide_yourself")
    with pytest.raises(Conflict, match="decided before"):
        await opened.write(gates.hold, "r1/n.1/a#0", actor=ME)


async def test_a_countdown_of_another_visit_runs_on(opened: Bench) -> None:
    await opened.start(one("n"), run="r2")
    await opened.write(gates.open_gate, "r2/n.1/a#0", "r2/n.1", request())
    await opened.write(gates.hold, "r1/n.1/a#0", actor=ME)
    assert [one is None for one in deadlines(opened)] == [True, False]


async def test_nobody_in_time_is_recorded_as_such_and_the_next_question_counts_down_again(opened: Bench) -> None:
    await opened.write(gates.open_gate, "r1/n.1/b#0", "r1/n.1", request(timedelta()))
    assert await opened.write(visits.wake_due) == 2
    assert deciders(opened) == [("decide_yourself", "timeout:countdown", "the countdown ended")] * 2
    await opened.write(gates.open_gate, "r1/n.1/c#0", "r1/n.1", request())
    assert deadlines(opened)[2] is not None


async def test_a_new_daemon_lets_an_overdue_question_lapse_at_once_and_a_stopped_one_wait(bench: Bench) -> None:
    for run, within in (("r1", timedelta()), ("r2", timedelta())):
        await bench.start(one("n"), run=run)
        await bench.write(gates.open_gate, f"{run}/n.1/a#0", f"{run}/n.1", request(within))
    await bench.write(gates.hold, "r2/n.1/a#0", actor=ME)
    bench.node("n", two_seats)
    async with bench.daemon():
        await bench.until(lambda: len(deciders(bench)) == 1)
    assert bench.gate()["id"] == "r2/n.1/a#0"


# --- working time -------------------------------------------------------------------------------------------------
async def test_the_clock_of_the_other_seat_stands_still_while_one_waits_for_an_answer(bench: Bench) -> None:
    bench.node("n", two_seats)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(2)
        other = bench.sessions.one("b/draft")
        ask(bench, "a/draft")
        await bench.until(lambda: other.orders == [Hold()])
        await bench.gate_open("question")
        await bench.answer("question", "answer", payload={"answer": "red"})
        await bench.until(lambda: other.orders == [Hold(), Release()])


async def test_a_session_that_starts_while_a_question_is_open_is_held_and_released(bench: Bench) -> None:
    await bench.start(one("n"))
    await bench.write(gates.open_gate, "r1/n.1/z#0", "r1/n.1", request())
    bench.node("n", two_seats)
    async with bench.daemon():
        await bench.started(2)
        seats = list(bench.sessions.by_token.values())
        await bench.until(lambda: [s.orders for s in seats] == [[Hold()], [Hold()]])


async def test_a_new_daemon_tells_every_clock_anew(bench: Bench) -> None:
    bench.node("n", two_seats)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(2)
    other = bench.sessions.one("b/draft")
    async with bench.daemon():
        await bench.until(lambda: other.orders == [Release()])


async def test_the_time_an_agent_waited_for_its_answer_is_not_taken_from_its_budget(bench: Bench) -> None:
    bench.node("n", two_seats)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(2)
        ask(bench, "a/draft")
        await bench.gate_open("question")
        await bench.answer("question", "answer", payload={"answer": "red"})
        await bench.started(3)
    work = bench.sessions.one("a/draft#0/2").work
    assert isinstance(work, AgentTask)
    assert (work.budget, work.brief.text.endswith("\n\nred")) == (timedelta(minutes=50), True)


# --- who may ask --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("task", [asker(questions=False), asker(access=Access.NONE)], ids=["not allowed", "no tools"])
async def test_a_step_that_may_not_ask_is_told_so_and_nobody_is_bothered(bench: Bench, task: AgentTask) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("vote", lambda: task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.started(1)
        ask(bench, "vote")
        await bench.started(2)
    work = bench.sessions.one("vote#0/2").work
    assert isinstance(work, AgentTask)
    assert (bench.rows(sa.select(g.c.id)), "You cannot ask here" in work.brief.text) == ([], True)


async def test_a_batch_of_commands_has_no_clock_to_hold(bench: Bench) -> None:
    await bench.start(one("n"))
    rows = {"run_id": "r1", "visit_id": "r1/n.1", "host": "local", "started": "2026-01-02T12:00:00+00:00"}
    kinds = {"r1/n.1/code#0/1": "agent", "r1/n.1/checks#0/1": "batch"}
    for token, kind in kinds.items():
        await bench.write(
            lambda tx, t=token, k=kind: tx.run(sa.insert(tables.sessions).values(token=t, kind=k, **rows))
        )
    found = bench.store.read_now(lambda conn: countdown.clocks(conn, host="local"))
    assert found == {"r1/n.1/code#0/1": False}
