"""An approved document is edited: saved and approved in one action, and what was made from it begins anew."""

from __future__ import annotations

from typing import Any

import pytest
from house_for_tests import OWNER, Starter, approve, approved, opened, until

from beadmill.artifacts.interview import Questions
from beadmill.domain.values import Actor, ArtifactRef, Sha
from beadmill.errors import Conflict, Invalid, Missing, Refused, Stale
from beadmill.operations import artifacts, gates, runs, views
from beadmill.operations.ports import Ports
from beadmill.store import blobs

EVE = Actor("user", "eve", "web")


async def amend(ports: Ports, prd: views.ArtifactView, word: str = "Numbers", **more: Any) -> views.EditedView:
    text = prd.text.replace("Adding", word)
    return await artifacts.edit(ports, prd.row, etag=prd.sha256, text=text, approve=True, actor=EVE, **more)


async def test_an_edit_after_approval_is_approved_with_its_editor_and_only_what_follows_begins_anew(
    ports: Ports, started: Starter
) -> None:
    prd = await approved(ports, started)
    new = await amend(ports, prd, note="numbers, not words")
    assert (new.author, new.parent, new.version, new.restarted) == ("user:eve", prd.row, 2, ("API-1-r1/check.2",))
    ticket = await until(ports, "API-1", lambda t: t.current.visits[-1].state == "parked")
    states = {v.id.partition("/")[2]: (v.state, v.comment) for v in ticket.current.visits}
    assert states == {
        "write.1": ("done", ""),
        "check.1": ("superseded", ""),
        "check.2": ("parked", "numbers, not words"),
    }


async def test_the_approval_of_the_edit_is_a_receipt_that_names_both_versions(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    new = await amend(ports, prd, note="numbers")
    receipt = await gates.show(ports, new.gates[0].id, actor=OWNER)
    assert receipt.decision
    assert (receipt.decision.choice, receipt.decision.actor, receipt.decision.note) == (
        "approve",
        "user:eve",
        "numbers",
    )
    assert [one.sha256 for one in receipt.decision.saw] == [new.sha256]
    assert receipt.detail["edited"] == {"from": prd.row, "before": prd.sha256, "after": new.sha256}


async def test_the_same_key_amends_once(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    first = await amend(ports, prd, key="click")
    again = await amend(ports, prd, key="click")
    assert (again.row, again.restarted) == (first.row, first.restarted)
    assert [v.id for v in (await runs.show(ports, prd.run, actor=OWNER)).visits if v.n == 2] == ["API-1-r1/check.2"]


async def test_an_edit_can_be_taken_back_by_another_one(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    second = await amend(ports, prd)
    third = await artifacts.edit(ports, second.row, etag=second.sha256, text=prd.text, approve=True, actor=EVE)
    assert (third.sha256, third.version, third.parent) == (prd.sha256, 3, second.row)
    assert third.restarted == ("API-1-r1/check.3",)


async def test_an_amend_on_an_older_version_names_who_saved_the_newer_one(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    second = await amend(ports, prd)
    with pytest.raises(Stale) as refused:
        await amend(ports, prd, "Sums")
    assert refused.value.details == {"row": second.row, "sha256": second.sha256, "by": "user:eve"}


async def test_an_amend_without_what_was_edited_or_without_a_change_is_refused(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    with pytest.raises(Missing):
        await artifacts.edit(ports, prd.row, etag=None, text=prd.text, approve=True, actor=EVE)
    with pytest.raises(Invalid) as refused:
        await amend(ports, prd, "Adding")
    assert refused.value.code == "NOT_CHANGED"


async def test_a_plain_edit_after_approval_names_the_way(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    with pytest.raises(Conflict) as refused:
        await artifacts.edit(ports, prd.row, etag=prd.sha256, text=prd.text, actor=EVE)
    assert refused.value.code == "NOT_AT_A_GATE"
    assert f"beadmill artifact edit {prd.row} --approve" in refused.value.next


async def test_from_preflight_on_it_is_read_only_and_the_rerun_is_named(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started, "sealed")
    await approve(ports)
    with pytest.raises(Refused) as refused:
        await amend(ports, prd)
    assert (refused.value.code, "beadmill run rerun API-1-r1 check" in refused.value.next) == ("SEALED", True)
    assert [v.n for v in (await runs.show(ports, prd.run, actor=OWNER)).visits] == [1, 1, 1]


async def test_at_its_own_gate_save_and_approve_are_one_action(ports: Ports, started: Starter) -> None:
    ticket = await started()
    gate = await gates.show(ports, ticket.current.gates[0].id, actor=OWNER)
    new = await amend(ports, await artifacts.show(ports, gate.shows[0].row, actor=OWNER))
    answered = await gates.show(ports, gate.id, actor=OWNER)
    assert answered.decision
    assert ([one.row for one in answered.decision.saw], new.restarted) == ([new.row], ())


async def test_a_gate_that_shows_more_is_not_approved_by_an_edit_of_one_of_its_documents(
    ports: Ports, started: Starter
) -> None:
    ticket = await started()
    gate = await gates.show(ports, ticket.current.gates[0].id, actor=OWNER)
    prd = await artifacts.show(ports, gate.shows[0].row, actor=OWNER)
    plan = await ports.store.write(
        lambda tx: blobs.put_document(tx, Questions(questions=()), run=prd.run, visit=prd.visit, author="seat:a")
    )
    both = await opened(ports, gate, shows=(ArtifactRef("prd", Sha(prd.sha256), prd.row), plan))
    with pytest.raises(Conflict) as refused:
        await amend(ports, prd)
    assert refused.value.code == "SHOWS_MORE"
    assert (await gates.show(ports, both.id, actor=OWNER)).shows[0].row == prd.row


async def test_an_edit_is_offered_only_while_it_would_be_taken(ports: Ports, started: Starter) -> None:
    prd = await approved(ports, started)
    assert prd.edits == "approve"
    await runs.cancel(ports, prd.run, actor=OWNER)
    assert (await artifacts.show(ports, prd.row, actor=OWNER)).edits == ""
