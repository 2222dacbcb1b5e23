"""One gate, one decision: races, what was seen, open gaps, and what policy decides and why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from house_for_tests import CLASH, GAP, OWNER, Starter, gappy, opened

from beadmill.domain.values import Actor
from beadmill.errors import BeadmillError, Conflict, Invalid, Stale
from beadmill.operations import artifacts, gates, runs
from beadmill.operations.ports import Ports
from beadmill.store import tables as t

EVE = Actor("user", "eve", "web")


@pytest.fixture
async def gate(started: Starter, ports: Ports) -> Any:
    ticket = await started()
    return await gates.show(ports, ticket.current.gates[0].id, actor=OWNER)


async def test_c75_twenty_answers_at_once_make_one_decision_and_nineteen_conflicts_that_name_the_winner(
    ports: Ports, gate: Any
) -> None:
    async def try_(n: int) -> BeadmillError | None:
        who = Actor("user", f"p{n}", "web")
        try:
            await gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=who, key=f"k{n}")
        except BeadmillError as error:
            return error
        return None

    said = await asyncio.gather(*(try_(n) for n in range(20)))
    decision = (await gates.show(ports, gate.id, actor=OWNER)).decision
    lost = [one for one in said if one is not None]
    assert decision
    assert [(one.status, one.code) for one in lost] == [(409, "ALREADY_ANSWERED")] * 19
    expected = {"choice": "approve", "by": decision.actor, "door": "web", "at": decision.at}
    assert [one.details for one in lost] == [expected] * 19
    counted = sa.select(sa.func.count()).select_from(t.events).where(t.events.c.kind == "gate.answered")
    assert await ports.store.read(lambda conn: conn.execute(counted).scalar()) == 1


async def test_c75_an_answer_on_what_was_edited_meanwhile_names_who_saved_which_version(
    ports: Ports, gate: Any
) -> None:
    shown = await artifacts.show(ports, gate.shows[0].row, actor=OWNER)
    text = shown.text.replace("Adding", "Numbers")
    new = await artifacts.edit(ports, shown.row, etag=shown.sha256, text=text, actor=EVE)
    for act in (
        gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=OWNER),
        gates.send_back(ports, gate.id, "write", etag=gate.etag, actor=OWNER),
    ):
        with pytest.raises(Stale) as refused:
            await act
        assert "user:eve saved version 2 of the prd at " in refused.value.message
        (saved,) = refused.value.details["saved"]
        assert (saved["row"], saved["version"], saved["by"]) == (new.row, 2, "user:eve")


async def test_an_answer_to_a_withdrawn_question_names_who_sent_the_run_back(ports: Ports, gate: Any) -> None:
    await runs.send_back(ports, gate.run, "write", actor=EVE)
    with pytest.raises(Conflict) as refused:
        await gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=OWNER)
    assert (refused.value.code, refused.value.details["by"]) == ("GATE_WITHDRAWN", "user:eve")
    assert "run sent back by user:eve at " in refused.value.message


async def test_approving_while_gaps_are_fixed_says_so(ports: Ports, gate: Any) -> None:
    second = await gappy(ports, gate)
    await gates.answer(ports, second.id, "fix_gaps", etag=second.etag, actor=EVE)
    with pytest.raises(Conflict, match=r"fix_gaps by user:eve at .*the gaps are being fixed") as refused:
        await gates.answer(ports, second.id, "approve_with_gaps", etag=second.etag, actor=OWNER)
    assert refused.value.code == "ALREADY_ANSWERED"


async def test_open_gaps_are_never_approved_by_a_plain_yes(ports: Ports, gate: Any) -> None:
    second = await gappy(ports, gate)
    with pytest.raises(Conflict) as refused:
        await gates.answer(ports, second.id, "approve", etag=second.etag, actor=OWNER)
    assert (refused.value.code, refused.value.details["gaps"]) == ("GAPS_OPEN", [GAP, CLASH])


async def test_the_receipt_of_an_approval_with_gaps_keeps_its_reason_and_what_it_acknowledges(
    ports: Ports, gate: Any
) -> None:
    second = await gappy(ports, gate)
    done = await gates.answer(
        ports, second.id, "approve_with_gaps", etag=second.etag, note="we know\n  that", actor=OWNER
    )
    assert done.decision
    assert (done.decision.acknowledged, done.decision.note) == ((GAP, CLASH), "we know\n  that")
    assert done.decision.made_by == "person"


async def test_a_reason_may_have_twenty_thousand_characters(ports: Ports, gate: Any) -> None:
    with pytest.raises(Invalid) as refused:
        await gates.answer(ports, gate.id, "approve", etag=gate.etag, note="x" * 20_001, actor=OWNER)
    assert refused.value.code == "NOTE"
    done = await gates.answer(ports, gate.id, "approve", etag=gate.etag, note="x" * 20_000, actor=OWNER)
    assert done.state == "answered"


async def test_a_fix_needs_a_gap_or_a_decision(ports: Ports, gate: Any) -> None:
    second = await gappy(ports, gate, gaps=())
    with pytest.raises(Invalid) as refused:
        await gates.answer(
            ports, second.id, "fix_gaps", etag=second.etag, payload={"decisions": {CLASH: " "}}, actor=OWNER
        )
    assert (refused.value.code, refused.value.details) == ("NOTHING_TO_FIX", {"undecided": [CLASH]})
    said = {"decisions": {CLASH: "Staff."}}
    done = await gates.answer(ports, second.id, "fix_gaps", etag=second.etag, payload=said, actor=OWNER)
    assert done.decision
    assert done.decision.payload == said


async def test_an_approval_never_swallows_what_was_written_to_a_contradiction(ports: Ports, gate: Any) -> None:
    second = await gappy(ports, gate)
    said = {"decisions": {CLASH: "Staff."}}
    with pytest.raises(Invalid) as refused:
        await gates.answer(ports, second.id, "approve_with_gaps", etag=second.etag, payload=said, actor=OWNER)
    assert (refused.value.code, (await gates.show(ports, second.id, actor=OWNER)).state) == ("DECISIONS_UNUSED", "open")


async def test_policy_says_why_it_decided(ports: Ports, gate: Any) -> None:
    second = await opened(ports, gate, auto="approve", why="auto_when_clean: nothing open", in_budget=True)
    assert second.decision
    assert (second.decision.made_by, second.decision.note) == ("policy", "auto_when_clean: nothing open")


@pytest.mark.parametrize("kind", ["warned", "unpriced"])
async def test_a_budget_that_warns_leaves_a_clean_gate_to_a_person(ports: Ports, gate: Any, kind: str) -> None:
    spent = {"warned": {"tokens": 90}, "unpriced": {"unpriced": 1}}[kind]
    budget = {"warned": {"tokens": 100}, "unpriced": {"usd": 5}}[kind]
    row = await ports.store.read(lambda conn: conn.execute(sa.select(t.runs.c.settings)).scalar_one())
    values = {**spent, "settings": {**row, "budget": {**row["budget"], **budget}}}
    await ports.store.write(lambda tx: tx.run(sa.update(t.runs).values(**values)))
    second = await opened(ports, gate, auto="approve", in_budget=True)
    said = {"warned": "90% of the budget in tokens are used", "unpriced": "the budget does not see every turn"}
    assert (second.state, second.detail) == ("open", {"asked_because": [said[kind]]})
