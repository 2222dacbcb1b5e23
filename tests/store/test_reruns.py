from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import SYSTEM, ArtifactRef, Outcome
from beadmill.engine.port import Visit
from beadmill.errors import Conflict, NotFound
from beadmill.sops.load import load
from beadmill.store import tables
from beadmill.store.journal import attempts, reruns
from tests.engine.bench import ME, Bench, chain

SOP = chain("plan", "build", "ship")
GRAPH = load(SOP, name="test").graph


async def planned(bench: Bench) -> None:
    """A run that has planned, built one bead and shipped."""

    async def plan(v: Visit, _: Any) -> Outcome:
        ref = await v.put(RelevantFiles(ticket_id="T-1"), by=SYSTEM)
        await v.step("plan", bench.act, "plan")
        return Outcome("ok", made=(ref,))

    async def build(v: Visit, _: Any) -> Outcome:
        await v.get(RelevantFiles)
        await v.step("build", bench.act, "build")
        return Outcome("ok")

    async def ship(v: Visit, _: Any) -> Outcome:
        await v.step("ship", bench.act, "ship")
        return Outcome("ok")

    for kind, body in (("plan", plan), ("build", build), ("ship", ship)):
        bench.node(kind, body)
    async with bench.daemon():
        await bench.start(SOP)
        await bench.until(lambda: bench.run_state() == "completed")
    await bench.write(attempts.begin, "r1", "r1/build.1", "b1", bead_sha="s", tree="", start_commit="c", key="r1/k")
    await bench.write(attempts.finish, "r1", "b1", 1, state=AttemptState.DONE, end_commit="d")


async def rerun(bench: Bench, node: str) -> None:
    await bench.write(reruns.rerun, "r1", GRAPH, node, new_run="r2", actor=ME)
    async with bench.daemon("w2"):
        await bench.until(lambda: bench.run_state("r2") == "completed")


async def test_a_rerun_keeps_what_lies_upstream_and_does_the_rest_again(bench: Bench) -> None:
    await planned(bench)

    await rerun(bench, "build")

    assert bench.calls == ["plan", "build", "ship", "build", "ship"]
    assert bench.visits("r2") == {"plan.1": "kept", "build.1": "done", "ship.1": "done"}
    assert bench.run_state("r1") == "superseded"


async def test_a_rerun_reads_the_copies_of_the_documents_it_keeps(bench: Bench) -> None:
    await planned(bench)

    await rerun(bench, "build")

    a = tables.artifacts
    rows = bench.rows(sa.select(a.c.run_id, a.c.visit_id, a.c.sha256).order_by(a.c.id))
    assert [(r.run_id, r.visit_id) for r in rows] == [("r1", "r1/plan.1"), ("r2", "r2/plan.1")]
    assert rows[0].sha256 == rows[1].sha256


@pytest.mark.parametrize(("node", "kept"), [("build", []), ("ship", [("b1", "done")])])
async def test_attempts_are_kept_only_when_their_visit_is(bench: Bench, node: str, kept: list[Any]) -> None:
    await planned(bench)

    await rerun(bench, node)

    b = tables.bead_attempts
    assert [tuple(r) for r in bench.rows(sa.select(b.c.bead, b.c.state).where(b.c.run_id == "r2"))] == kept


async def test_a_rerun_is_refused_for_a_live_run_and_an_unknown_node(bench: Bench) -> None:
    await bench.start(SOP)

    with pytest.raises(NotFound):
        await bench.write(reruns.rerun, "r1", GRAPH, "nowhere", new_run="r2", actor=ME)
    with pytest.raises(Conflict, match="still going on"):
        await bench.write(reruns.rerun, "r1", GRAPH, "build", new_run="r2", actor=ME)


async def test_a_merged_change_refuses_a_rerun(bench: Bench) -> None:
    await planned(bench)
    row = {"run_id": "r1", "forge": "local", "number": 1, "branch": "b", "base": "main", "head": "h", "state": "merged"}
    await bench.write(lambda tx: tx.run(sa.insert(tables.changes).values(**row)))

    with pytest.raises(Conflict, match="merged"):
        await bench.write(reruns.rerun, "r1", GRAPH, "build", new_run="r2", actor=ME)


async def test_an_edit_that_was_taken_back_leaves_the_approved_version_for_later_nodes(bench: Bench) -> None:
    seen: list[str] = []
    first, second = RelevantFiles(ticket_id="one"), RelevantFiles(ticket_id="two")

    async def plan(v: Visit, _: Any) -> Outcome:
        back: ArtifactRef = await v.put(first, by=SYSTEM)
        await v.put(second, by=ME)
        return Outcome("ok", made=(back,))

    async def build(v: Visit, _: Any) -> Outcome:
        seen.append((await v.get(RelevantFiles)).ticket_id)
        return Outcome("ok")

    bench.node("plan", plan)
    bench.node("build", build)
    async with bench.daemon():
        await bench.start(chain("plan", "build"))
        await bench.until(lambda: bench.run_state() == "completed")

    assert seen == ["one"]


async def test_the_comment_of_a_rerun_reaches_its_target_alone(bench: Bench) -> None:
    await planned(bench)

    await bench.write(reruns.rerun, "r1", GRAPH, "build", new_run="r2", actor=ME, comment="newer tools")

    v = tables.visits
    rows = bench.rows(sa.select(v.c.id, v.c.comment).where(v.c.run_id == "r2").order_by(v.c.id))
    assert [tuple(r) for r in rows] == [("r2/build.1", "newer tools"), ("r2/plan.1", "")]
