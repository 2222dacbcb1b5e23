"""The wall clock is set forward and back: nothing is forgotten, and times that are waited for still come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
import time_machine

from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.domain.values import SYSTEM, GateKind, GateRequest, Outcome
from beadmill.engine.port import Visit
from beadmill.processes.clock import WorkClock
from beadmill.store import blobs, tables
from tests.engine.bench import Bench, chain, one

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Wall:
    """A clock on the wall that anybody may set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now


@pytest.fixture
def wall(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Wall:
    monkeypatch.setattr("beadmill.engine.dispatch.RESCAN", 0.02)
    made = Wall()
    monkeypatch.setattr(bench.store, "clock", made)
    return made


async def test_an_edit_made_when_the_clock_had_been_set_back_is_still_the_newest(bench: Bench, wall: Wall) -> None:
    async def plan(v: Visit, _: Any) -> Outcome:
        return Outcome("ok", made=(await v.put(RelevantFiles(ticket_id="first"), by=SYSTEM),))

    async def build(v: Visit, _: Any) -> Outcome:
        await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("yes",)))
        return Outcome("ok", note=(await v.get(RelevantFiles)).ticket_id)

    bench.node("plan", plan)
    bench.node("build", build)
    async with bench.daemon():
        await bench.start(chain("plan", "build"))
        await bench.gate_open()
        wall.now -= timedelta(hours=5)
        edit = RelevantFiles(ticket_id="edited")
        await bench.write(lambda tx: blobs.put_document(tx, edit, run="r1", visit="r1/plan.1", author="me"))
        await bench.answer("go", "yes")
        await bench.until(lambda: bench.run_state() == "completed")

    v = tables.visits
    assert bench.scalar(sa.select(v.c.note).where(v.c.node == "build")) == "edited"


async def test_the_visit_that_ended_last_counts_though_its_clock_was_behind(bench: Bench, wall: Wall) -> None:
    async def plan(v: Visit, _: Any) -> Outcome:
        made = await v.put(RelevantFiles(ticket_id=v.ref.node), by=SYSTEM)
        wall.now -= timedelta(hours=1)
        return Outcome("ok", made=(made,))

    bench.node("first", plan)
    bench.node("second", plan)
    async with bench.daemon():
        await bench.start(chain("first", "second"))
        await bench.until(lambda: bench.run_state() == "completed")

    newest = bench.store.read_now(lambda conn: blobs.newest(conn, "r1", RelevantFiles.kind))
    assert newest is not None
    assert newest.visit == "r1/second.1"


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(minutes=-30)])
async def test_a_pause_ends_at_its_time_though_the_clock_was_set_back_meanwhile(
    bench: Bench, wall: Wall, jump: timedelta
) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.sleep("pause", NOON + timedelta(hours=1))
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        wall.now += jump
        await bench.until(lambda: bench.visit("n.1") == "parked")
        wall.now = NOON + timedelta(hours=1)
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.events("visit.done") == ["visit.done"]


async def test_a_question_lapses_once_when_the_clock_jumps_over_its_window(bench: Bench, wall: Wall) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        minute = timedelta(minutes=1)
        gate = GateRequest(GateKind.QUESTION, "Which?", ("answer", "decide_yourself"), within=minute, lapse="answer")
        return Outcome("ok", note=(await v.ask("which", gate)).choice)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
        wall.now += timedelta(days=3650)
        await bench.until(lambda: bench.run_state() == "completed")
        wall.now -= timedelta(days=3650)

    assert bench.events("gate.answered") == ["gate.answered"]


def test_the_working_time_of_an_agent_does_not_follow_the_wall() -> None:
    clock = WorkClock()
    with time_machine.travel(NOON, tick=True):
        assert clock.worked < 60
