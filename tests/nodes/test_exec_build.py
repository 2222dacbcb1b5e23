"""The build node with the real engine, real git and real commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from beadmill.artifacts.command import write_command
from beadmill.artifacts.delivery import BeadEvidence
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Ended, Failed, SessionRef, Why
from beadmill.nodes.build import BuildNode
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from tests.conftest import Git
from tests.nodes.exec_bench import (
    GOOD,
    SUITE,
    TEST,
    Bench,
    Seeder,
    bead,
    chain,
    lapses,
    marker,
    planned,
    publish,
    put,
    writes,
)  # fmt: skip

WRONG = {**GOOD, "greet.py": "def greet(name):\n    return 'bye'\n"}


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"seed": Seeder(planned()), "build": BuildNode(**made.parts)}
    made.on("iteration_note", "The greeting was wrong.")
    return made


async def run(bench: Bench, **settings: object) -> None:
    await bench.start(chain("build"), **settings)
    async with bench.daemon():
        await bench.ends()


async def test_a_bead_is_built_proven_and_committed_once(bench: Bench, git: Git) -> None:
    bench.on("coding", writes(GOOD, interfaces=["greet(name) -> str"]))
    await run(bench)
    evidence = bench.last(BeadEvidence)
    assert bench.visits() == {"seed.1": "ok", "build.1": "ok"}
    assert git(bench.tree, "log", "--format=%s", "main..HEAD") == "bead(greet): Add greet"
    assert git(bench.tree, "rev-parse", "HEAD") == evidence.commit
    assert git(bench.tree, "status", "--porcelain") == ""
    assert evidence.paths == ("greet.py", "tests/__init__.py", "tests/test_greet.py")
    assert (evidence.holds, evidence.red_on_base.result, evidence.interfaces) == (
        True,
        "absent",
        ("greet(name) -> str",),
    )


async def test_c25_commands_run_in_their_own_folder_and_the_commit_covers_the_whole_repository(
    bench: Bench, git: Git
) -> None:
    here = CommandSpec(mode="shell", script="test $(basename $PWD) = web && test -f ../api/new.py", cwd="packages/web")
    made = bead(test_commands=(here,), target_files=("packages/web/a.py", "packages/api/new.py"), test_files=())
    bench.nodes["seed"] = Seeder(planned(made))
    bench.on("coding", writes({"packages/web/a.py": "a = 1\n", "packages/api/new.py": "b = 2\n"}))
    await run(bench)
    assert bench.last(BeadEvidence).paths == ("packages/api/new.py", "packages/web/a.py")


async def test_work_whose_commands_fail_is_undone_and_the_next_session_gets_the_notes(bench: Bench, git: Git) -> None:
    bench.on("coding", writes(WRONG), writes(GOOD))
    await run(bench)
    first, second = bench.attempts()
    assert (first.state, second.state, second.start_commit) == ("failed", "done", first.start_commit)
    assert "hello x" in first.note
    assert first.note.endswith("The greeting was wrong.")
    assert "The greeting was wrong." in bench.desk.briefs("coding")[1]
    assert git(bench.tree, "rev-list", "--count", "main..HEAD") == "1"


async def test_an_agent_that_says_pass_is_not_believed(bench: Bench, git: Git) -> None:
    bench.on("coding", writes(WRONG))
    await run(bench, build={"attempts": 2})
    (gate,) = bench.gates()
    assert gate["detail"]["code"] == "BEAD_RETRY_BUDGET_EXHAUSTED"
    assert [attempt.state for attempt in bench.attempts()] == ["failed", "failed"]
    assert git(bench.repository, "rev-parse", "main") == git(bench.tree, "rev-parse", "HEAD")
    assert not (bench.tree / "greet.py").exists()


async def test_a_retry_at_the_blocked_gate_gives_a_fresh_budget_and_the_persons_note(bench: Bench) -> None:
    bench.on("coding", writes(WRONG), writes(GOOD))
    await bench.start(chain("build"), build={"attempts": 1})
    async with bench.daemon():
        await bench.answer("retry", note="Say hello, not bye.")
        await bench.until(lambda: bench.run_state() == "completed")
    assert [(a.n, a.state) for a in bench.attempts()] == [(1, "failed"), (2, "done")]
    assert "Say hello, not bye." in bench.desk.briefs("coding")[1]


async def test_a_try_without_time_has_failed_and_its_partial_work_is_kept_in_an_undo_ref(
    bench: Bench, git: Git
) -> None:
    def starts(task: AgentTask) -> Ended:
        put(task.cwd, {"half.py": "x"})
        return lapses(task)

    bench.on("coding", starts, writes(GOOD))
    await run(bench)
    assert "used up its working time (BEAD_ITERATION_TIMEOUT)" in bench.attempts()[0].note
    assert not (bench.tree / "half.py").exists()
    undo = git(bench.repository, "for-each-ref", "--format=%(refname)", "refs/beadmill/undo").splitlines()
    assert any("half.py" in git(bench.repository, "ls-tree", "--name-only", ref) for ref in undo)


async def test_an_unreadable_marker_is_asked_for_again_in_the_same_conversation(bench: Bench) -> None:
    bench.on("coding", writes(GOOD, says="all done, boss"))
    bench.on("repair", marker)
    await run(bench)
    (repair,) = [task for task in bench.desk.tasks if task.brief.template == "repair"]
    assert repair.resume is not None
    assert [attempt.state for attempt in bench.attempts()] == ["done"]


async def test_a_marker_that_stays_unreadable_fails_the_try(bench: Bench) -> None:
    bench.on("coding", "nonsense", writes(GOOD))
    bench.on("repair", "nonsense again")
    await run(bench)
    assert "BEAD_AGENT_RESPONSE_INVALID" in bench.attempts()[0].note
    assert len(bench.desk.briefs("repair")) == 1


async def test_open_checks_are_continued_in_the_same_conversation(bench: Bench) -> None:
    bench.on("coding", lambda task: marker(task, checks="fail", reason="lint is red"))
    bench.on("coding_continue", writes(GOOD))
    await run(bench)
    (brief,) = bench.desk.briefs("coding_continue")
    assert "lint is red" in brief
    assert [attempt.state for attempt in bench.attempts()] == ["done"]


async def test_a_question_waits_for_a_person_and_the_answer_goes_into_the_conversation(bench: Bench) -> None:
    bench.on("coding", lambda task: marker(task, status="question", question="Formal or not?"))
    bench.on("coding_continue", writes(GOOD))
    await bench.start(chain("build"))
    async with bench.daemon():
        await bench.answer("answer", payload={"answer": "Informal."})
        await bench.until(lambda: bench.run_state() == "completed")
    assert "The answer: Informal." in bench.desk.briefs("coding_continue")[0]


async def test_a_provider_failure_blocks_and_continue_keeps_the_work(bench: Bench) -> None:
    def breaks(task: AgentTask) -> Ended:
        put(task.cwd, GOOD)
        return Failed(session=SessionRef("t", "talk-7"), why=Why.OVERLOADED, message="busy", continuable=True)

    bench.on("coding", breaks, marker)
    await bench.start(chain("build"))
    async with bench.daemon():
        await bench.answer("continue")
        await bench.until(lambda: bench.run_state() == "completed")
    assert [(a.n, a.state) for a in bench.attempts()] == [(1, "done")]
    assert bench.desk.tasks[1].resume == SessionRef("t", "talk-7")


async def test_a_note_beside_a_continue_reaches_the_agent_word_for_word_and_once(bench: Bench) -> None:
    def breaks(task: AgentTask) -> Ended:
        return Failed(session=SessionRef("t", "talk-7"), why=Why.OVERLOADED, message="busy", continuable=True)

    bench.on("coding", breaks, writes(GOOD))
    await bench.start(chain("build"))
    async with bench.daemon():
        row = await bench.gate()
        await bench.answer("continue", note="  Use:\n\tthe `cache`.")
        await bench.until(lambda: bench.run_state() == "completed")
    assert (row["choices"], row["detail"]["takes_note"]) == (["retry", "continue"], True)
    assert bench.desk.briefs("coding")[1].count("  Use:\n\tthe `cache`.") == 1


async def test_a_turn_that_used_up_its_steps_is_told_to_go_on_as_often_as_an_unfinished_one(bench: Bench) -> None:
    def stops(task: AgentTask) -> Ended:
        return Failed(session=SessionRef("t", "talk-7"), why=Why.STEPS, message="no step is left", continuable=True)

    bench.on("coding", stops)
    bench.on("coding_continue", stops)
    await bench.start(chain("build"), build={"attempts": 1, "continuations": 2, "max_steps": 3})
    async with bench.daemon():
        await bench.gate()
    coding = [t for t in bench.desk.tasks if t.brief.template.startswith("coding")]
    assert [(t.max_steps, t.resume is not None) for t in coding] == [(3, False), (3, True), (3, True)]


async def test_beads_are_built_along_their_dependencies_and_later_ones_see_interfaces(bench: Bench, git: Git) -> None:
    second = bead("later", dependencies={"blocked_by": ("greet",)}, priority=0, test_commands=(TEST,))
    bench.nodes["seed"] = Seeder(planned(bead(), second))
    bench.on("coding", writes(GOOD, interfaces=["greet(name) -> str"]), writes({"later.py": "x = 1\n"}))
    await run(bench)
    assert git(bench.tree, "log", "--reverse", "--format=%s", "main..HEAD").splitlines() == [
        "bead(greet): Add greet",
        "bead(later): Add later",
    ]
    assert "greet: greet(name) -> str" in bench.desk.briefs("coding")[1]


async def test_a_replaced_command_counts_when_the_original_cannot_start(bench: Bench) -> None:
    broken = CommandSpec(program="no-such-program", args=("tests/test_greet.py",))
    bench.nodes["seed"] = Seeder(planned(bead(test_commands=(broken,))))
    swap = {"original": write_command(broken), "replacement": write_command(TEST), "reason": "it is not installed"}
    bench.on("coding", writes(GOOD, replaced_commands=[swap]))
    await run(bench)
    evidence = bench.last(BeadEvidence)
    assert [(d.accepted, d.because) for d in evidence.deviations] == [(True, "the original cannot start")]
    assert [(run.purpose, run.ok) for run in evidence.checks] == [("bead", False), ("replacement", True)]


async def test_a_replacement_does_not_get_around_a_failure_of_ones_own(bench: Bench) -> None:
    swap = {"original": write_command(TEST), "replacement": {"mode": "shell", "script": "true"}, "reason": "easier"}
    bench.on("coding", writes(WRONG, replaced_commands=[swap]))
    await run(bench, build={"attempts": 1})
    proof = bench.attempts()[0].proof
    assert (proof["holds"], proof["deviations"][0]["accepted"]) == (False, False)


async def test_a_command_that_failed_before_the_bead_does_not_fail_it(bench: Bench) -> None:
    put(bench.repository, {"tests/__init__.py": "", "tests/test_old.py": OLD_FAILURE})
    publish(bench.repository)
    bench.nodes["seed"] = Seeder(planned(bead(test_commands=(TEST, SUITE))))
    bench.on("coding", writes(GOOD))
    await run(bench)
    evidence = bench.last(BeadEvidence)
    assert (evidence.holds, evidence.known_failures) == (True, (str(SUITE),))


async def test_the_new_tests_are_proven_to_fail_without_the_change(bench: Bench, git: Git) -> None:
    put(bench.repository, {"greet.py": "def greet(name):\n    return name\n"})
    publish(bench.repository)
    bench.on("coding", writes(GOOD))
    await run(bench)
    proof = bench.last(BeadEvidence).red_on_base
    assert (proof.result, len(proof.tests)) == ("proved", 1)
    assert "test_greets" in proof.tests[0]
    assert git(bench.tree, "show", "HEAD:greet.py") + "\n" == GOOD["greet.py"]


async def test_tests_that_pass_without_the_change_fail_the_bead_when_the_policy_says_so(bench: Bench) -> None:
    empty = "import unittest\n\n\nclass Greet(unittest.TestCase):\n    def test_nothing(self):\n        pass\n"
    bench.on("coding", writes({**GOOD, "tests/test_greet.py": empty}))
    await run(bench, build={"red_on_base": "fail", "attempts": 1})
    assert "do not prove the change" in bench.attempts()[0].note


async def test_weakened_tests_are_listed_and_fail_the_bead_only_by_policy(bench: Bench) -> None:
    put(bench.repository, {"tests/__init__.py": "", "tests/test_old.py": OLD_PASS})
    publish(bench.repository)
    bench.on("coding", writes({**GOOD, "tests/test_old.py": OLD_PASS.replace("self.assertTrue(True)", "pass")}))
    await run(bench)
    (change,) = bench.last(BeadEvidence).test_changes
    assert (change.path, change.kind, change.framework) == ("tests/test_old.py", "fewer_assertions", "unittest")


async def test_touching_the_users_checkout_is_noticed(bench: Bench) -> None:
    def stray(task: AgentTask) -> str:
        put(bench.repository, {"README.md": "scribbled\n"})
        return writes(GOOD)(task)  # type: ignore[return-value]

    bench.on("coding", stray)
    await run(bench)
    assert bench.last(BeadEvidence).warnings == ("in the checkout, the file 'README.md' changed",)


async def test_an_agent_that_commits_by_itself_still_gives_one_commit(bench: Bench, git: Git) -> None:
    def commits(task: AgentTask) -> str:
        put(task.cwd, GOOD)
        git(task.cwd, "add", ".")
        git(task.cwd, "commit", "-qm", "mine")
        return marker(task)

    bench.on("coding", commits)
    await run(bench)
    assert git(bench.tree, "log", "--format=%s", "main..HEAD") == "bead(greet): Add greet"


async def test_every_command_is_in_the_books(bench: Bench) -> None:
    bench.on("coding", writes(GOOD))
    await run(bench)
    c = tables.checks
    rows = bench.rows(sa.select(c.c.bead, c.c.purpose, c.c.exit, c.c.commit_sha).order_by(c.c.id))
    commit = bench.last(BeadEvidence).commit
    assert [tuple(row) for row in rows] == [("greet", "bead", 0, commit), ("greet", "red_on_base", 1, commit)]


async def test_generated_files_and_scratch_stay_out_of_the_commit(bench: Bench, git: Git) -> None:
    bench.on("coding", writes({**GOOD, "node_modules/x.js": "1", "debug.log": "1"}))
    await run(bench)
    assert git(bench.tree, "ls-files", "node_modules", "debug.log") == ""


OLD_FAILURE = "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        self.fail('old')\n"
OLD_PASS = (
    "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        self.assertTrue(True)\n"
)
