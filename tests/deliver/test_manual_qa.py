"""The whole ``deliver`` with a person who checks: one item fails, is mended, built, verified, and passes (reference §9.3)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from beadmill.app import House
from beadmill.artifacts.delivery import PullRequestReport
from beadmill.artifacts.qa import QaRound
from beadmill.engine.dispatch import Dispatcher
from beadmill.operations import qa
from beadmill.store import blobs, tables
from beadmill.store.journal import qa as books
from tests.deliver.deliver_world import KEY, ME, World, answer_one, open_gates, run_state

RUN: Final = f"{KEY}-r1"
SEEN: Final = "The README names no author."
SOLO: Final = {"council": {"seats": ["scripted/gamma"], "mode": "solo", "interview_questions": 0}}
GATES: Final = {"gates": dict.fromkeys(("interview", "prd", "beads", "setup"), "off")}


def item(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": title, "lineage_id": "", "prior_item_ids": [], "source": "implementation_diff", "behavior": "It is said.",
        "prerequisites": [], "actions": ["cat README.md"], "expected_result": "An author.", "watch_notes": "",
        "severity": "required", "recheck_state": "new", "bead_refs": [], "prd_refs": [], **more,
    }  # fmt: skip


def listed(*items: dict[str, Any]) -> str:
    body = {"summary": "Read it.", "items": items, "not_applicable_prd_refs": []}
    return f"<MANUAL_QA_CHECKLIST>\n{json.dumps(body)}\n</MANUAL_QA_CHECKLIST>"


FIX: Final = {
    "groupId": "group-1", "title": "Name the author", "prdRefs": [], "description": "The README names nobody.",
    "contextGuidance": {"patterns": [], "anti_patterns": []}, "acceptanceCriteria": ["It names one"], "tests": ["Read it"],
    "testCommands": [{"mode": "shell", "script": "grep -q Author README.md"}], "labels": [], "targetFiles": ["README.md"],
    "testFiles": [], "interfaces": [], "blockedByGroupIds": [],
}  # fmt: skip
CHECKS: Final = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")
AGAIN: Final = item("The README", recheck_state="pending_recheck", prior_item_ids=["qa-v1-001"], lineage_id="qa-v1-001")


def planned() -> str:
    return f"<MANUAL_QA_FIX_BEADS>\n{json.dumps({'beads': [FIX]})}\n</MANUAL_QA_FIX_BEADS>"


BEAD: Final = f"qa-v1-{hashlib.sha256(f'{RUN}/qa.1 qa-v1-001'.encode()).hexdigest()[:12]}"


def replies() -> list[dict[str, Any]]:
    """What the scripted agent says of manual QA."""
    status = json.dumps({"bead_id": BEAD, "status": "done", "checks": CHECKS, "interfaces": []})
    mends = {"append": {"path": "README.md", "content": "\nAuthor: somebody\n"}}
    return [
        {"match": {"template": "qa_checklist", "subject": "^v1$"}, "steps": [{"reply": listed(item("The README"))}]},
        {"match": {"template": "qa_checklist"}, "steps": [{"reply": listed(AGAIN)}]},
        {"match": {"template": "qa_fix_beads"}, "steps": [{"shell": "cat README.md"}, {"reply": planned()}]},
        {
            "match": {"template": "coding", "subject": f"^{BEAD} try"},
            "steps": [mends, {"reply": f"<BEAD_STATUS>\n{status}\n</BEAD_STATUS>\n"}],
        },
    ]


def script(world: World, *first: dict[str, Any]) -> None:
    told = json.loads(world.place.scenario.read_text())
    world.place.scenario.write_text(json.dumps({"replies": [*first, *told["replies"]]}))


async def person(house: House, gate: Mapping[str, Any]) -> None:
    """Fails the first item of the first round, passes it in the second."""
    if gate["kind"] != "qa":
        return await answer_one(house, gate)
    view = await qa.show(house.ports, KEY, actor=ME)
    failed = {"outcome": "fail", "observation": SEEN}
    results = {one["item"]: failed if view.version == 1 else {"outcome": "pass"} for one in view.results}
    saved = await qa.save(house.ports, KEY, results, revision=view.revision, actor=ME)
    await qa.submit(house.ports, KEY, etag=gate["etag"], revision=saved.revision, actor=ME, key=gate["id"])
    return None


async def lived(house: House) -> None:
    async for _ in house.store.events.subscribe(every=lambda: 0.1, rest=0.2):
        if run_state(house) != "active":
            return
        for gate in open_gates(house):
            await person(house, gate)


@pytest.mark.deliver
async def test_what_fails_by_hand_is_mended_and_merged(tmp_path: Path) -> None:
    world = await World.make(tmp_path)
    script(world, *replies())
    house = world.house()
    house.store.migrate(world.place.home / "backups")
    await world.begin(house, manual_qa="on", **SOLO, **GATES)
    assert isinstance(house.ports.engine, Dispatcher)
    serving = asyncio.ensure_future(house.ports.engine.serve())
    async with asyncio.timeout(240):
        await lived(house)
    serving.cancel()
    await asyncio.wait([serving])
    rounds = house.store.read_now(lambda conn: [one for _, one in books.documents(conn, RUN, QaRound)])
    assert [one.line for one in rounds] == ["v1 found failures: 1 failed", "v2 passed: 1 passed"]
    assert run_state(house) == "completed"
    report = house.store.read_now(lambda conn: blobs.newest(conn, RUN, PullRequestReport.kind))
    assert report is not None
    text = house.store.read_now(lambda conn: PullRequestReport.parse(blobs.get_blob(conn, report.ref.sha256))).body
    told = f"- v2 passed: 1 passed, by user:owner\n- mended after a failed check: `{BEAD}`"
    assert told in text.partition("## Manual QA")[2]
    visits = sa.select(sa.func.count()).select_from(tables.visits).where(tables.visits.c.node == "build")
    assert house.store.read_now(lambda conn: conn.execute(visits).scalar()) == 2
    house.store.close()
