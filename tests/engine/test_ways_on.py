"""No dead ends: what a person or the journal decides always leads on, and nothing is left running or asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.artifacts.beads import Bead, Beads
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Lost
from beadmill.domain.values import SYSTEM, GateKind, GateRequest, Outcome, VisitRef
from beadmill.engine.port import Visit
from beadmill.errors import Blocked, Conflict
from beadmill.processes import folder
from beadmill.sops.load import load
from beadmill.store import blobs, tables
from beadmill.store.journal import facts, reruns, runs, tokens
from tests.engine.bench import ME, Bench, agent_task, chain, one

OK = Outcome("ok")
BACK = """
title: T
start: make
nodes:
  - {id: make, kind: make}
  - {id: check, kind: check, ends: [ok]}
edges:
  - {from: make, outcome: ok, to: check}
  - {from: check, outcome: failed, to: make, kind: rework, max_visits: 1}
"""


async def asks(v: Visit, _: Any) -> Outcome:
    await v.agent("code", agent_task)
    return OK


async def slow_to_stop(bench: Bench, run: str = "r1") -> None:
    """A visit whose session works while nobody is there to stop it."""
    bench.node("n", asks)
    await bench.start(one("n"), run)
    async with bench.daemon():
        await bench.until(lambda: len(bench.sessions.running) == 1)
        await bench.state("n.1", "parked")


async def test_cancel_stops_what_was_sent_back_and_is_still_running(bench: Bench) -> None:
    await slow_to_stop(bench)
    await bench.send_back(one("n"), "n")

    to_stop = await bench.write(runs.fence, "r1", actor=ME)

    assert to_stop == ("r1/n.2", "r1/n.1")


async def test_a_run_that_works_again_is_not_said_to_be_canceled(bench: Bench) -> None:
    await slow_to_stop(bench)
    await bench.write(runs.fence, "r1", actor=ME)

    with pytest.raises(Conflict):
        await bench.write(runs.cancel, "r1", actor=ME)

    assert bench.run_state() == "active"


async def test_a_second_send_back_still_waits_for_the_first_visit_to_stop(bench: Bench) -> None:
    await slow_to_stop(bench)
    await bench.send_back(one("n"), "n")
    await bench.send_back(one("n"), "n")

    w = tables.waits
    assert [tuple(r) for r in bench.rows(sa.select(w.c.visit_id, w.c.key).order_by(w.c.key))] == [
        ("r1/n.3", "r1/n.1"),
        ("r1/n.3", "r1/n.2"),
    ]


async def test_a_gate_nobody_waits_at_any_more_is_withdrawn_when_its_visit_is_done(bench: Bench) -> None:
    asked = ["question"]

    async def body(v: Visit, _: Any) -> Outcome:
        if asked:
            await v.ask(asked.pop(), GateRequest(GateKind.QUESTION, "?", ("yes",)))
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.gate_open("question")
        await bench.write(runs.fence, "r1", actor=ME)
        await daemon.stop(VisitRef.parse("r1/n.1"), "x")
        await bench.write(lambda tx: tx.run(sa.update(tables.visits).values(state="ready")))
        await bench.write(runs.resume, "r1", actor=ME)
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.scalar(sa.select(tables.gates.c.state)) == "withdrawn"


async def test_retry_at_the_end_of_the_ways_back_does_the_stage_again(bench: Bench) -> None:
    async def make(v: Visit, _: Any) -> Outcome:
        return OK

    async def check(v: Visit, _: Any) -> Outcome:
        await v.step("look", bench.act, "look")
        return Outcome("failed" if len(bench.calls) == 1 else "ok")

    bench.node("make", make)
    bench.node("check", check, "ok", "failed")
    async with bench.daemon():
        await bench.start(BACK)
        await bench.gate_open("blocked")
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.calls == ["look", "look"]


async def test_a_run_whose_change_was_closed_ends_as_closed(bench: Bench) -> None:
    async def ends(v: Visit, _: Any) -> Outcome:
        return Outcome("closed")

    async def done(v: Visit, _: Any) -> Outcome:
        return OK

    bench.node("ends", ends, "closed")
    bench.node("tidy", done)
    async with bench.daemon():
        await bench.start(chain("ends", "tidy").replace("outcome: ok", "outcome: closed"))
        await bench.until(lambda: bench.run_state() != "active")

    assert bench.run_state() == "closed"


def plan() -> Beads:
    bead = Bead(
        id="b",
        title="t",
        acceptance_criteria=("a",),
        tests=("t",),
        test_commands=(CommandSpec(mode="shell", script="true"),),
        target_files=("x",),
    )
    return Beads(beads=(bead,))


async def test_a_rerun_keeps_the_approval_of_what_it_keeps(bench: Bench) -> None:
    async def beads(v: Visit, _: Any) -> Outcome:
        ref = await v.put(plan(), by=SYSTEM)
        answer = await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("approve",), shows=(ref,)))
        return Outcome("ok", made=answer.saw)

    async def done(v: Visit, _: Any) -> Outcome:
        return OK

    sop = chain("beads", "preflight")
    bench.node("beads", beads)
    bench.node("preflight", done)
    async with bench.daemon():
        await bench.start(sop)
        await bench.gate_open("go")
        await bench.answer("go", "approve")
        await bench.until(lambda: bench.run_state() == "completed")
    await bench.write(reruns.rerun, "r1", load(sop, name="t").graph, "preflight", new_run="r2", actor=ME)

    assert bench.store.read_now(lambda conn: facts.approved(conn, "r2", "beads")) == plan().sha256


async def test_a_plan_that_cannot_be_read_cuts_off_the_items_in_flight(bench: Bench) -> None:
    hanging = asyncio.Event()

    async def hangs() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            hanging.set()
        return ""

    async def quick() -> str:
        return ""

    asked: list[int] = []

    async def ready() -> list[str]:
        asked.append(1)
        if len(asked) > 1:
            raise ValueError("no plan")
        return ["hangs", "quick"]

    async def work(v: Visit, item: str) -> None:
        await v.step("do", hangs if item == "hangs" else quick)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.pool(ready, work, key=str, limit=2)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open("blocked")

    assert hanging.is_set()


def test_a_lost_end_is_what_an_unreadable_one_is(tmp_path: Path) -> None:
    (tmp_path / "started").write_text("{}")
    (tmp_path / "end.json").write_text('{"type": "FromTheFuture"}')

    assert folder.end_of(tmp_path) == Lost()


async def test_what_a_rework_handed_on_outlives_a_send_back_by_a_person(bench: Bench) -> None:
    async def make(v: Visit, _: Any) -> Outcome:
        if v.ref.n > 1:
            await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("yes",)))
        return OK

    async def check(v: Visit, _: Any) -> Outcome:
        return Outcome("failed", made=(await v.put(plan(), by=SYSTEM),))

    sop = BACK.replace("max_visits: 1", "max_visits: 3")
    bench.node("make", make)
    bench.node("check", check, "ok", "failed")
    async with bench.daemon():
        await bench.start(sop)
        await bench.gate_open("make.2")
        await bench.send_back(sop, "make")
        await bench.gate_open("make.3")

    found = bench.store.read_now(lambda conn: blobs.newest(conn, "r1", "beads"))
    assert found is not None
    assert (found.visit, found.ref.sha256) == ("r1/make.3", plan().sha256)


async def test_details_that_are_no_json_open_the_gate_all_the_same(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        raise Blocked("BROKEN", details={"where": Path("/x")})

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = await bench.gate_open("blocked")

    assert gate["detail"]["details"] == {"where": "/x"}


async def test_a_big_result_with_a_name_that_is_not_utf8_comes_back(bench: Bench) -> None:
    name = "\udce9" * 70_000

    async def names() -> str:
        return name

    async def body(v: Visit, _: Any) -> Outcome:
        assert await v.step("names", names) == name
        await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("yes",), auto="yes"))
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")


async def test_a_send_back_is_the_decision_of_the_gate_it_was_said_at(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("yes",)))
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = (await bench.gate_open())["id"]
        graph = load(one("n"), name="test").graph
        await bench.write(tokens.send_back, "r1", graph, "n", comment="again", actor=ME, gate=gate, key="k")
        await bench.gate_open("n.2")

    d = tables.decisions
    rows = bench.rows(sa.select(d.c.gate_id, d.c.choice, d.c.note, d.c.actor))
    assert [tuple(r) for r in rows] == [("r1/n.1/go#0", "send_back", "again", "user:tester")]


async def test_a_pause_stops_the_countdown_of_open_questions(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("q", GateRequest(GateKind.QUESTION, "?", ("a", "b"), within=timedelta(hours=1), lapse="b"))
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        before = (await bench.gate_open())["lapse_at"]
        await bench.write(runs.pause, "r1", actor=ME)

    assert (before is not None, bench.gate()["lapse_at"]) == (True, None)
