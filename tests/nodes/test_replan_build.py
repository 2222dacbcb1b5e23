"""A plan that is changed while it is being built: the real build node, the real operations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.command import write_command
from beadmill.artifacts.replan import Change, Edit, Skip, Split
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Ended, Limited, SessionRef
from beadmill.errors import Conflict, Missing, Stale
from beadmill.nodes.build import BuildNode
from beadmill.operations import artifacts, beads, runs, trail
from beadmill.operations.ports import Ports
from beadmill.processes.spec import AgentTask
from beadmill.settings import Settings
from beadmill.store import tables
from tests.nodes.exec_bench import ME, Bench, Seeder, bead, chain, marker, planned, subject_of
from tests.nodes.test_exec_lanes import coder, makes, needs

WITHOUT = CommandSpec(mode="shell", script="test ! -e a.txt")  # what passes before the bead and fails with it
NEVER = makes("a", commands=(WITHOUT,))


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"build": BuildNode(**made.parts), "seed": Seeder(planned(NEVER, makes("b", priority=2)))}
    made.on("coding", coder)
    made.on("iteration_note", "It cannot be.")
    return made


def ports_of(bench: Bench) -> Ports:
    unused = cast("Any", None)
    return Ports(
        settings=Settings(home=bench.home), store=bench.store, engine=cast("Any", bench.dispatcher),
        sessions=cast("Any", bench.desk), agents=unused, kinds={}, profile=unused,
    )  # fmt: skip


def sha(bench: Bench) -> str:
    return bench.last(Beads).sha256


async def change(bench: Bench, *changes: Change, **more: Any) -> list[str]:
    """Ids with their states after it."""
    wish = {"etag": sha(bench), "actor": ME, **more}
    lines = await beads.replan(ports_of(bench), "r1", changes, **wish)
    return [f"{line.id} {'skipped' if line.skipped else line.state}" for line in lines]


async def until_blocked(bench: Bench) -> None:
    await bench.start(chain("build"), build={"attempts": 1})


def waits_for_its_provider(task: AgentTask) -> Ended:
    until = datetime.now(UTC) + timedelta(hours=1)
    return Limited(session=SessionRef(f"limited-{subject_of(task)[0]}"), until=until, message="5 hours")


async def test_a_bead_that_cannot_be_is_skipped_and_the_build_goes_on(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        assert await change(bench, Skip(do="skip", bead="a")) == ["a skipped", "b pending"]
        await bench.answer("retry")
        await bench.until(lambda: bench.run_state() == "completed")
    assert [(x.bead, x.state) for x in bench.attempts()] == [("a", "failed"), ("b", "done")]


async def test_an_edited_bead_is_new_work_with_tries_of_its_own(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        better = [write_command(needs("a.txt"))]
        await change(bench, Edit(do="edit", bead="a", fields={"test_commands": better}))
        await bench.answer("retry")
        await bench.until(lambda: bench.run_state() == "completed")
    first, second = [x for x in bench.attempts() if x.bead == "a"]
    assert (first.state, second.state, first.bead_sha == second.bead_sha) == ("failed", "done", False)


async def test_a_split_bead_is_built_in_its_parts(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        parts = tuple({"test_commands": [write_command(needs(f"a-{n}.txt"))]} for n in (1, 2))
        await change(bench, Split(do="split", bead="a", into=parts))
        await bench.answer("retry")
        await bench.until(lambda: bench.run_state() == "completed")
    assert [x.bead for x in bench.attempts() if x.state == "done"] == ["a-1", "a-2", "b"]


async def test_a_plan_at_work_is_only_changed_while_its_run_is_paused(bench: Bench) -> None:
    bench.on("coding", waits_for_its_provider)
    await bench.start(chain("build"))
    async with bench.daemon():
        await bench.until(lambda: bench.visits().get("build.1") == "parked" and bool(bench.desk.tasks))
        with pytest.raises(Conflict, match="agents work by this plan"):
            await change(bench, Skip(do="skip", bead="b"))
        await runs.pause(ports_of(bench), "r1", actor=ME)
        assert await change(bench, Skip(do="skip", bead="b")) == ["a in_progress", "b skipped"]


async def test_a_bead_that_is_done_stays_as_it_is(bench: Bench) -> None:
    bench.nodes["seed"] = Seeder(planned(makes("b"), makes("a", priority=2, commands=(WITHOUT,))))
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        with pytest.raises(Conflict, match="b is done"):
            await change(bench, Skip(do="skip", bead="b"))


async def test_a_change_of_another_version_is_refused_and_so_is_one_of_none(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        with pytest.raises(Stale):
            await change(bench, Skip(do="skip", bead="a"), etag="0" * 64)
        with pytest.raises(Missing):
            await change(bench, Skip(do="skip", bead="a"), etag=None)


async def test_the_same_key_changes_the_plan_once(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        before = sha(bench)
        for _ in range(2):
            await change(bench, Skip(do="skip", bead="a"), key="k", etag=before)
        rows = bench.rows(sa.select(tables.artifacts.c.version).where(tables.artifacts.c.kind == "beads"))
        assert [row.version for row in rows] == [1, 2]


async def test_the_receipt_says_who_changed_what_and_why(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        await change(bench, Skip(do="skip", bead="a"), note="not needed")
        found = await trail.listing(ports_of(bench), run="r1", actor=ME)
    (line,) = [line for line in found.lines if line.kind == "edit"]
    assert (line.by, line.reason, line.details["changes"]) == ("user:ada", "not needed", ["skipped a"])


async def test_the_whole_plan_can_be_edited_as_a_document_too(bench: Bench) -> None:
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        ports = ports_of(bench)
        (line,) = (await artifacts.listing(ports, run="r1", kind="beads", actor=ME)).items
        shown = await artifacts.show(ports, line.row, actor=ME)
        text = shown.text.replace("Add b", "Add the other")
        edited = await artifacts.edit(ports, line.row, etag=shown.sha256, text=text, actor=ME)
    assert (shown.edits, edited.version, [b.title for b in bench.last(Beads).beads]) == (
        "replan", 2, ["Add a", "Add the other"],
    )  # fmt: skip


async def test_a_document_that_takes_a_done_bead_out_is_refused(bench: Bench) -> None:
    bench.nodes["seed"] = Seeder(planned(makes("b"), makes("a", priority=2, commands=(WITHOUT,))))
    await until_blocked(bench)
    async with bench.daemon():
        await bench.gate()
        ports = ports_of(bench)
        (line,) = (await artifacts.listing(ports, run="r1", kind="beads", actor=ME)).items
        shown = await artifacts.show(ports, line.row, actor=ME)
        text = "\n".join(row for row in shown.text.splitlines() if '"id": "b"' not in row)
        with pytest.raises(Conflict, match="b is done"):
            await artifacts.edit(ports, line.row, etag=shown.sha256, text=text, actor=ME)


async def test_after_the_build_the_plan_is_not_changed_any_more(bench: Bench) -> None:
    bench.nodes["seed"] = Seeder(planned(makes("b"), bead("c", test_commands=(), test_command_reason="none")))
    bench.on("coding", lambda task: coder(task) if subject_of(task)[0] == "b" else marker(task, reason="fine"))
    await bench.start(chain("build"))
    async with bench.daemon():
        await bench.ends()
        with pytest.raises(Conflict, match="not being built"):
            await change(bench, Skip(do="skip", bead="b"))
