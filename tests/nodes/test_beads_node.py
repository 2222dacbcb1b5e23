from __future__ import annotations

import pytest

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.reply import Reply
from beadmill.briefs import Briefs
from beadmill.domain.machine import Phase
from beadmill.nodes._planning import CouncilConfig
from beadmill.nodes.beads import BeadsNode
from tests.nodes.fakes import Decide, Journal, Waiting, decide, drive, edit, seats, table
from tests.nodes.planning_replies import CLEAN, GAPS, approved_prd, expansion, plan, prepared, resolution, votes

NODE = BeadsNode(Briefs())
CFG = CouncilConfig()
APPROVE = decide("approve")


def journal(*decisions: Decide, **replies: object) -> Journal:
    said = {
        "beads_draft": plan(),
        "beads_vote": votes("beads"),
        "beads_refine": plan() + "changes: []\n",
        "beads_coverage": CLEAN,
        "beads_expand": expansion(),
        **replies,
    }
    return prepared(Journal(table(said), list(decisions), seats("a", "b")), approved_prd())


async def test_a_blueprint_becomes_executable_beads_with_the_fields_that_beadmill_owns() -> None:
    rows = journal(APPROVE)
    outcome = await drive(NODE, CFG, rows)
    first, second = rows.last(Beads).beads
    assert outcome.made[0].sha256 == rows.last(Beads).sha256
    assert (first.priority, first.external_ref, first.dependencies.blocks) == (1, "DEMO-1", ("command",))
    assert (second.priority, second.dependencies.blocked_by, second.description) == (2, ("write-rows",), "Add cli.py.")
    assert first.created_at == second.created_at != ""
    assert rows.phases[-3:] == [Phase.VERIFYING_BEADS_COVERAGE, Phase.EXPANDING_BEADS, Phase.WAITING_BEADS_APPROVAL]


async def test_a_bead_blocked_by_a_later_one_is_asked_for_again() -> None:
    rows = journal(APPROVE, beads_expand=[expansion(blocked_by='"command"'), expansion()])
    await drive(NODE, CFG, rows)
    reply = next(one for one in rows.all(Reply) if one.shape == "expansion")
    assert [one.outcome for one in reply.attempts] == ["rejected", "accepted"]
    assert rows.last(Beads).beads[1].blocked_by == ("write-rows",)


async def test_an_edited_plan_with_a_cycle_cannot_be_approved_and_is_asked_again() -> None:
    def turned(document: Beads) -> Beads:
        first, second = document.beads
        loop = first.dependencies.model_copy(update={"blocked_by": ("command",)})
        return Beads(beads=(first.model_copy(update={"dependencies": loop}), second))

    rows = journal(edit(turned))
    with pytest.raises(Waiting):
        await drive(NODE, CFG, rows)
    again = rows.gates["approve-2"]
    assert again.detail["problems"] == ["cycle: write-rows -> command -> write-rows"]
    assert again.shows[0].sha256 == rows.last(Beads).sha256


async def test_fix_gaps_revises_the_plan_the_person_saw_and_expands_it_again() -> None:
    def mine(document: Beads) -> Beads:
        first, second = document.beads
        return Beads(beads=(first.model_copy(update={"description": "A person wrote this."}), second))

    revised = plan("Write rows, even none") + resolution("updated")
    rows = journal(
        edit(mine, "fix_gaps"),
        APPROVE,
        beads_coverage=[GAPS, CLEAN],
        beads_revise=revised,
        beads_expand=[expansion(), expansion("Write rows, even none")],
    )
    await drive(NODE, CouncilConfig(passes=1), rows)
    assert "A person wrote this." in rows.briefs("beads_revise")[0]
    assert [bead.title for bead in rows.last(Beads).beads] == ["Write rows, even none", "Add the command"]


async def test_a_fix_that_changes_nothing_keeps_the_beads_the_person_saw() -> None:
    rows = journal(
        decide("fix_gaps"),
        APPROVE,
        beads_coverage=[GAPS, CLEAN],
        beads_revise=plan() + resolution("already_covered"),
    )
    outcome = await drive(NODE, CouncilConfig(passes=1), rows)
    assert (len(rows.briefs("beads_expand")), len(rows.all(Beads))) == (1, 1)
    assert outcome.made == rows.gates["approve-1"].shows


async def test_drafters_are_told_to_plan_no_verification_and_to_assume_no_tool() -> None:
    rows = journal(APPROVE)
    await drive(NODE, CFG, rows)
    rules = (
        "No bead whose only purpose is to verify others",
        "Use only a runner you saw",
        "No command that starts servers",
    )
    assert [[rule in text for rule in rules] for text in rows.briefs("beads_draft")] == [[True] * 3] * 2
    fault = "A test command that assumes tools nobody saw in this repository"
    assert [fault in text for text in rows.briefs("beads_vote")] == [True] * 2


async def test_drift_in_the_expansion_is_undone_and_said() -> None:
    drifted = expansion().replace('"issueType"', '"description": "Something else.", "issueType"')
    rows = journal(beads_expand=drifted)
    with pytest.raises(Waiting):
        await drive(NODE, CFG, rows)
    assert rows.last(Beads).beads[0].description == "Add export.py."
    assert "taken from the blueprint again: write-rows: description" in rows.gates["approve-1"].detail["warnings"]


async def test_the_expansion_must_keep_the_plan() -> None:
    rows = journal(APPROVE, beads_expand=[expansion("Another title"), expansion()])
    await drive(NODE, CFG, rows)
    assert rows.last(Beads).beads[0].title == "Write rows as CSV"
