"""One delivery that dies at every durable name and at every crash point of git and forge, once each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
import sqlalchemy as sa

from beadmill import crashpoints
from beadmill.artifacts.delivery import CleanupReport, IntegrationReport, MergeReport
from beadmill.crashpoints import Crashed
from beadmill.nodes.setup import SetupNode
from beadmill.store import tables
from tests.conftest import Git
from tests.nodes.exec_bench import Bench, Seeder, chain, planned
from tests.nodes.test_exec_delivery import bench as bench  # noqa: PLC0414 - the fixture of the whole chain
from tests.nodes.test_exec_lanes import coder, makes
from tests.nodes.test_exec_setup import NEEDED, reply, step

WHOLE = chain("setup", "build", "verify", "integrate", "pull_request", "cleanup")


Person = Callable[[Bench], Awaitable[None]]


async def merges(bench: Bench) -> None:
    await bench.answer("merge")


async def lives(bench: Bench, person: Person = merges) -> list[str]:
    """Starts the daemon anew after each death until the run is over; ``person`` answers every gate on the way."""
    died: list[str] = []
    async with asyncio.timeout(110):
        while bench.run_state() == "active":
            try:
                await life(bench, person)
            except* Crashed as group:
                died += [str(error) for error in group.exceptions]
    return died


async def life(bench: Bench, person: Person) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.dispatching().serve())
        while bench.run_state() == "active" and not task.done():
            if bench.gates():
                await person(bench)
            await asyncio.wait([task], timeout=0.05)
        task.cancel()


def once_each(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    seen: Counter[str] = Counter()

    def reach(name: str) -> None:
        seen[name] += 1
        if seen[name] == 1:
            raise Crashed(name)

    monkeypatch.setenv("BEADMILL_TESTING", "1")
    monkeypatch.setattr(crashpoints, "on_reach", reach)
    return seen


async def test_a_delivery_that_dies_at_every_name_ends_as_if_it_had_not(
    bench: Bench, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.nodes |= {"seed": Seeder(planned()[:3]), "setup": SetupNode(**bench.parts)}
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("echo x > new.txt")]))
    await bench.start(WHOLE)
    names = once_each(monkeypatch)
    died = await lives(bench)
    assert len(died) == len(names) > 80
    assert bench.run_state() == "completed"
    asked = ["setup_plan", "coding", "final_test", "review", "candidate_audit", "pull_request"]
    assert [task.brief.template for task in bench.desk.tasks] == asked
    assert [(a.n, a.state) for a in bench.attempts()] == [(1, "done")]
    rows = bench.rows(sa.select(tables.checks.c.purpose).order_by(tables.checks.c.id))
    purposes = ["setup: Prepare", "probe: runs", "baseline", "bead", "red_on_base", "final_test", "regression"]
    assert [row[0] for row in rows] == purposes
    merge, candidate = bench.last(MergeReport), bench.last(IntegrationReport)
    git(bench.repository, "fetch", "-q", "origin")
    log = git(bench.repository, "log", "--format=%H", "--topo-order", "origin/main").splitlines()
    assert log[:2] == [merge.sha, candidate.candidate_commit]
    assert len(log) == 4
    assert bench.last(CleanupReport).status == "clean"
    assert not bench.tree.exists()


async def test_beads_beside_each_other_that_die_at_every_name_land_once_each(
    bench: Bench, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.nodes["seed"] = Seeder(planned(makes("a"), makes("b", priority=2)))
    bench.on("coding", coder)
    await bench.start(chain("build"), build={"parallel": 2})
    names = once_each(monkeypatch)
    await lives(bench)  # two at once may die in one life: each name counts once all the same
    assert len(names) > 100
    assert (bench.run_state(), bench.visits()["build.1"]) == ("completed", "ok")
    assert sorted((a.bead, a.n, a.state) for a in bench.attempts()) == [("a", 1, "done"), ("b", 1, "done")]
    landed = git(bench.repository, "log", "--format=%s", "main..beadmill/APP-1").splitlines()
    assert sorted(landed) == ["bead(a): Add a", "bead(b): Add b"]
    assert git(bench.tree, "status", "--porcelain") == ""
