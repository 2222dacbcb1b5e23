"""Build to cleanup with the real engine, real git, real commands and the local forge."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from repositories_for_tests import repository_in

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import (
    CleanupReport,
    FinalTestReport,
    IntegrationReport,
    MergeReport,
    PullRequestReport,
)
from beadmill.domain.ended import Ended, Failed, SessionRef, Why
from beadmill.nodes.build import BuildNode
from beadmill.nodes.cleanup import CleanupNode
from beadmill.nodes.integrate import IntegrateNode
from beadmill.nodes.pull_request import PullRequestNode
from beadmill.nodes.verify import VerifyNode
from beadmill.processes.spec import AgentTask
from beadmill.sops.load import load
from beadmill.store.journal import tokens
from tests.conftest import Git
from tests.engine.bench import NoServers
from tests.nodes.exec_bench import (
    GOOD,
    KEY,
    ME,
    SUITE,
    TESTS,
    Bench,
    Desk,
    Seeder,
    chain,
    planned,
    publish,
    put,
    subject_of,
    writes,
)  # fmt: skip

FLOW_TEST = TESTS.replace("class Greet", "class Flow").replace("'x'", "'y'").replace("hello x", "hello y")
FLOW = {"mode": "process", "program": "python3", "args": ["-m", "unittest", "tests.test_flow"]}
TEXT = "title: Greet people\nsummary: People are greeted.\nwhy: They asked.\nwhat_changed: [greet.py]\nvalidation: []\nfollow_ups: []\n"
REWORK = [
    ("verify", "failed", "build"),
    ("integrate", "conflict", "build"),
    ("pull_request", "changes_requested", "build"),
    ("pull_request", "base_moved", "integrate"),
]
WHOLE = chain(
    "build", "verify", "integrate", "pull_request", "cleanup", rework=REWORK,
    ends={"pull_request": "checks_failed"},
).replace("edges:\n", "edges:\n  - {from: pull_request, outcome: closed, to: cleanup}\n")  # fmt: skip


def final(files: dict[str, str] | None = None, *, effects: dict[str, str] | None = None, **more: Any) -> Any:
    wrote = {"tests/test_flow.py": FLOW_TEST} if files is None else files

    def say(task: AgentTask) -> str:
        put(task.cwd, wrote)
        reply = {
            "commands": [FLOW], "test_files": ["tests/test_flow.py"], "modified_files": ["tests/test_flow.py"],
            "file_effects": [{"path": p, "intent": i, "reason": ""} for p, i in (effects or {}).items()],
            "summary": "The whole flow.", "tests_count": 1,
        }  # fmt: skip
        return f"<FINAL_TEST_COMMANDS>\n{json.dumps(reply | more)}\n</FINAL_TEST_COMMANDS>"

    return say


def review(verdict: str = "approve", *findings: dict[str, Any]) -> str:
    return f"<REVIEW_RESULT>\n{json.dumps({'verdict': verdict, 'summary': 'seen', 'findings': list(findings)})}\n</REVIEW_RESULT>"


BLOCKER = {"severity": "blocker", "text": "It greets nobody.", "path": "greet.py", "line": 1}


def audit(**decisions: str) -> str:
    lines = "".join(
        f"  - path: {path}\n    decision: {said}\n    reason: because\n" for path, said in decisions.items()
    )
    return f"files:\n{lines}"


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    return equipped(tmp_path, repo)


def equipped(home: Path, repository: Path) -> Bench:
    made = Bench.make(home, repository)
    parts = made.parts
    made.nodes |= {
        "seed": Seeder(planned()),
        "build": BuildNode(**parts),
        "verify": VerifyNode(**parts),
        "integrate": IntegrateNode(**parts),
        "pull_request": PullRequestNode(trees=made.trees, briefs=parts["briefs"], changes=made.changes, **made.outside),
        "cleanup": CleanupNode(trees=made.trees, servers=NoServers()),
    }
    made.on("coding", writes(GOOD))
    made.on("iteration_note", "note")
    made.on("final_test", final())
    made.on("final_test_note", "It was wrong.")
    made.on("review", review())
    made.on("candidate_audit", audit(**{"greet.py": "include"}))
    made.on("pull_request", TEXT)
    return made


@dataclass(frozen=True)
class Built:
    """One run that waits at its merge gate: made once per process of tests, at a place it is put back to."""

    place: Path
    kept: Path
    desk: Desk

    def again(self) -> Bench:
        shutil.rmtree(self.place)
        shutil.copytree(self.kept, self.place, symlinks=True)
        made = equipped(self.place, self.place / "checkout")
        made.desk.told, made.desk.tasks = dict(self.desk.told), list(self.desk.tasks)
        return made


@pytest.fixture
async def built(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """As ``bench`` after its run with WHOLE reached the merge gate."""
    global _built  # noqa: PLW0603 - a fixture of the session would need the event loop of its first test
    if _built is None:
        folder = tmp_path_factory.mktemp("built")
        (place := folder / "place").mkdir()
        first = equipped(place, repository_in(place))
        await run(first, WHOLE)
        shutil.copytree(place, folder / "kept", symlinks=True)
        _built = Built(place, folder / "kept", first.desk)
    return _built.again()


_built: Built | None = None


async def run(bench: Bench, sop: str, **settings: object) -> None:
    await bench.start(sop, **settings)
    async with bench.daemon():
        await bench.ends()


TO_VERIFY = chain("build", "verify", rework=REWORK[:1])
TO_INTEGRATE = chain("build", "verify", "integrate", rework=REWORK[:2])


# --- the whole way --------------------------------------------------------------------------------------------------
async def test_a_built_change_is_verified_squashed_published_merged_and_cleaned_up(built: Bench, git: Git) -> None:
    async with built.daemon():
        gate = await built.gate()
        assert (gate["kind"], gate["choices"]) == ("merge", ["merge", "close", "request_changes", "look"])
        assert [shown[0] for shown in gate["shows"]] == ["pull_request_report", "integration_report"]
        await built.answer("merge")
        await built.until(lambda: built.run_state() == "completed")
    candidate, merge = built.last(IntegrationReport).candidate_commit, built.last(MergeReport)
    assert (merge.disposition, merge.proof, merge.by) == ("merged", "merge", "user:ada")
    git(built.repository, "fetch", "-q", "origin")
    assert git(built.repository, "rev-parse", "origin/main") == merge.sha
    assert git(built.repository, "log", "-1", "--format=%s", candidate) == f"{KEY}: Add a greeting"
    files = git(built.repository, "diff", "--name-only", f"{candidate}~1", candidate).splitlines()
    assert files == ["greet.py", "tests/__init__.py", "tests/test_flow.py", "tests/test_greet.py"]
    assert not built.tree.exists()
    assert git(built.repository, "branch", "--list", "beadmill/*") == ""
    assert built.last(CleanupReport).status == "clean"


async def test_the_pull_request_carries_its_evidence(built: Bench) -> None:
    report = built.last(PullRequestReport)
    assert (report.title, report.state) == (f"{KEY}: Greet people", "draft")
    assert "| US-1-1 Greet people | Add greet |" in report.body
    assert "1 of 1 passed" in report.body
    assert "| greet | cannot load without the change (weak) |" in report.body
    assert f"| `{SUITE}` | project tests | exit 0 |" in report.body
    assert "approve by scripted/b: seen" in report.body
    assert f"git checkout {report.head_sha}" in report.body


async def test_a_change_that_is_closed_keeps_its_branch_and_says_why(built: Bench, git: Git) -> None:
    async with built.daemon():
        await built.answer("close", note="Not needed any more.")
        await built.until(lambda: built.run_state() != "active")
    report = built.last(MergeReport)
    assert (report.disposition, report.reason) == ("closed_unmerged", "Not needed any more.")
    assert git(built.repository, "branch", "--list", "--format=%(refname:short)", "beadmill/*") == f"beadmill/{KEY}"
    assert git(built.repository, "log", "--format=%s", "main") == "more\nfirst"


async def test_requested_changes_become_a_bead_and_the_same_change_is_updated(built: Bench) -> None:
    built.on("coding", writes({"more.py": "x = 1\n"}))
    async with built.daemon():
        await built.answer("request_changes", note="Add more.py.\nWith an x.")
        await built.until(lambda: [g["visit_id"] for g in built.gates()] == ["r1/pull_request.2"])
    rework = built.last(Beads).beads[-1]
    assert (rework.id, rework.description) == ("rework-pull-request-1", "Add more.py.\nWith an x.")
    assert built.last(PullRequestReport).number == 1
    assert "more.py" in {one.path for one in built.last(IntegrationReport).files}


async def test_a_send_back_to_build_makes_a_bead_of_its_comment(built: Bench) -> None:
    built.on("coding", writes({"more.py": "x = 1\n"}))
    async with built.daemon():
        await built.gate()
        graph = load(WHOLE, name="t").graph
        await built.store.write(lambda tx: tokens.send_back(tx, "r1", graph, "build", comment="Add more.py", actor=ME))
        await built.until(lambda: [g["visit_id"] for g in built.gates()] == ["r1/pull_request.2"])
    assert [attempt.bead for attempt in built.attempts()] == ["greet", "rework-build-2"]
    assert "Add more.py" in built.desk.briefs("coding")[1]


async def test_what_two_send_backs_asked_for_is_both_in_the_plan(built: Bench) -> None:
    built.on("coding", writes({"more.py": "x = 1\n"}), writes({"less.py": "y = 1\n"}))
    graph = load(WHOLE, name="t").graph
    async with built.daemon():
        await built.gate()
        for n, comment in ((2, "Add more.py"), (3, "Add less.py")):
            back = partial(tokens.send_back, run="r1", graph=graph, node="build", comment=comment, actor=ME)
            await built.store.write(back)
            await built.until(lambda n=n: [g["visit_id"] for g in built.gates()] == [f"r1/pull_request.{n}"])  # type: ignore[misc]
    assert [bead.id for bead in built.last(Beads).beads] == ["greet", "rework-build-2", "rework-build-3"]
    assert {"more.py", "less.py"} <= {one.path for one in built.last(IntegrationReport).files}


async def test_a_moved_head_is_not_merged_and_the_person_is_asked_again(built: Bench, git: Git) -> None:
    async with built.daemon():
        await built.gate()
        git(built.repository, "push", "-q", "-f", "origin", f"main:refs/heads/beadmill/{KEY}")
        await built.answer("merge")
        await built.until(lambda: any("merge-2" in gate["id"] for gate in built.gates()))
    (gate,) = built.gates()
    assert "not at the approved" in gate["detail"]["problem"]


async def test_a_change_merged_by_other_hands_counts_as_merged(built: Bench, git: Git) -> None:
    async with built.daemon():
        await built.gate()
        candidate = built.last(IntegrationReport).candidate_commit
        git(built.repository, "push", "-q", "origin", f"{candidate}:refs/heads/main")
        await built.answer("close", note="never mind")
        await built.until(lambda: built.run_state() == "completed")
    assert (built.last(MergeReport).disposition, built.last(MergeReport).proof) == ("merged", "merge")


async def test_without_a_model_the_text_is_made_of_facts(bench: Bench) -> None:
    bench.on("pull_request", fails)
    await run(bench, WHOLE)
    report = bench.last(PullRequestReport)
    assert report.title == f"{KEY}: Add a greeting"
    assert report.body.startswith("People want to be greeted.")


def fails(task: AgentTask) -> Ended:
    return Failed(session=SessionRef("t"), why=Why.AUTH, message="signed out")


# --- verify ---------------------------------------------------------------------------------------------------------
async def test_a_final_test_that_fails_is_undone_and_written_anew_with_notes(bench: Bench) -> None:
    wrong = {"tests/test_flow.py": FLOW_TEST.replace("hello y", "bye y"), "greet.py": "broken"}
    bench.on("final_test", final(wrong), final())
    await run(bench, TO_VERIFY)
    report = bench.last(FinalTestReport)
    assert (report.passed, report.attempt, len(report.notes)) == (True, 2, 1)
    assert "It was wrong." in bench.desk.briefs("final_test")[1]
    assert (bench.tree / "greet.py").read_text() == GOOD["greet.py"]


async def test_a_final_test_that_changes_no_test_does_not_count(bench: Bench) -> None:
    bench.on("final_test", final({}, commands=[{"mode": "shell", "script": "true"}]))
    await run(bench, TO_VERIFY, build={"attempts": 1})
    (gate,) = bench.gates()
    assert gate["detail"]["code"] == "FINAL_TEST_FAILED"
    assert "None of the named test files was added or changed" in gate["title"]


async def test_only_meant_files_of_the_final_test_are_committed(bench: Bench, git: Git) -> None:
    files = {"tests/test_flow.py": FLOW_TEST, "scratch.txt": "x", "stray.txt": "y", "README.md": "oops\n"}
    bench.on("final_test", final(files, effects={"scratch.txt": "temporary", "README.md": "unexpected"}))
    await run(bench, TO_VERIFY)
    effects = {one.path: (one.disposition, one.reason) for one in bench.last(FinalTestReport).file_effects}
    assert effects == {
        "tests/test_flow.py": ("candidate", "declared_or_tracked"),
        "scratch.txt": ("local_only", "declared_temporary"),
        "README.md": ("local_only", "declared_unexpected"),
        "stray.txt": ("local_only", "undeclared_fallback"),
    }
    assert git(bench.tree, "status", "--porcelain") == ""
    assert git(bench.tree, "show", "--name-only", "--format=", "HEAD") == "tests/test_flow.py"


async def test_a_new_file_that_nobody_declared_is_asked_about_once(bench: Bench, git: Git) -> None:
    bench.on("final_test", final({"tests/test_flow.py": FLOW_TEST, "data/sample.txt": "x\n", "scratch.txt": "y\n"}))
    said = audit(**{"data/sample.txt": "include", "scratch.txt": "exclude"})
    bench.on("candidate_audit", said)
    await run(bench, TO_VERIFY)
    effects = {e.path: e.disposition for e in bench.last(FinalTestReport).file_effects}
    assert (effects["data/sample.txt"], effects["scratch.txt"]) == ("candidate", "local_only")
    assert len(bench.desk.briefs("candidate_audit")) == 1


async def test_a_regression_sends_the_run_back_to_build_as_a_bead(bench: Bench) -> None:
    put(bench.repository, {"tests/__init__.py": "", "tests/test_old.py": OLD})
    publish(bench.repository)
    breaking = {**GOOD, "README.md": "changed\n"}
    bench.on("coding", writes(breaking), writes({"README.md": "sample\n"}))
    await run(bench, TO_VERIFY)
    assert bench.visits() == {
        "seed.1": "ok", "build.1": "superseded", "verify.1": "superseded", "build.2": "ok", "verify.2": "ok",
    }  # fmt: skip
    assert f"{SUITE} passed before the change and fails now" in bench.desk.briefs("coding")[1]
    assert [attempt.bead for attempt in bench.attempts()] == ["greet", "rework-verify-1"]


OLD = (
    "import unittest\nfrom pathlib import Path\n\n\nclass Old(unittest.TestCase):\n"
    "    def test_old(self):\n        self.assertEqual(Path('README.md').read_text(), 'sample\\n')\n"
)


async def test_the_reviewer_sits_on_another_seat_and_is_only_listened_to_by_policy(bench: Bench) -> None:
    bench.on("review", review("request_changes", BLOCKER))
    await run(bench, TO_VERIFY)
    report = bench.last(FinalTestReport)
    assert report.review is not None
    assert (report.passed, report.review.verdict, report.review.reviewer) == (True, "request_changes", "scripted/b")


async def test_a_blocking_review_sends_the_run_back_when_the_policy_is_fail(bench: Bench) -> None:
    bench.on("review", review("request_changes", BLOCKER), review())
    bench.on("coding", writes(GOOD), writes({"more.py": "x = 1\n"}))
    await run(bench, TO_VERIFY, build={"review": "fail"})
    assert "greet.py: It greets nobody." in bench.desk.briefs("coding")[1]
    assert bench.visits()["verify.2"] == "ok"


async def test_a_reviewer_that_cannot_answer_is_said_to_be_unavailable(bench: Bench) -> None:
    bench.on("review", fails)
    await run(bench, TO_VERIFY)
    review_ = bench.last(FinalTestReport).review
    assert review_ is not None
    assert (review_.verdict, review_.summary) == ("unavailable", "signed out")


# --- integrate ------------------------------------------------------------------------------------------------------
async def test_excluded_files_stay_out_of_the_candidate_and_in_the_undo_ref(bench: Bench, git: Git) -> None:
    bench.on("coding", writes({**GOOD, "extra.txt": "x"}))
    bench.on(
        "candidate_audit", audit(**{"extra.txt": "exclude", "greet.py": "include", "tests/test_greet.py": "review"})
    )
    await run(bench, TO_INTEGRATE)
    report = bench.last(IntegrationReport)
    decisions = {one.path: one.decision for one in report.files}
    assert decisions["extra.txt"] == "exclude"
    assert decisions["tests/__init__.py"] == "include"
    assert "extra.txt" not in git(bench.tree, "ls-tree", "-r", "--name-only", report.candidate_commit).splitlines()
    assert "extra.txt" in git(bench.repository, "ls-tree", "-r", "--name-only", report.undo_ref).splitlines()
    assert git(bench.tree, "status", "--porcelain") == ""
    assert (report.commit_count, git(bench.tree, "rev-list", "--count", "main..HEAD")) == (2, "1")


@pytest.mark.parametrize("said", ["no idea", audit(**{"greet.py": "exclude", "tests/test_greet.py": "exclude",
                                                      "tests/__init__.py": "exclude", "tests/test_flow.py": "exclude"})])  # fmt: skip
async def test_an_audit_that_is_useless_includes_everything(bench: Bench, said: str) -> None:
    bench.on("candidate_audit", said)
    bench.on("repair", said)
    await run(bench, TO_INTEGRATE)
    assert {one.decision for one in bench.last(IntegrationReport).files} == {"include"}
    assert len(bench.last(IntegrationReport).files) == 4


def moves_base(bench: Bench, files: dict[str, str]) -> Any:
    """A reviewer during whose work somebody pushes to the base."""

    def say(task: AgentTask) -> str:
        put(bench.repository, files)
        publish(bench.repository)
        return review()

    return say


async def test_a_moved_base_is_taken_along_and_the_commands_run_again(bench: Bench, git: Git) -> None:
    bench.on("review", moves_base(bench, {"other.py": "y = 2\n"}))
    await run(bench, TO_INTEGRATE)
    report = bench.last(IntegrationReport)
    assert report.merge_base == git(bench.repository, "rev-parse", "main")
    assert git(bench.tree, "rev-parse", "HEAD~1") == report.merge_base
    assert git(bench.tree, "ls-files", "other.py", "greet.py").splitlines() == ["greet.py", "other.py"]


async def test_c34_a_base_that_conflicts_becomes_a_bead_that_resolves_the_markers(bench: Bench, git: Git) -> None:
    def resolves(task: AgentTask) -> str:
        assert subject_of(task)[0] == "rework-integrate-1"
        assert "<<<<<<<" in (task.cwd / "greet.py").read_text()
        return writes({"greet.py": GOOD["greet.py"] + "\n\nOTHER = 1\n"})(task)  # type: ignore[return-value]

    bench.on("review", moves_base(bench, {"greet.py": "OTHER = 1\n"}), review())
    bench.on("coding", writes(GOOD), resolves)
    bench.on("final_test", final(), final({"tests/test_flow.py": FLOW_TEST + "\n# again\n"}))
    await run(bench, TO_INTEGRATE)
    assert bench.visits()["integrate.2"] == "ok"
    assert "OTHER = 1" in git(bench.tree, "show", "HEAD:greet.py")
    assert git(bench.tree, "rev-parse", "HEAD~1") == git(bench.repository, "rev-parse", "main")
