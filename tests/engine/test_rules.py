"""The sixteen rules of the journal, on SQLite and PostgreSQL (design contracts.md, "Rules of the journal")."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Failed, Lost, Ran, SessionRef, Why, fails_the_try
from beadmill.domain.machine import Phase
from beadmill.domain.values import Access, GateKind, GateRequest, Outcome, VisitRef
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import Visit
from beadmill.engine.turns import GO_ON
from beadmill.errors import Blocked, Conflict, Missing, Stale, Superseded, TurnFailed
from beadmill.processes.spec import AgentTask, Batch
from beadmill.store import tables
from beadmill.store.journal import gates, moves, runs, steps, visits
from tests.engine.bench import ME, Bench, agent_task, chain, one

OK = Outcome("ok")


def approve(title: str = "Go?") -> GateRequest:
    return GateRequest(GateKind.APPROVE, title, ("yes", "no"))


async def test_a_step_is_recorded_once_and_found_by_name(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        assert await v.step("first", bench.act, "first") == "first"
        await v.ask("go", approve())
        assert await v.step("second", bench.act, "second") == "second"
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
        await bench.answer("go", "yes")
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.calls == ["first", "second"]


async def test_a_key_names_visit_scope_name_and_round(bench: Bench) -> None:
    async def act(key: str) -> str:
        bench.calls.append(key)
        return key

    async def body(v: Visit, _: Any) -> Outcome:
        await v.at("a").at("b").step("put", act)  # type: ignore[call-arg]
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.calls == ["r1/n.1/a/b/put#0"]


async def test_a_name_used_twice_is_a_blocked_gate_not_a_lost_run(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.step("same", bench.act, "one")
        await v.step("same", bench.act, "two")
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = await bench.gate_open("blocked")

    assert (gate["detail"]["code"], bench.calls) == ("INTERNAL", ["one"])


async def test_retry_forgets_only_the_scope_that_failed(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> str:
        await v.step("do", bench.act, item)
        if item == "bad" and bench.calls.count("bad") == 1:
            raise Blocked("BROKEN")
        return item

    async def body(v: Visit, _: Any) -> Outcome:
        await v.step("before", bench.act, "before")
        assert await v.map(["good", "bad"], work, key=str) == ["good", "bad"]
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open("blocked")
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.calls == ["before", "good", "bad", "bad"]


async def test_old_rounds_stay_as_history(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        inner = v.at("part")
        await inner.step("do", bench.act, "do")
        if len(bench.calls) == 1:
            raise Blocked("BROKEN", forget=(inner.scope,))
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open("blocked")
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.run_state() == "completed")

    st = tables.steps
    rows = bench.rows(sa.select(st.c.name, st.c.round).order_by(st.c.round))
    assert [tuple(r) for r in rows] == [("part/do", 0), ("part/do", 1)]


async def test_a_result_over_64_kb_goes_to_a_blob_and_comes_back(bench: Bench) -> None:
    big = "x" * 100_000

    async def act() -> str:
        bench.calls.append("big")
        return big

    async def body(v: Visit, _: Any) -> Outcome:
        assert await v.step("big", act) == big
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
        await bench.answer("go", "yes")
        await bench.until(lambda: bench.run_state() == "completed")

    st = tables.steps
    assert (bench.calls, bench.scalar(sa.select(st.c.result).where(st.c.name == "big"))) == (["big"], None)


async def test_a_row_that_no_longer_decodes_blocks_and_retry_does_the_step_again(bench: Bench) -> None:
    async def old() -> str:
        return "words"

    async def new() -> int:
        return 7

    async def body(v: Visit, _: Any) -> Outcome:
        await v.step("count", new if bench.calls else old)
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
        bench.calls.append("the release changed")
        await bench.answer("go", "yes")
        gate = await bench.gate_open("blocked")
        await bench.answer("blocked", "retry")
        await bench.until(lambda: bench.run_state() == "completed")

    assert gate["detail"]["code"] == "RESULT_UNREADABLE"


async def test_a_gate_is_answered_while_no_process_runs(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        return Outcome("ok", note=(await v.ask("go", approve())).choice)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
    await bench.answer("go", "yes")
    async with bench.daemon("w2"):
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.scalar(sa.select(tables.visits.c.note)) == "yes"


async def test_parked_keeps_nothing_in_memory(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        await bench.until(lambda: not daemon.busy)

    assert [tuple(r) for r in bench.rows(sa.select(tables.waits.c.kind, tables.waits.c.key))] == [
        ("gate", "r1/n.1/go#0")
    ]


async def test_a_running_session_is_a_wait_and_its_end_makes_the_visit_ready(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        return Outcome("ok", note=(await v.agent("code", agent_task)).text)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        bench.sessions.reply("code", "done")
        await bench.until(lambda: bench.run_state() == "completed")

    assert (bench.sessions.started, bench.scalar(sa.select(tables.visits.c.note))) == (["n.1/code#0/1"], "done")


async def test_a_daemon_that_comes_back_reads_the_end_of_a_session_and_books_it_once(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
    bench.sessions.reply("code")
    async with bench.daemon("w2"):
        await bench.until(lambda: bench.run_state() == "completed")

    assert (bench.events("session."), bench.sessions.started) == (
        ["session.started", "session.ended"],
        ["n.1/code#0/1"],
    )


async def test_map_gives_results_in_item_order_whatever_ends_first(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> str:
        return (await v.agent("draft", agent_task)).text

    async def body(v: Visit, _: Any) -> Outcome:
        return Outcome("ok", note=" ".join(await v.map(["a", "b", "c"], work, key=str)))

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: len(bench.sessions.running) == 3)
        for item in ("c", "a", "b"):
            bench.sessions.reply(f"/{item}/", item.upper())
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.scalar(sa.select(tables.visits.c.note)) == "A B C"


async def test_a_park_cancels_no_sibling(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> None:
        if item == "waits":
            await v.ask("go", approve())
        await v.step("do", bench.act, item)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(["waits", "works"], work, key=str)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")

    assert bench.calls == ["works"]


async def test_blocked_wins_over_parked_and_starts_no_new_item(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> None:
        await v.step("do", bench.act, item)
        if item == "waits":
            await v.ask("go", approve())
        raise Blocked(item.upper())

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(["waits", "breaks", "later"], work, key=str, limit=2)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = await bench.gate_open("blocked")

    assert (bench.calls, gate["detail"]["code"], gate["detail"]["forget"]) == (
        ["waits", "breaks"],
        "BREAKS",
        ["breaks"],
    )


async def test_a_claim_of_an_old_activation_is_refused(bench: Bench) -> None:
    await bench.start(one("n"))
    visit = "r1/n.1"

    first = await bench.write(visits.claim, visit, 1, owner="a", worker="w")
    second = await bench.write(visits.claim, visit, 1, owner="b", worker="w")
    released = await bench.write(visits.release_dead)
    third = await bench.write(visits.claim, visit, 1, owner="c", worker="w")
    fourth = await bench.write(visits.claim, visit, 2, owner="d", worker="w")

    assert (first, second, released, third, fourth) == (True, False, 1, False, True)


async def test_a_zombie_activation_cannot_commit(bench: Bench) -> None:
    await bench.start(one("n"))
    visit = "r1/n.1"
    await bench.write(visits.claim, visit, 1, owner="zombie", worker="w")
    await bench.write(visits.release_dead)
    await bench.write(visits.claim, visit, 2, owner="heir", worker="w")

    with pytest.raises(Superseded):
        await bench.write(steps.record, visit, "zombie", "do", 0, kind="step", result=1)

    assert bench.rows(sa.select(tables.steps.c.name)) == []


async def test_an_answer_needs_the_etag_and_the_right_one(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()

        with pytest.raises(Missing):
            await bench.answer("go", "yes", etag=None)
        with pytest.raises(Stale):
            await bench.answer("go", "yes", etag="0" * 64)

    assert bench.visit("n.1") == "parked"


async def test_two_answers_to_one_gate_act_once_and_a_repeat_is_the_same_answer(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        row = await bench.gate_open()
    first = await bench.write(gates.answer, row["id"], choice="yes", etag=row["etag"], key="one", actor=ME)
    again = await bench.write(gates.answer, row["id"], choice="yes", etag=row["etag"], key="one", actor=ME)
    with pytest.raises(Conflict):
        await bench.write(gates.answer, row["id"], choice="no", etag=row["etag"], key="two", actor=ME)

    assert (first.choice, again, bench.events("gate.")) == ("yes", first, ["gate.opened", "gate.answered"])


async def test_an_asked_gate_keeps_its_row_when_node_code_changes(bench: Bench) -> None:
    title = ["Old words"]

    async def body(v: Visit, _: Any) -> Outcome:
        answer = await v.ask("go", GateRequest(GateKind.APPROVE, title[0], ("yes",)))
        await v.step("new act", bench.act, "new act")
        return Outcome("ok", note=answer.choice)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
    title[0] = "New words"
    async with bench.daemon("w2"):
        await bench.answer("go", "yes")
        await bench.until(lambda: bench.run_state() == "completed")

    assert (bench.scalar(sa.select(tables.gates.c.title)), bench.calls) == ("Old words", ["new act"])


async def test_a_countdown_lapses_to_its_choice(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        wanted = GateRequest(GateKind.QUESTION, "?", ("a", "b"), within=timedelta(milliseconds=50), lapse="b")
        return Outcome("ok", note=(await v.ask("q", wanted)).choice)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.scalar(sa.select(tables.visits.c.note)) == "b"


async def test_the_first_recorded_time_of_a_sleep_wins(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        bench.calls.append("activated")
        wanted = timedelta(seconds=1) if len(bench.calls) == 1 else timedelta(hours=1)
        await v.sleep("rest", bench.store.clock() + wanted)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.calls == ["activated", "activated"]


async def test_pause_lets_a_running_turn_end_and_starts_nothing_until_resume(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("one", agent_task)
        await v.agent("two", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        await bench.write(runs.pause, "r1", actor=ME)
        bench.sessions.reply("one")
        await bench.state("n.1", "ready")
        started_while_paused = bench.sessions.started
        await bench.write(runs.resume, "r1", actor=ME)
        await bench.until(lambda: bench.sessions.running == ["n.1/two#0/1"])

    assert started_while_paused == ["n.1/one#0/1"]


async def test_cancel_is_said_only_after_the_sessions_are_proven_stopped(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        for visit in await bench.write(runs.fence, "r1", actor=ME):
            await daemon.stop(VisitRef.parse(visit), "canceled")
        before = (bench.run_state(), bench.sessions.running)
        await bench.write(runs.cancel, "r1", actor=ME)

    assert (before, bench.run_state(), bench.visits()) == (("active", []), "canceled", {"n.1": "canceled"})


async def test_send_back_answers_the_gate_for_good_and_starts_the_next_visit(bench: Bench) -> None:
    async def plan(v: Visit, _: Any) -> Outcome:
        await v.step("plan", bench.act, f"plan {v.ref.n}")
        return OK

    async def review(v: Visit, _: Any) -> Outcome:
        await v.ask("go", approve())
        return OK

    bench.node("plan", plan)
    bench.node("review", review)
    async with bench.daemon():
        await bench.start(chain("plan", "review"))
        await bench.gate_open("review.1")
        await bench.send_back(chain("plan", "review"), "plan")
        await bench.state("review.2", "parked")

    assert (bench.calls, bench.visits()) == (
        ["plan 1", "plan 2"],
        {"plan.1": "superseded", "review.1": "superseded", "plan.2": "done", "review.2": "parked"},
    )


async def test_a_new_visit_waits_until_the_sessions_of_the_old_one_are_stopped(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", agent_task)
        return OK

    bench.node("n", body)
    await bench.start(one("n"))
    async with bench.daemon():
        await bench.until(lambda: bench.sessions.running == ["n.1/code#0/1"])
    await bench.send_back(one("n"), "n")
    waiting = bench.visits()
    async with bench.daemon("w2"):
        await bench.until(lambda: bench.sessions.running == ["n.2/code#0/1"])

    assert waiting == {"n.1": "superseded", "n.2": "parked"}


async def test_a_missing_lease_is_a_wait_and_a_freed_one_wakes_it(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> None:
        await v.agent("draft", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(["a", "b", "c"], work, key=str)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"), agent_slots=2)
        await bench.until(lambda: len(bench.sessions.running) == 2)
        await bench.state("n.1", "parked")
        first, second = bench.sessions.running  # which two of the three got a slot is open
        bench.sessions.reply(first)
        await bench.until(lambda: len(bench.sessions.started) == 3)

    third = bench.sessions.started[-1]
    assert sorted([first, second, third]) == [f"n.1/{item}/draft#0/1" for item in "abc"]
    assert bench.sessions.running == [second, third]


async def test_a_parked_item_keeps_its_place(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> None:
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.map(["a", "b", "c", "d"], work, key=str, limit=2)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        for count, item in ((2, "a"), (3, "b"), (4, "c")):
            await bench.started(count)
            await bench.state("n.1", "parked")
            assert len(bench.sessions.running) <= 2
            bench.sessions.reply(f"/{item}/")
        await bench.until(lambda: bench.sessions.running == ["n.1/d/code#0/1"])


async def test_items_with_records_are_re_entered_before_new_ones_start(bench: Bench) -> None:
    plan = ["a", "b"]

    async def ready() -> list[str]:
        return [x for x in plan if x not in bench.calls]

    async def work(v: Visit, item: str) -> None:
        await v.agent("code", agent_task)
        await v.step("land", bench.act, item)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.pool(ready, work, key=str, limit=2)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: len(bench.sessions.running) == 2)
        await bench.state("n.1", "parked")
        plan[:0] = ["first of all", "second of all"]  # an edit of the plan puts new work in front
        bench.sessions.reply("/b/")
        await bench.until(lambda: len(bench.sessions.started) == 3)

    assert bench.sessions.running == ["n.1/a/code#0/1", "n.1/first of all/code#0/1"]


async def test_a_session_nobody_re_enters_is_stopped_when_the_visit_parks(bench: Bench) -> None:
    plan = ["old"]

    async def ready() -> list[str]:
        return list(plan)

    async def work(v: Visit, item: str) -> None:
        await v.agent("code", agent_task)

    async def body(v: Visit, _: Any) -> Outcome:
        await v.pool(ready, work, key=str, limit=2)
        await v.ask("end", approve())
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.sessions.running == ["n.1/old/code#0/1"])
        await bench.state("n.1", "parked")
        plan[:] = ["edited"]
        await bench.write(moves.make_ready, "r1/n.1")
        await bench.until(lambda: bench.sessions.running == ["n.1/edited/code#0/1"])


async def test_lost_is_told_from_never_started(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", lambda: agent_task(Access.WRITE))
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        bench.sessions.one("code").end = Lost()
        gate = await bench.gate_open("blocked")

    assert (gate["detail"]["code"], bench.sessions.started) == ("AGENT_LOST", ["n.1/code#0/1"])


async def test_a_lost_session_that_could_not_write_starts_again_by_itself(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("read", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        bench.sessions.one("read").end = Lost()
        await bench.until(lambda: bench.sessions.running == ["n.1/read#0/2"])


async def test_continue_resumes_the_conversation_that_failed(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        session = bench.sessions.one("code")
        session.end = Failed(
            session=SessionRef(session.token, "talk"), why=Why.OVERLOADED, message="busy", continuable=True
        )
        await bench.gate_open("blocked")
        await bench.answer("blocked", "continue")
        await bench.until(lambda: bench.sessions.running == ["n.1/code#1/1"])

    work = bench.sessions.one("code#1").work
    assert isinstance(work, AgentTask)
    assert work.resume == SessionRef(session.token, "talk")
    assert work.brief.text == f"{agent_task().brief.text}\n\n{GO_ON}"  # of its first line; the task is told once


async def test_a_used_up_budget_asks_for_more_and_goes_on(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", agent_task)
        return OK

    bench.node("n", body)
    await bench.start(one("n"), budget={"tokens": 10})
    await bench.write(lambda tx: tx.run(sa.update(tables.runs).values(tokens=10)))
    async with bench.daemon():
        await bench.gate_open("budget")
        await bench.answer("budget", "raise", payload={"tokens": 100})
        await bench.until(lambda: bench.sessions.running == ["n.1/code#0/1"])


async def test_an_activation_that_lost_its_visit_starts_no_further_item(bench: Bench) -> None:
    async def work(v: Visit, item: str) -> None:
        if item == "first":
            await bench.store.write(visits.release_dead)  # another worker takes over in the middle
        await v.step("do", bench.act, item)

    async def body(v: Visit, _: Any) -> Outcome:
        if bench.calls:
            await v.ask("end", approve())
        await v.map(["first", "second"], work, key=str, limit=1)
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()

    assert bench.calls == ["first"]


async def test_a_run_waits_for_a_place_of_its_project_and_gets_it_when_another_ends(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.ask("go", approve())
        return OK

    bench.node("n", body)
    bench.nodes["n"].spec = replace(bench.nodes["n"].spec, place=True)
    async with bench.daemon():
        await bench.start(one("n"), "r1", parallel_tickets=1)
        await bench.gate_open("r1")
        await bench.start(one("n"), "r2", parallel_tickets=1)
        await bench.until(lambda: bench.visit("n.1", "r2") == "parked")
        gates_before = bench.events("gate.")
        await bench.answer("r1", "yes")
        await bench.gate_open("r2")

    assert (gates_before, bench.run_state("r1")) == (["gate.opened"], "completed")


async def stopped_at_once(bench: Bench, daemon: Dispatcher) -> None:
    for visit in await bench.write(runs.fence, "r1", actor=ME):
        await daemon.stop(VisitRef.parse(visit), "pause --now")


async def test_after_a_pause_now_a_reading_session_starts_again_on_resume(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("read", agent_task)
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        await stopped_at_once(bench, daemon)
        stopped = bench.sessions.running
        await bench.write(runs.resume, "r1", actor=ME)
        await bench.until(lambda: bench.sessions.running == ["n.1/read#0/2"])

    assert stopped == []


async def test_after_a_pause_now_commands_run_again_on_resume(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.command("check", lambda: Batch((), Path("/")))
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        bench.sessions.one("check").end = Ran((), stopped=True)
        await stopped_at_once(bench, daemon)
        await bench.write(runs.resume, "r1", actor=ME)
        await bench.until(lambda: bench.sessions.running == ["n.1/check#0/2"])


async def test_after_a_pause_now_a_writing_session_has_failed_its_try(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        try:
            await v.agent("code", lambda: agent_task(Access.WRITE))
        except TurnFailed as failed:
            return Outcome("ok", note=f"{failed.code} {fails_the_try(failed.end)}")
        return OK

    bench.node("n", body)
    async with bench.daemon() as daemon:
        await bench.start(one("n"))
        await bench.state("n.1", "parked")
        await stopped_at_once(bench, daemon)
        await bench.write(runs.resume, "r1", actor=ME)
        await bench.until(lambda: bench.run_state() == "completed")

    assert bench.scalar(sa.select(tables.visits.c.note)) == "AGENT_STOPPED True"


async def test_a_run_that_waits_in_its_review_gives_its_place_back(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.phase(Phase.CODING)
        await v.step("work", bench.act, "work")
        await v.phase(Phase.WAITING_PR_REVIEW)
        await v.ask("merge", approve())
        return OK

    bench.node("n", body)
    bench.nodes["n"].spec = replace(bench.nodes["n"].spec, place=True)
    async with bench.daemon():
        await bench.start(one("n"), "r1", parallel_tickets=1)
        await bench.start(one("n"), "r2", parallel_tickets=1)
        await bench.until(lambda: len(bench.calls) == 2)
