"""Beads at the same time: lanes, landing, and what happens when two of them meet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from repositories_for_tests import with_submodule

from beadmill.artifacts.beads import Bead, Dependencies
from beadmill.artifacts.delivery import BeadEvidence
from beadmill.artifacts.setup import Readiness, SetupStep
from beadmill.domain.command import CommandSpec
from beadmill.nodes.build import BuildNode
from beadmill.processes.spec import AgentTask
from tests.conftest import Git
from tests.nodes.exec_bench import Bench, Seeder, bead, chain, marker, planned, publish, put, setup_plan, subject_of

HAS = "import sys, pathlib; sys.exit(any(not pathlib.Path(n).exists() for n in sys.argv[1:]))"


def needs(*names: str) -> CommandSpec:
    """A command that passes where these files are."""
    return CommandSpec(program="python3", args=("-c", HAS, *names))


def makes(name: str, *, after: tuple[str, ...] = (), priority: int = 1, commands: tuple[CommandSpec, ...] = ()) -> Bead:
    return bead(
        name, priority=priority, target_files=(f"{name}.txt",), test_files=(),
        test_commands=commands or (needs(f"{name}.txt"),), dependencies=Dependencies(blocked_by=after),
    )  # fmt: skip


def coder(task: AgentTask) -> str:
    put(task.cwd, {f"{subject_of(task)[0]}.txt": "x\n"})
    return marker(task)


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"build": BuildNode(**made.parts)}
    made.on("coding", coder)
    made.on("iteration_note", "It was too slow.")
    return made


async def build(bench: Bench, *beads: Bead, parallel: int = 2, **build: object) -> None:
    bench.nodes.setdefault("seed", Seeder(planned(*beads)))
    await bench.start(chain("build"), build={"parallel": parallel, **build})
    async with bench.daemon():
        await bench.ends()


async def test_beads_that_need_nothing_of_each_other_are_built_at_once_and_land_one_by_one(
    bench: Bench, git: Git
) -> None:
    await build(bench, makes("a"), makes("b", priority=2), makes("c", priority=3), parallel=3)
    assert bench.visits() == {"seed.1": "ok", "build.1": "ok"}
    assert {attempt.start_commit for attempt in bench.attempts()} == {git(bench.repository, "rev-parse", "main")}
    assert sorted(Path(attempt.tree).parent.name for attempt in bench.attempts()) == ["1", "2", "3"]
    assert sorted(git(bench.tree, "log", "--format=%s", "main..HEAD").splitlines()) == [
        "bead(a): Add a", "bead(b): Add b", "bead(c): Add c",
    ]  # fmt: skip
    assert git(bench.tree, "status", "--porcelain") == ""
    assert sorted(path.name for path in bench.tree.glob("*.txt")) == ["a.txt", "b.txt", "c.txt"]


async def test_each_commit_is_what_was_proved_with_the_beads_that_landed_before(bench: Bench) -> None:
    await build(bench, makes("a"), makes("b", priority=2))
    _first, second = sorted(bench.attempts(), key=lambda attempt: str(attempt.ended))
    asked = [step for step in bench.steps() if "/together-" in step]
    assert [step.split("/")[0].split("@")[0] for step in asked] == [second.bead]


async def test_a_bead_waits_for_the_one_it_is_blocked_by(bench: Bench) -> None:
    await build(bench, makes("a"), makes("b", after=("a",), priority=2, commands=(needs("a.txt", "b.txt"),)))
    first, second = bench.attempts()
    assert (second.bead, second.start_commit) == ("b", first.end_commit)


async def test_a_conflict_does_the_later_bead_again_on_the_new_head_without_spending_a_try(
    bench: Bench, git: Git
) -> None:
    def both_write_readme(task: AgentTask) -> str:
        put(task.cwd, {"README.md": f"{(task.cwd / 'README.md').read_text()}by {subject_of(task)[0]}\n"})
        return coder(task)

    bench.on("coding", both_write_readme)
    await build(bench, makes("a"), makes("b", priority=2), attempts=1)
    first, late, again = sorted(bench.attempts(), key=lambda attempt: str(attempt.ended))
    assert [(x.n, x.state) for x in (first, late, again)] == [(1, "done"), (1, "failed"), (2, "done")]
    assert late.note.startswith("The bead held, but the branch moved meanwhile and its work does not merge: README.md.")
    assert git(bench.tree, "show", "HEAD:README.md").splitlines()[-2:] == [f"by {first.bead}", f"by {again.bead}"]


async def test_work_that_fails_beside_what_landed_is_done_again(bench: Bench) -> None:
    """Both pass alone; together they are one file too many."""
    alone = CommandSpec(
        program="python3",
        args=(
            "-c",
            "import pathlib, sys; p = pathlib.Path; sys.exit(p('a.txt').exists() and not p('ok.txt').exists())",
        ),
    )

    def second_time_right(task: AgentTask) -> str:
        _name, n = subject_of(task)
        put(task.cwd, {"ok.txt": "x\n"} if n == 2 else {})
        return coder(task)

    bench.on("coding", second_time_right)
    await build(bench, makes("a"), makes("b", priority=2, commands=(alone,)), attempts=1)
    notes = {x.note.splitlines()[0] for x in bench.attempts() if x.state == "failed"}
    assert notes == {
        "The bead held alone, but not together with the beads that landed meanwhile. It is done again on the new head."
    }
    assert bench.visits()["build.1"] == "ok"


async def test_a_lane_is_prepared_once_and_keeps_its_ignored_files(bench: Bench) -> None:
    step = SetupStep(id="deps", title="Install", commands=(CommandSpec(mode="shell", script="echo x >> deps.pyc"),))
    put(bench.repository, {".gitignore": "*.pyc\n__pycache__/\n"})
    plan = setup_plan(readiness=Readiness(status="partial", actions_required=True), steps=(step,))
    seeded = [doc for doc in planned(makes("a"), makes("b", after=("a",), priority=2)) if doc.kind != plan.kind]
    bench.nodes["seed"] = Seeder((*seeded, plan))
    publish(bench.repository)
    await build(bench)
    lane = bench.workspace / "lanes" / "1" / "tree"
    assert (lane / "deps.pyc").read_text() == "x\n"
    assert [Path(attempt.tree) for attempt in bench.attempts()] == [lane, lane]


async def test_a_lane_that_cannot_be_prepared_is_a_gate_that_names_the_command(bench: Bench) -> None:
    step = SetupStep(id="deps", title="Install", commands=(CommandSpec(program="false"),))
    plan = setup_plan(readiness=Readiness(status="partial", actions_required=True), steps=(step,))
    seeded = [doc for doc in planned(makes("a")) if doc.kind != plan.kind]
    bench.nodes["seed"] = Seeder((*seeded, plan))
    await build(bench)
    (gate,) = bench.gates()
    assert (gate["detail"]["code"], gate["detail"]["details"]["failed"]) == ("LANE_SETUP_FAILED", ["false"])


async def test_c08_a_lane_has_the_submodules_too(bench: Bench) -> None:
    with_submodule(bench.repository)
    await build(bench, makes("a", commands=(needs("vendor/sub/file", "a.txt"),)))
    assert [str(attempt.state) for attempt in bench.attempts()] == ["done"]


async def test_a_lane_whose_submodules_cannot_be_had_is_a_gate_that_names_them(bench: Bench) -> None:
    inner = with_submodule(bench.repository)
    inner.rename(inner.with_name("away"))
    await build(bench, makes("a"))
    (gate,) = bench.gates()
    assert gate["detail"]["code"] == "LANE_SETUP_FAILED"
    assert "lacks submodules: vendor/sub from ../inner" in gate["detail"]["message"]


async def test_what_names_the_tickets_folder_names_the_lanes_in_a_lane(bench: Bench) -> None:
    found: list[str] = []

    def look(task: AgentTask) -> str:
        found.append(task.brief.text)
        return coder(task)

    bench.on("coding", look)
    bench.nodes["seed"] = Seeder(planned(makes("a"), variables={"DATA": f"{bench.tree}/data"}))
    await build(bench)
    assert f"{bench.workspace}/lanes/1/tree/data" in found[0]
    assert f"{bench.tree}/data" not in found[0]


async def test_a_bead_that_breaks_what_proved_an_earlier_one_is_told_so(bench: Bench) -> None:
    def removes(task: AgentTask) -> str:
        name, n = subject_of(task)
        if (name, n) == ("b", 1):
            (task.cwd / "a.txt").unlink()
        return coder(task)

    bench.on("coding", removes)
    await build(bench, makes("a"), makes("b", after=("a",), priority=2), parallel=1)
    failed = [x for x in bench.attempts() if x.state == "failed"]
    assert [x.note.splitlines()[0] for x in failed] == [
        "The bead's own commands pass, but it breaks what proved earlier beads."
    ]
    assert [run.purpose for run in bench.last(BeadEvidence).checks] == ["bead"]


async def test_a_bead_that_is_reported_as_done_with_nothing_changed_is_told_so(bench: Bench) -> None:
    bench.on("coding", marker, coder)
    await build(bench, makes("a", commands=(CommandSpec(program="true"),)), parallel=1)
    first, _second = bench.attempts()
    assert first.note.startswith("It is reported as done and nothing was changed.")


async def test_a_bead_that_the_repository_meets_already_is_done_with_its_reason_shown(bench: Bench) -> None:
    bench.on("coding", lambda task: marker(task, reason="README.md says it already."))
    await build(bench, makes("a", commands=(CommandSpec(program="true"),)), parallel=1)
    assert [(x.state, x.proof["warnings"]) for x in bench.attempts()] == [
        ("done", ["nothing was changed: README.md says it already."])
    ]


def verdict(said: str, *findings: dict[str, object]) -> str:
    value = {"verdict": said, "summary": "looked at", "findings": list(findings)}
    return f"<REVIEW_RESULT>\n{json.dumps(value)}\n</REVIEW_RESULT>"


LEAK = {"severity": "major", "text": "The file is never closed.", "path": "a.txt", "line": 1}


async def test_a_reviewer_of_another_seat_checks_each_bead_and_refuses_it_by_policy(bench: Bench) -> None:
    bench.on("bead_review", verdict("request_changes", LEAK), verdict("approve"))
    await build(bench, makes("a"), parallel=1, bead_review="fail")
    first, second = bench.attempts()
    assert first.note.splitlines()[:3] == [
        "The commands pass, and the reviewer of this bead asks for changes:", "", "- major: The file is never closed. (a.txt:1)",
    ]  # fmt: skip
    assert (second.state, second.proof["review"]["verdict"], second.proof["review"]["reviewer"]) == (
        "done", "approve", "scripted/b",
    )  # fmt: skip


async def test_by_default_what_a_reviewer_of_a_bead_would_say_is_not_asked(bench: Bench) -> None:
    await build(bench, makes("a"), parallel=1)
    assert [task.brief.template for task in bench.desk.tasks] == ["coding"]


async def test_a_flagged_review_is_shown_and_stops_nothing(bench: Bench) -> None:
    bench.on("bead_review", verdict("request_changes", LEAK))
    await build(bench, makes("a"), parallel=1, bead_review="flag")
    (attempt,) = bench.attempts()
    assert (attempt.state, attempt.proof["review"]["findings"][0]["text"]) == ("done", LEAK["text"])
