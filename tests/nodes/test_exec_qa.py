"""Manual QA between verify and integrate: rounds, fixes, improvements, drift, waivers, skips."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import IntegrationReport
from beadmill.artifacts.qa import QaBaseline, QaChecklist, QaFixBeads, QaResults, QaRound
from beadmill.nodes.qa import QaNode
from beadmill.operations._skips import skips
from beadmill.store import tables
from beadmill.store.journal import qa
from beadmill.store.ledger import QaBooks
from tests.conftest import Git
from tests.nodes.exec_bench import GOOD, Bench, chain, put, writes
from tests.nodes.test_exec_crash import lives, once_each
from tests.nodes.test_exec_delivery import REWORK, equipped, final, run

D = TypeVar("D", bound=Document)

QA_EDGES = "".join(f"  - {{from: qa, outcome: {o}, to: integrate}}\n" for o in ("passed", "waived", "skipped"))
BACK = "  - {from: qa, outcome: fixes, to: build, kind: rework, max_visits: 9}\n"
TO_INTEGRATE = (
    chain("build", "verify", "qa", "integrate", rework=REWORK[:2]).replace(
        "  - {from: qa, outcome: ok, to: integrate}\n", QA_EDGES
    )
    + BACK
)


def item(title: str = "Greet somebody", **more: Any) -> dict[str, Any]:
    return {
        "title": title, "lineage_id": "", "prior_item_ids": [], "source": "prd", "behavior": "It greets.",
        "prerequisites": [], "actions": ["python3 -c 'import greet'"], "expected_result": "hello",
        "watch_notes": "", "severity": "required", "recheck_state": "new", "bead_refs": ["greet"],
        "prd_refs": [{"ref": "EPIC-1/US-1-1/AC-1", "coverage": "full"}], **more,
    }  # fmt: skip


def checklist(*items: Mapping[str, Any]) -> str:
    body = {"summary": "Look at it.", "items": list(items) or [item()], "not_applicable_prd_refs": []}
    return f"<MANUAL_QA_CHECKLIST>\n{json.dumps(body)}\n</MANUAL_QA_CHECKLIST>"


def mend(group: str = "group-1", **more: Any) -> dict[str, Any]:
    return {
        "groupId": group, "title": f"Mend {group}", "prdRefs": ["US-1-1"], "description": "Say it louder.",
        "contextGuidance": {"patterns": [], "anti_patterns": []}, "acceptanceCriteria": ["it is loud"],
        "tests": ["loud"], "testCommands": [{"mode": "shell", "script": "test -f loud.py"}], "labels": [],
        "targetFiles": ["loud.py"], "testFiles": [], "interfaces": [], "blockedByGroupIds": [], **more,
    }  # fmt: skip


def fixes(*beads: Mapping[str, Any]) -> str:
    return f"<MANUAL_QA_FIX_BEADS>\n{json.dumps({'beads': list(beads) or [mend()]})}\n</MANUAL_QA_FIX_BEADS>"


def again(number: int, **more: Any) -> dict[str, Any]:
    """The first item of round ``number``, asked again."""
    return item(recheck_state="pending_recheck", prior_item_ids=[f"qa-v{number}-001"], lineage_id="qa-v1-001", **more)


def result(outcome: str, number: int = 1, version: int = 1, **more: Any) -> dict[str, Any]:
    return {"item": f"qa-v{version}-{number:03}", "outcome": outcome, **more}


FAILED = result("fail", observation="It whispers.")


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = equipped(tmp_path, repo)
    made.nodes["qa"] = QaNode(**made.parts, books=QaBooks(made.store))
    made.on("qa_checklist", checklist())
    made.on("qa_fix_beads", fixes())
    made.on("final_test", final(), final({"tests/test_flow.py": "import unittest\n"}))
    return made


async def submit(bench: Bench, *results: Mapping[str, Any], **more: Any) -> None:
    await bench.answer("submit", payload={"results": list(results)}, **more)


async def waits(bench: Bench, visit: str) -> sa.RowMapping:
    await bench.until(lambda: bench.run_state() != "active" or [g["visit_id"] for g in bench.gates()] == [visit])
    return await bench.gate()


def kept(bench: Bench, kind: type[D]) -> list[D]:
    """All of the run, of superseded visits too."""
    return bench.store.read_now(lambda conn: [doc for _, doc in qa.documents(conn, "r1", kind)])


async def ends(bench: Bench) -> None:
    await bench.until(lambda: bench.run_state() != "active")
    assert bench.run_state() == "completed"


# --- the whole way --------------------------------------------------------------------------------------------------
async def test_a_failure_becomes_a_bead_is_built_and_checked_again(bench: Bench, git: Git) -> None:
    bench.on("qa_checklist", checklist(), checklist(again(1)))
    bench.on("coding", writes(GOOD), writes({"loud.py": "x = 1\n"}))
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        assert (await waits(bench, "r1/qa.1"))["choices"] == ["submit", "skip"]
        await submit(bench, FAILED)
        await waits(bench, "r1/qa.2")
        await submit(bench, result("pass", version=2))
        await ends(bench)
    assert bench.visits() == {
        "seed.1": "ok", "build.1": "superseded", "verify.1": "superseded", "qa.1": "superseded",
        "build.2": "ok", "verify.2": "ok", "qa.2": "passed", "integrate.1": "ok",
    }  # fmt: skip
    mended = bench.last(Beads).beads[-1]
    assert (mended.issue_type, mended.labels, mended.priority) == ("qa-fix", ("manual-qa",), 2)
    assert mended.id in kept(bench, QaFixBeads)[0].ids
    assert kept(bench, QaRound)[0].fix_beads == (mended.id,)
    assert "loud.py" in {one.path for one in bench.last(IntegrationReport).files}
    assert bench.last(QaRound).line == "v2 passed: 1 passed"


async def test_the_round_counts_what_was_found_and_says_what_is_covered(bench: Bench) -> None:
    bench.on("qa_checklist", checklist(item(), item("Look at it", severity="optional", prd_refs=[])))
    await checked(bench, result("pass"))
    done = bench.last(QaRound)
    assert (done.outcome, done.by) == ("passed", "user:ada")
    assert done.counts == {"pass": 1, "fail": 0, "waive": 0, "improvement": 0, "pending": 1}
    assert done.coverage == {"covered": 1, "partially_covered": 0, "uncovered": 0, "not_applicable": 0}
    assert [one.id for one in bench.last(QaChecklist).items] == ["qa-v1-001", "qa-v1-002"]


async def checked(bench: Bench, *results: Mapping[str, Any], **settings: Any) -> None:
    await bench.start(TO_INTEGRATE, **settings)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        await submit(bench, *results)
        await ends(bench)


async def test_a_required_item_is_waived_with_its_reason(bench: Bench) -> None:
    await checked(bench, result("waive", reason="No speaker here."))
    done = bench.last(QaRound)
    assert (done.outcome, [one.reason for one in done.waivers]) == ("waived", ["No speaker here."])
    assert bench.last(IntegrationReport).manual_qa == "v1 waived: 1 waived"
    (receipt,) = bench.store.read_now(lambda conn: skips(conn, "r1"))
    assert (receipt.node, receipt.by, receipt.reason) == ("qa", "user:ada", "No speaker here.")


async def test_a_skipped_round_keeps_its_entries_and_makes_nothing(bench: Bench) -> None:
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        await bench.answer("skip", payload={"results": [FAILED]}, note="Friday.")
        await ends(bench)
    assert (bench.last(QaRound).outcome, bench.last(QaRound).reason) == ("skipped", "Friday.")
    assert bench.last(QaResults).of("qa-v1-001").observation == "It whispers."
    assert (bench.visits()["qa.1"], kept(bench, QaFixBeads)) == ("skipped", [])


async def test_a_run_without_manual_qa_asks_nobody(bench: Bench) -> None:
    await run(bench, TO_INTEGRATE, manual_qa="off")
    assert (bench.run_state(), bench.visits()["qa.1"]) == ("completed", "skipped")
    assert bench.desk.briefs("qa_checklist") == []


async def test_the_sop_says_what_auto_comes_to(bench: Bench) -> None:
    await run(bench, TO_INTEGRATE.replace("kind: qa,", "kind: qa, config: {by_default: false},"))
    assert bench.visits()["qa.1"] == "skipped"


async def test_what_cannot_be_submitted_is_asked_again_with_its_reason(bench: Bench) -> None:
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        await submit(bench, result("fail"))
        await bench.until(lambda: [g["id"].split("/")[-1] for g in bench.gates()] == ["qa-2#0"])
        assert (await bench.gate())["detail"]["problems"] == ["qa-v1-001: say what you saw instead"]


# --- fixes ----------------------------------------------------------------------------------------------------------
TWO = checklist(item(), item("Greet twice"), item("Greet thrice"))


async def test_failed_items_of_one_group_become_one_bead_and_the_others_one_each(bench: Bench) -> None:
    bench.on("qa_checklist", TWO)
    bench.on("qa_fix_beads", fixes(mend(), mend("group-2", blockedByGroupIds=["group-1"])))
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        seen = [result("fail", n, observation="no", group="a" if n != 2 else "") for n in (1, 2, 3)]
        await submit(bench, *seen)
        await bench.until(lambda: "build.2" in bench.visits())
    first, second = bench.last(Beads).beads[-2:]
    assert (first.qa_origin, second.qa_origin) == ("APP-1 v1: qa-v1-001, qa-v1-003", "APP-1 v1: qa-v1-002")
    assert (first.priority, second.priority) == (2, 3)
    assert (first.blocked_by, second.blocked_by) == ((), (first.id,))
    assert '"groupId": "group-2"' in bench.desk.briefs("qa_fix_beads")[0]


@pytest.mark.parametrize(("said", "look"), [("no idea", True), (fixes(mend("group-7")), True), (fixes(), False)])
async def test_without_every_bead_none_is_made_and_a_retry_goes_on_from_the_same_results(
    bench: Bench, said: str, look: bool
) -> None:
    bench.on("qa_fix_beads", said, *([said] if look else []), fixes())
    bench.on("repair", said)
    bench.desk.look = {"qa_fix_beads"} if look else set()
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        await submit(bench, FAILED)
        await bench.until(lambda: [g["kind"] for g in bench.gates()] == ["blocked"])
        assert (await bench.gate())["detail"]["code"] == "MANUAL_QA_FIX_BEADS_FAILED"
        assert (len(bench.last(Beads).beads), kept(bench, QaFixBeads)) == (1, [])
        bench.desk.look = {"qa_fix_beads"}
        bench.on("qa_fix_beads", fixes())
        await bench.answer("retry")
        await bench.until(lambda: "build.2" in bench.visits())
    assert len(bench.last(Beads).beads) == 2


async def test_the_next_round_is_told_of_the_last_and_must_ask_what_failed_again(bench: Bench) -> None:
    bench.on("qa_checklist", checklist(), checklist(), checklist(again(1)))
    bench.on("repair", checklist(again(1)))
    bench.on("coding", writes(GOOD), writes({"loud.py": "x = 1\n"}))
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        await submit(bench, FAILED)
        await waits(bench, "r1/qa.2")
    assert "It whispers." in bench.desk.briefs("qa_checklist")[1]
    assert "qa-v1-001 failed and must be checked again" in bench.desk.briefs("repair")[0]
    assert [one.lineage_id for one in bench.last(QaChecklist).items] == ["qa-v1-001"]


# --- improvements ---------------------------------------------------------------------------------------------------
async def with_project(bench: Bench) -> None:
    values = {"short": "APP", "name": "App", "overrides": {}, "counter": 1, "created": "2026-01-01"}
    await bench.store.write(lambda tx: tx.run(sa.insert(tables.projects).values(**values)))


def better(**more: Any) -> dict[str, Any]:
    draft = {"title": "Greet in colour", "description": "It is grey.", "priority": 2, "manual_qa": "off", **more}
    return result("improvement", improvement=draft)


async def test_an_improvement_becomes_one_draft_ticket_and_holds_nothing_up(bench: Bench) -> None:
    await with_project(bench)
    await checked(bench, better())
    (row,) = bench.rows(sa.select(tables.tickets))
    assert (row.key, row.title, row.priority, row.state) == ("APP-2", "Greet in colour", 2, "draft")
    assert row.overrides == {"manual_qa": "off"}
    assert row.description.startswith("It is grey.\n\nFound while APP-1 was checked by hand (v1, qa-v1-001)")
    (made,) = bench.rows(sa.select(tables.qa_improvements.c.origin))
    hashes = {"checklist": bench.last(QaChecklist).sha256, "results": bench.last(QaResults).sha256}
    assert made.origin == {"ticket": "APP-1", "version": 1, "item": "qa-v1-001", "hashes": hashes}
    assert [one.ticket for one in bench.last(QaRound).improvements] == ["APP-2"]


# --- drift ----------------------------------------------------------------------------------------------------------
async def drifted(bench: Bench, choice: str, **more: Any) -> dict[str, Any]:
    """A person changes a file and leaves another one while they test. Returns what the gate said."""
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        put(bench.tree, {"greet.py": GOOD["greet.py"] + "\n", "notes.md": "x\n", "app.log": "noise\n"})
        await submit(bench, result("pass"))
        await bench.until(lambda: any("drift" in g["id"] for g in bench.gates()))
        detail: dict[str, Any] = dict((await bench.gate())["detail"])
        await bench.answer(choice, **more)
        await ends(bench)
    return detail


async def test_changes_made_while_testing_are_taken_along_when_a_person_says_so(bench: Bench, git: Git) -> None:
    detail = await drifted(bench, "include")
    assert (detail["code"], detail["paths"]) == ("MANUAL_QA_WORKSPACE_DRIFT", ["greet.py", "notes.md"])
    (receipt,) = bench.last(QaRound).drift
    assert (receipt.choice, receipt.included, receipt.by) == ("include", ("greet.py", "notes.md"), "user:ada")
    assert receipt.commit == bench.last(QaRound).head
    assert "notes.md" in git(bench.tree, "ls-tree", "-r", "--name-only", "HEAD").splitlines()


async def test_changes_made_while_testing_are_discarded_behind_an_undo_ref(bench: Bench, git: Git) -> None:
    await drifted(bench, "discard")
    (receipt,) = bench.last(QaRound).drift
    assert bench.last(QaRound).head == bench.last(QaBaseline).head
    assert git(bench.repository, "show", f"{receipt.undo_ref}:notes.md") == "x"
    assert "notes.md" not in git(bench.tree, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert (bench.tree / "app.log").exists()


async def test_only_the_chosen_ones_of_the_changes_are_taken_along(bench: Bench, git: Git) -> None:
    await drifted(bench, "include", payload={"paths": ["notes.md"]})
    (receipt,) = bench.last(QaRound).drift
    assert (receipt.included, receipt.discarded) == (("notes.md",), ("greet.py",))
    assert (bench.tree / "greet.py").read_text() == GOOD["greet.py"]


async def test_a_commit_made_while_testing_is_a_change_too(bench: Bench, git: Git) -> None:
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        put(bench.tree, {"notes.md": "x\n"})
        git(bench.tree, "add", "notes.md")
        git(bench.tree, "commit", "-qm", "mine")
        await bench.answer("skip")
        await bench.until(lambda: any("drift" in g["id"] for g in bench.gates()))
        await bench.answer("discard")
        await ends(bench)
    assert "notes.md" not in {one.path for one in bench.last(IntegrationReport).files}


async def test_another_branch_checked_out_while_testing_is_a_change_too(bench: Bench, git: Git) -> None:
    await bench.start(TO_INTEGRATE)
    async with bench.daemon():
        await waits(bench, "r1/qa.1")
        git(bench.tree, "checkout", "-q", "--detach")
        await submit(bench, result("pass"))
        await bench.until(lambda: any("drift" in g["id"] for g in bench.gates()))
        await bench.answer("discard")
        await ends(bench)
    assert git(bench.tree, "branch", "--show-current") == "beadmill/APP-1"


# --- crashes --------------------------------------------------------------------------------------------------------
async def test_a_round_that_dies_at_every_name_makes_one_bead_and_one_ticket(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_project(bench)
    both = checklist(item(), item("Colour", severity="optional"))
    second = (
        again(1),
        item("Colour", severity="optional", recheck_state="pending_recheck", prior_item_ids=["qa-v1-002"]),
    )
    bench.on("qa_checklist", both, checklist(*second))
    bench.on("coding", writes(GOOD), writes({"loud.py": "x = 1\n"}))
    await bench.start(TO_INTEGRATE)

    async def person(bench: Bench) -> None:
        gate = next(iter(bench.gates()), None)
        if gate is None:  # an answer of the life before was written meanwhile
            return None
        if gate["choices"] == ["include", "discard"]:
            return await bench.decide(gate, "include")
        if gate["visit_id"] == "r1/qa.1":
            put(bench.tree, {"notes.md": "x\n"})
            found = [FAILED, {**better(), "item": "qa-v1-002"}]
            return await bench.decide(gate, "submit", payload={"results": found})
        return await bench.decide(gate, "submit", payload={"results": [result("pass", version=2)]})

    names = once_each(monkeypatch)
    died = await lives(bench, person)
    assert len(died) == len(names)
    assert sum("qa" in name for name in names) > 25
    assert bench.run_state() == "completed"
    assert [row.key for row in bench.rows(sa.select(tables.tickets))] == ["APP-2"]
    assert len(bench.last(Beads).beads) == 2
    assert [one.line for one in kept(bench, QaRound)] == [
        "v1 found failures: 1 failed, 1 to be improved", "v2 passed: 1 passed, 1 not checked",
    ]  # fmt: skip
    assert [len(bench.desk.briefs(name)) for name in ("qa_checklist", "qa_fix_beads")] == [2, 1]
