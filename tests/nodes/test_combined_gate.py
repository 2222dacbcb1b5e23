"""deliver-lite: requirements and plan are approved together, at one gate that is bound to both."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.council import CouncilVotes, Coverage, CoveragePass, PrdFindings
from beadmill.artifacts.prd import Prd
from beadmill.briefs import Briefs
from beadmill.domain.values import GateAnswer, GateRequest
from beadmill.nodes._planning import CouncilConfig
from beadmill.nodes.beads import BeadsNode
from beadmill.nodes.prd import PrdNode
from tests.nodes.fakes import NOON, PERSON, Decide, Journal, Waiting, decide, drive, seats, table
from tests.nodes.planning_replies import (
    CLEAN,
    GAP,
    GAPS,
    approved_prd,
    expansion,
    interview,
    plan,
    prd,
    prepared,
    resolution,
)

LATER = CouncilConfig(mode="solo", passes=1, approve="later")
TOGETHER = CouncilConfig(mode="solo", passes=1, together=["prd"])
BEADS = BeadsNode(Briefs())
APPROVE = decide("approve")


def whole() -> str:
    """An expansion that repeats every field of its blueprint: nothing has to be restored."""
    beads = YAML(typ="safe").load(plan())["beads"]
    more = [json.loads(line) for line in expansion().splitlines()]
    return "\n".join(json.dumps({**bead, **own}) for bead, own in zip(beads, more, strict=True))


def findings(*gaps: str) -> PrdFindings:
    one = CoveragePass(number=1, status="gaps" if gaps else "clean", gaps=gaps)
    coverage = Coverage(domain="prd", passes=(one,), ended="coverage_pass_limit_reached" if gaps else "clean")
    return PrdFindings(prd_sha256=approved_prd().sha256, coverage=coverage)


def journal(*decisions: Decide, gaps: tuple[str, ...] = (), policy: str = "required", **replies: object) -> Journal:
    said = {"beads_draft": plan(), "beads_coverage": CLEAN, "beads_expand": whole(), **replies}
    settings = seats("a").overlaid({"gates": {"prd": policy, "beads": "off"}})
    return prepared(Journal(table(said), list(decisions), settings), approved_prd(), findings(*gaps))


def renamed(choice: str = "approve") -> Decide:
    """A person gives the story another id at the shared gate, then decides."""

    def act(rows: Journal, gate: GateRequest) -> GateAnswer:
        shown = next(doc for ref, doc in rows.artifacts if ref == gate.shows[0])
        assert isinstance(shown, Prd)
        (epic,) = shown.epics
        story = epic.user_stories[0].model_copy(update={"id": "US-9-9"})
        changed = shown.model_copy(update={"epics": (epic.model_copy(update={"user_stories": (story,)}),)})
        return GateAnswer(choice, (rows.keep(changed), gate.shows[1]), PERSON, NOON, f"key-{choice}")

    return act


async def test_requirements_that_are_approved_later_open_no_gate_and_pass_on_what_is_open() -> None:
    replies = {"prd_draft": prd(), "prd_coverage": GAPS}
    rows = prepared(Journal(table(replies), [], seats("a", "b")), interview())
    outcome = await drive(PrdNode(Briefs()), LATER, rows)

    assert (outcome.edge, rows.gates, rows.all(CouncilVotes)) == ("approved", {}, [])
    assert [ref.kind for ref in outcome.made] == ["prd", "prd_findings"]
    assert rows.last(PrdFindings).coverage.open_gaps == (GAP,)


async def test_one_gate_shows_both_with_the_gaps_of_both_and_the_answer_names_both() -> None:
    rows = journal(APPROVE, gaps=("Who may export?",), beads_coverage=GAPS)
    outcome = await drive(BEADS, TOGETHER, rows)

    (gate,) = rows.gates.values()
    assert [ref.sha256 for ref in gate.shows] == [approved_prd().sha256, rows.last(Beads).sha256]
    assert gate.detail["gaps"] == ["prd: Who may export?", GAP]
    assert (gate.title, gate.choices) == (
        "Approve the requirements and the plan of work for DEMO-1",
        ("fix_gaps", "approve_with_gaps"),
    )
    assert outcome.made == gate.shows


async def test_requirements_edited_until_a_bead_is_for_nothing_cannot_be_approved() -> None:
    rows = journal(renamed())
    with pytest.raises(Waiting):
        await drive(BEADS, TOGETHER, rows)

    again = rows.gates["approve-2"]
    assert [ref.sha256 for ref in again.shows] == [rows.last(Prd).sha256, rows.last(Beads).sha256]
    assert again.detail["problems"][0].startswith("bead write-rows: the requirements have no US-1-1 any more")


async def test_fix_gaps_goes_by_the_requirements_as_they_were_edited() -> None:
    revised = plan().replace("US-1-1", "US-9-9") + resolution("updated")
    rows = journal(
        renamed("fix_gaps"),
        APPROVE,
        beads_coverage=[GAPS, CLEAN],
        beads_revise=revised,
        beads_expand=[expansion(), expansion().replace("US-1-1", "US-9-9")],
    )
    outcome = await drive(BEADS, TOGETHER, rows)

    assert "US-9-9" in rows.briefs("beads_revise")[0]
    assert [ref.sha256 for ref in outcome.made] == [rows.last(Prd).sha256, rows.last(Beads).sha256]


@pytest.mark.parametrize(
    ("policy", "gaps", "asked"),
    [
        ("required", (), True),
        ("auto_when_clean", (), False),
        ("auto_when_clean", ("Who may export?",), True),
        ("off", ("Who may export?",), False),
    ],
)
async def test_the_stricter_of_both_policies_holds(policy: str, gaps: tuple[str, ...], *, asked: bool) -> None:
    rows = journal(gaps=gaps, policy=policy)
    with contextlib.suppress(Waiting):
        await drive(BEADS, TOGETHER, rows)
    assert (rows.gates["approve-1"].auto is None) == asked


async def test_an_sop_may_say_the_policy_itself() -> None:
    rows = journal(policy="required")
    await drive(BEADS, replace(TOGETHER, policy="auto_when_clean"), rows)
    assert rows.gates["approve-1"].auto == "approve"
