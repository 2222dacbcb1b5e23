"""An interview or a PRD that a person edits after its approval: what was made from it begins anew (reference §1.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beadmill.artifacts.interview import Interview, InterviewSummary
from beadmill.artifacts.prd import Prd
from beadmill.processes.spec import AgentTask
from beadmill.sops.load import load
from beadmill.store import blobs
from beadmill.store.journal import amends
from tests.engine.bench import ME
from tests.nodes.planning_replies import CLEAN, expansion, plan
from tests.nodes.planning_world import DECISIONS, SOP, Planning


def approving(gate: str) -> tuple[str, Any]:
    """As in the story, whatever the visit; approvals at once."""
    node, _, name = gate.partition("/")
    return ("approve", None) if name.startswith("approve") else DECISIONS[f"{node.partition('.')[0]}.1/{name}"]


def world(home: Path) -> Planning:
    clean = dict.fromkeys(("interview_coverage", "prd_coverage", "beads_coverage"), CLEAN)
    made = Planning.at(home, {**clean, "beads_draft": plan(), "beads_expand": expansion()})
    names = [f"{node}.{n}/approve-1" for node in ("interview", "prd", "beads") for n in (1, 2, 3)]
    made.decisions = {name: approving(name) for name in (*DECISIONS, *names)}
    return made


async def amended(planning: Planning, kind: type[Any], **changed: Any) -> tuple[Any, tuple[str, ...]]:
    """A person edits what holds of this kind, and what begins because of it."""
    old = planning.store.read_now(lambda conn: blobs.newest(conn, "r1", kind.kind))
    assert old is not None
    document = planning.made(kind).model_copy(update=changed)
    graph = load(SOP, name="planning").graph
    *_, begun = await planning.write(amends.amend, graph, old, document, actor=ME, note="", key="k")
    return document, begun


async def test_b9_an_edited_interview_restarts_the_requirements_and_an_edited_prd_the_plan(
    tmp_path: Path, repo: Path
) -> None:
    planning = world(tmp_path / "home")
    async with planning.daemon():
        await planning.begin(repo, seats=("scripted/a",))
        await planning.person(until="beads.1/approve")
        interview, begun = await amended(planning, Interview, summary=InterviewSummary(goals=("Export all",)))
        assert begun == ("r1/prd.2",)
        await planning.person(until="beads.2/approve")
        assert planning.made(Prd).source_interview.content_sha256 == interview.sha256
        prd, begun = await amended(planning, Prd, risks=("A person wrote this.",))
        assert begun == ("r1/beads.3",)
        await planning.person(until="beads.3/approve")
        await planning.state("beads.3", "parked")
        assert planning.made(Prd) == prd
    (work,) = [s.work for token, s in planning.sessions.by_token.items() if "/beads.3/draft/seat-1" in token]
    assert isinstance(work, AgentTask)
    assert "A person wrote this." in work.brief.text
    states = {"beads.1": "superseded", "beads.2": "superseded", "beads.3": "parked", "prd.1": "superseded"}
    assert planning.visits() == {**states, "scan.1": "done", "interview.1": "done", "prd.2": "done"}
