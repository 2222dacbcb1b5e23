"""What goes wrong with one session, one visit or one write stops nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from beadmill import app
from beadmill.domain.ended import Lost
from beadmill.domain.values import GateKind, GateRequest, Outcome, VisitRef
from beadmill.engine.port import Visit
from beadmill.errors import Unavailable
from beadmill.processes import procs
from beadmill.processes.alive import still_running
from beadmill.store import tables
from beadmill.store.journal import moves, visits
from tests.engine.bench import Bench, ManualSession, agent_task, one

OK = Outcome("ok")


async def cannot_be_stopped(reason: str) -> None:
    raise still_running("x", [procs.Proc(7, 1, 1, "make")])


async def asks(v: Visit, _: Any) -> Outcome:
    await v.agent("code", agent_task)
    return OK


async def test_a_lost_session_that_cannot_be_stopped_holds_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"), run="r1")
        await bench.start(one("n"), run="r2")
        await bench.until(lambda: len(bench.sessions.running) == 2)
        stubborn = bench.sessions.by_token["r1/n.1/code#0/1"]
        monkeypatch.setattr(stubborn, "stop", cannot_be_stopped, raising=False)
        stubborn.end = Lost()
        bench.sessions.reply("r2/")
        await bench.until(lambda: bench.run_state("r2") == "completed")

    assert bench.run_state("r1") == "active"


async def test_a_visit_that_waits_for_a_stubborn_session_holds_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"), run="r1")
        await bench.start(one("n"), run="r2")
        await bench.until(lambda: len(bench.sessions.running) == 2)
        monkeypatch.setattr(bench.sessions.by_token["r1/n.1/code#0/1"], "stop", cannot_be_stopped)
        await bench.send_back(one("n"), "n", run="r1")
        await bench.send_back(one("n"), "n", run="r2")
        await bench.until(lambda: bench.visit("n.2", run="r2") == "parked" and len(bench.sessions.started) == 3)

    assert bench.visit("n.2", run="r1") == "parked"


async def test_a_session_whose_folder_was_deleted_is_swept_and_lost(bench: Bench) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        del bench.sessions.by_token["r1/n.1/code#0/1"]
        await bench.until(lambda: bench.sessions.swept == ["r1/n.1/code#0/1"])
        await bench.until(lambda: bench.sessions.running == ["n.1/code#0/2"])

    ends = bench.rows(sa.select(tables.sessions.c.end).where(tables.sessions.c.ended.isnot(None)))
    assert [row.end["type"] for row in ends] == ["Lost"]


async def test_a_session_whose_runner_could_not_end_everything_is_booked_when_that_is_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.engine.watch.AGAIN", 0.1)
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        session = bench.sessions.one("code")
        session.leaves = True
        with monkeypatch.context() as stubborn:
            stubborn.setattr(session, "stop", cannot_be_stopped)
            bench.sessions.reply("code")
            await bench.until(lambda: bench.events("session.stuck") == ["session.stuck"])
            assert bench.run_state() == "active"
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.events("session.") == ["session.started", "session.stuck", "session.ended"]


async def test_a_frozen_runner_is_woken(bench: Bench) -> None:
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        bench.sessions.one("code").frozen = True
        await bench.until(lambda: not bench.sessions.one("code").frozen)
        bench.sessions.reply("code")
        await bench.until(lambda: bench.run_state() == "completed")


async def test_one_stubborn_session_keeps_no_other_of_its_visit_alive(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(v: Visit, item: str) -> None:
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(("a", "b", "c"), work, key=str)
        return OK

    bench.node("n", body)
    async with bench.daemon() as engine:
        await bench.start(one("n"))
        await bench.until(lambda: len(bench.sessions.running) == 3)
        for part in ("/a/", "/b/"):
            monkeypatch.setattr(bench.sessions.one(part), "stop", cannot_be_stopped)
        with pytest.raises(Unavailable, match="not stopped") as alive:
            await engine.stop(VisitRef.parse("r1/n.1"), "canceled")

    assert [p["pid"] for p in alive.value.details["processes"]] == [7, 7]
    assert len(bench.sessions.running) == 2


async def test_an_activation_whose_block_cannot_be_written_goes_on_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.engine.dispatch.RESCAN", 0.02)
    block, failures = visits.block, ["the disk is full"]

    def full(*args: Any, **kwargs: Any) -> None:
        if failures:
            raise OSError(failures.pop())
        block(*args, **kwargs)

    async def body(v: Visit, _: Any) -> Outcome:
        raise ValueError("a bug")

    monkeypatch.setattr(visits, "block", full)
    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = await bench.gate_open("blocked")

    assert (gate["detail"]["code"], failures) == ("INTERNAL", [])


async def test_a_session_that_cannot_start_gives_its_place_back_while_the_visit_is_blocked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_runner(*_: Any) -> ManualSession:
        raise Unavailable("the runner did not start", code="RUNNER")

    attach = bench.sessions.attach
    monkeypatch.setattr(bench.sessions, "attach", no_runner)
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open("blocked")
        await bench.until(lambda: bench.rows(sa.select(tables.leases.c.holder)) == [])
        monkeypatch.setattr(bench.sessions, "attach", attach)
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.sessions.running == ["n.1/code#0/2"])


async def test_a_session_left_over_is_stopped_before_the_visit_is_done(bench: Bench) -> None:
    plan = ["old"]

    async def ready() -> list[str]:
        return list(plan)

    async def work(v: Visit, item: str) -> None:
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.pool(ready, work, key=str, limit=1)
        await v.ask("end", GateRequest(GateKind.APPROVE, "End?", ("yes",), auto="yes"))
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        plan.clear()
        await bench.write(moves.make_ready, "r1/n.1")
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.sessions.running == []


async def test_a_service_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "RESTART", 0.0)
    tries: list[str] = []

    async def service() -> None:
        tries.append("try")
        if len(tries) < 3:
            raise OSError("the disk is full")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await app._forever(service)

    assert len(tries) == 3
