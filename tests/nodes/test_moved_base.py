"""The base moves while a change waits for its merge; and what the gate of the whole tests makes of failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.artifacts.delivery import FinalTestReport, IntegrationReport, MergeReport
from beadmill.artifacts.setup import ProjectCommands
from beadmill.domain.command import CommandSpec
from beadmill.processes.spec import AgentTask
from tests.conftest import Git
from tests.nodes.exec_bench import (
    GOOD,
    SUITE,
    Bench,
    Seeder,
    baseline,
    marker,
    planned,
    publish,
    put,
    setup_plan,
    writes,
)  # fmt: skip
from tests.nodes.test_exec_delivery import TO_VERIFY, WHOLE, final, run
from tests.nodes.test_exec_delivery import bench as bench  # noqa: PLC0414 - fixtures of the whole chain
from tests.nodes.test_exec_delivery import built as built  # noqa: PLC0414 - fixtures of the whole chain

OTHER = "import unittest\n\n\nclass Other(unittest.TestCase):\n    def test_other(self):\n        self.assert{}(0)\n"


async def merge(built: Bench, pushed: dict[str, str]) -> None:
    """Somebody pushes to the base, then the person says merge, and whatever follows happens."""
    async with built.daemon():
        await built.gate()
        put(built.repository, pushed)
        publish(built.repository)
        await built.answer("merge")
        await built.until(lambda: built.run_state() != "active" or bool(built.gates()))


async def test_c35_a_change_whose_base_moved_is_put_on_it_verified_and_merged_without_asking_twice(
    built: Bench, git: Git
) -> None:
    asked = len(built.desk.tasks)
    await merge(built, {"other.py": "y = 2\n"})
    assert (built.run_state(), built.visits()["integrate.2"], built.visits()["pull_request.2"]) == (
        "completed", "ok", "merged",
    )  # fmt: skip
    git(built.repository, "fetch", "-q", "origin")
    assert git(built.repository, "rev-parse", "origin/main^2^") == git(built.repository, "rev-parse", "main")
    assert git(built.repository, "ls-tree", "--name-only", "origin/main", "other.py", "greet.py").splitlines() == [
        "greet.py", "other.py",
    ]  # fmt: skip
    assert [task.brief.template for task in built.desk.tasks[asked:]] == []
    assert built.last(MergeReport).by == "user:ada"


async def test_the_decision_that_went_along_says_whose_it_was(built: Bench) -> None:
    await merge(built, {"other.py": "y = 2\n"})
    (receipt,) = [d for d in built.decisions() if "pull_request.2" in d["gate_id"]]
    assert (receipt["choice"], receipt["note"]) == (
        "merge", "user:ada decided to merge this same patch before main moved",
    )  # fmt: skip


async def test_c35_a_change_that_differs_on_the_moved_base_is_asked_for_again(built: Bench) -> None:
    await merge(built, {"tests/__init__.py": ""})
    (gate,) = built.gates()
    assert (gate["kind"], gate["id"].partition("/")[2]) == ("merge", "pull_request.2/merge-1#0")
    assert "tests/__init__.py" not in {one.path for one in built.last(IntegrationReport).files}


async def test_a_change_that_fails_beside_what_came_to_the_base_goes_back_to_build(built: Bench) -> None:
    clash = "import os\nimport unittest\n\n\nclass Clash(unittest.TestCase):\n    def test_clash(self):\n        self.assertFalse(os.path.exists('greet.py'))\n"
    built.on("coding", writes({"tests/test_clash.py": OTHER.format("False")}))
    built.on("final_test", final({"tests/test_flow.py": "import unittest\n"}))
    await merge(built, {"tests/__init__.py": "", "tests/test_clash.py": clash})
    briefs = [text for text in built.desk.briefs("coding") if "rework-integrate-2" in text]
    assert "main moved on. The change merges with it, yet these commands fail now." in briefs[0]


async def test_what_fails_on_the_moved_base_by_itself_is_not_this_changes(built: Bench) -> None:
    await merge(built, {"tests/__init__.py": "", "tests/test_other.py": OTHER.format("True")})
    assert built.visits()["integrate.2"] == "ok"


async def test_tickets_of_one_base_land_one_by_one_each_verified_with_what_landed_before(
    bench: Bench, git: Git
) -> None:
    def own(task: AgentTask) -> str:
        put(task.cwd, {**GOOD, f"of_{task.cwd.parent.name[-1]}.py": "x = 1\n"})
        return marker(task)

    bench.on("coding", own)
    for run_, key in (("r1", "APP-1"), ("r2", "APP-2")):
        await bench.begin(WHOLE, {}, run=run_, key=key)
    async with bench.daemon():
        await bench.until(lambda: len(bench.gates()) == 2)
        await bench.answer_all("merge")
        await bench.until(lambda: "completed" in bench.states() and len(bench.gates()) == 1)
        await bench.answer("merge")  # its patch is smaller on the new base, so it was asked again
        await bench.until(lambda: bench.states() == ["completed", "completed"])
    git(bench.repository, "fetch", "-q", "origin")
    names = git(bench.repository, "ls-tree", "--name-only", "origin/main").splitlines()
    assert {"of_1.py", "of_2.py"} <= set(names)
    assert sorted(n for n in bench.all_visits() if "integrate" in n) in (
        ["r1/integrate.1", "r1/integrate.2", "r2/integrate.1"], ["r1/integrate.1", "r2/integrate.1", "r2/integrate.2"],
    )  # fmt: skip


# --- the gate of the whole tests ------------------------------------------------------------------------------------
def gated(bench: Bench, commands: ProjectCommands, **profile: object) -> None:
    documents = [doc for doc in planned(**profile) if doc.kind != "execution_setup_plan"]
    bench.nodes["seed"] = Seeder((*documents, setup_plan(project_commands=commands)))


async def test_a_command_that_passes_when_it_runs_once_more_is_called_flaky_and_blocks_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    once = CommandSpec(mode="shell", script=f"test -e {tmp_path}/seen || {{ touch {tmp_path}/seen; exit 1; }}")
    gated(bench, ProjectCommands(test_full=(once,)), baseline=(baseline(once),))
    await run(bench, TO_VERIFY)
    report = bench.last(FinalTestReport)
    assert (report.passed, report.flaky, report.regressions) == (True, (str(once),), ())


@pytest.mark.parametrize("words", ["greet.py:1:1: E1 bad name", "greet.py(1,1): error TS1: bad name"])
async def test_a_new_finding_of_the_linter_sends_the_run_back_and_an_old_one_does_not(bench: Bench, words: str) -> None:
    lint = CommandSpec(mode="shell", script=f"echo 'old.py:1:1: E1 old'; test ! -e greet.py || echo '{words}'; exit 1")
    before = baseline(lint, exit_code=1).model_copy(
        update={"output": "old.py:7:1: E1 old", "failing": ("old.py: E1 old",)}
    )
    gated(bench, ProjectCommands(test_full=(SUITE,), lint_full=(lint,)), baseline=(baseline(), before))
    await run(bench, TO_VERIFY, build={"attempts": 1})
    assert bench.visits()["verify.1"] == "superseded"
    assert bench.last(FinalTestReport).regressions == (str(lint),)


async def test_findings_that_were_there_before_block_nothing(bench: Bench) -> None:
    lint = CommandSpec(mode="shell", script="echo 'old.py:9:1: E1 old'; exit 1")
    before = baseline(lint, exit_code=1).model_copy(update={"failing": ("old.py: E1 old",)})
    gated(bench, ProjectCommands(test_full=(SUITE,), lint_full=(lint,)), baseline=(baseline(), before))
    await run(bench, TO_VERIFY)
    assert bench.last(FinalTestReport).passed
