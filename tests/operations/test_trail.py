"""The trail: what people and policy decided and changed, oldest first."""

from __future__ import annotations

from typing import Any

import pytest
from house_for_tests import OWNER, Starter, until

from beadmill.artifacts.base import Document
from beadmill.artifacts.interview import Answer, Interview, InterviewQuestion, InterviewSession, Question
from beadmill.domain.values import SYSTEM, Actor, ArtifactRef, GateKind, GateRequest
from beadmill.errors import Invalid, NotFound
from beadmill.operations import artifacts, gates, runs, tickets, trail, views
from beadmill.operations.ports import Ports
from beadmill.store import blobs
from beadmill.store.journal import gates as journal

RUN, VISIT = "API-1-r1", "API-1-r1/write.1"
EVE = Actor("user", "eve", "web")
QUESTIONS = [{"id": "Q01", "question": "Who?"}, {"id": "Q02", "question": "What?"}]


async def lines(ports: Ports, **of: str) -> list[views.TrailLine]:
    return list((await trail.listing(ports, actor=OWNER, **(of or {"run": RUN}))).lines)


async def first_gate(ports: Ports, started: Starter) -> Any:
    ticket = await started()
    return await gates.show(ports, ticket.current.gates[0].id, actor=OWNER)


async def put(ports: Ports, doc: Document, by: Actor = SYSTEM, parent: int | None = None) -> ArtifactRef:
    return await ports.store.write(
        lambda tx: blobs.put_document(tx, doc, run=RUN, visit=VISIT, author=str(by), parent=parent)
    )


async def batch(ports: Ports, n: int, choice: str, payload: Any, *, note: str = "", **detail: Any) -> None:
    """One interview batch, asked and answered by Eve."""
    session = InterviewSession(compiled=(Question(id="Q09", phase="Assembly", question="When?"),))
    ref = await put(ports, session)
    shown = {"questions": QUESTIONS, **detail}
    request = GateRequest(GateKind.INTERVIEW, "Questions", ("answer", "skip_all"), shows=(ref,), detail=shown)
    name = f"{VISIT}/batch-{n}#0"
    await ports.store.write(lambda tx: journal.open_gate(tx, name, VISIT, request))
    etag = (await gates.show(ports, name, actor=OWNER)).etag
    await gates.answer(ports, name, choice, etag=etag, payload=payload, note=note, actor=EVE)


async def test_edits_and_decisions_stand_in_their_order_with_who_and_what_they_saw(
    ports: Ports, started: Starter
) -> None:
    gate = await first_gate(ports, started)
    shown = await artifacts.show(ports, gate.shows[0].row, actor=OWNER)
    text = shown.text.replace("Adding", "Numbers")
    new = await artifacts.edit(ports, shown.row, etag=shown.sha256, text=text, actor=EVE)
    await gates.answer(ports, gate.id, "approve", etag=new.gates[0].etag, note="good", actor=OWNER)
    edit, approval = await lines(ports)
    assert (edit.kind, edit.by, edit.node, edit.title) == ("edit", "user:eve", "write", "prd")
    expected = {"before": shown.sha256, "after": new.sha256, "from_row": shown.row, "after_ai": True}
    assert edit.details == {"row": new.row, "version": 2, **expected}
    assert (approval.kind, approval.choice, approval.by, approval.reason) == (
        "decision",
        "approve",
        "user:owner",
        "good",
    )
    assert ([one.row for one in approval.saw], approval.door, approval.gate) == ([new.row], "cli", gate.id)


async def test_what_policy_and_a_countdown_decided_says_why(ports: Ports, started: Starter) -> None:
    await first_gate(ports, started)
    auto = GateRequest(GateKind.APPROVE, "A", ("approve_with_gaps",), detail={"gaps": ["x"]}, auto="approve_with_gaps")
    late = GateRequest(GateKind.QUESTION, "Q", ("answer", "decide_yourself"))

    def decided(tx: Any) -> None:
        journal.open_gate(tx, f"{VISIT}/a#0", VISIT, auto)
        journal.open_gate(tx, f"{VISIT}/q#0", VISIT, late)
        key, note = f"lapse:{VISIT}/q#0", "the countdown ended"
        journal.decide(tx, f"{VISIT}/q#0", choice="decide_yourself", payload=None, note=note, key=key, actor=SYSTEM)

    await ports.store.write(decided)
    found = [(one.kind, one.choice, one.reason, one.acknowledged) for one in await lines(ports)]
    assert found == [
        ("automatic", "approve_with_gaps", "by policy", ("x",)),
        ("expiry", "decide_yourself", "the countdown ended", ()),
    ]


async def test_a_skip_that_is_answered_later_stays_readable_with_who_took_its_place(
    ports: Ports, started: Starter
) -> None:
    await first_gate(ports, started)
    skipped = {"answers": {"Q01": {"skipped": True, "skip_reason": "ask Ada"}, "Q02": {"free_text": "Lists"}}}
    await batch(ports, 1, "answer", skipped)
    assert [(s.details["question"], s.superseded_by) for s in await lines(ports) if s.kind == "skip"] == [("Q01", None)]
    again = {"answers": {"Q02": {"free_text": "x"}}, "edits": {"Q01": {"free_text": "Staff"}}}
    await batch(ports, 2, "answer", again, questions=QUESTIONS[1:], earlier=QUESTIONS[:1])
    (skip,) = [one for one in await lines(ports) if one.kind == "skip"]
    assert (skip.by, skip.reason, skip.superseded_by) == ("user:eve", "ask Ada", "user:eve")
    assert skip.details == {"question": "Q01", "prompt": "Who?", "surface": "interview_question"}


async def test_skipping_everything_is_one_act_with_a_line_per_question_and_the_bulk_reason(
    ports: Ports, started: Starter
) -> None:
    await first_gate(ports, started)
    answers = {"Q01": {"free_text": "Staff"}, "Q02": {"skipped": True, "skip_reason": "mine"}}
    await batch(ports, 1, "skip_all", {"answers": answers, "reason": "no time"})
    found = [one for one in await lines(ports) if one.kind == "skip"]
    assert [(s.details.get("question"), s.reason, s.details.get("summary", False)) for s in found] == [
        (None, "no time", True),
        ("Q02", "mine", False),
        ("Q09", "no time", False),
    ]


async def test_answers_changed_in_the_finished_interview_are_receipts_too(ports: Ports, started: Starter) -> None:
    def interview(first: Answer, second: Answer) -> Interview:
        asked = (("Q01", "Who?", first), ("Q02", "What?", second))
        questions = [InterviewQuestion(id=i, phase="Structure", prompt=p, answer=one) for i, p, one in asked]
        return Interview(ticket_id="API-1", questions=tuple(questions))

    await first_gate(ports, started)
    silent = Answer(skipped=True, answered_by="ai_skip", skip_reason="not needed")
    made = await put(ports, interview(Answer(free_text="Staff"), silent))
    marked = Answer(skipped=True, answered_by="user_skip", skip_reason="unclear")
    await put(ports, interview(marked, Answer(free_text="Lists")), EVE, made.row)
    found = [one for one in await lines(ports) if one.kind == "skip"]
    assert [(s.details["question"], s.by, s.reason, s.superseded_by) for s in found] == [
        ("Q02", "system:beadmill", "not needed", "user:eve"),
        ("Q01", "user:eve", "unclear", None),
    ]


async def test_where_the_run_was_sent_and_why_it_ended_covers_all_runs_of_the_ticket(
    ports: Ports, started: Starter
) -> None:
    gate = await first_gate(ports, started)
    await gates.send_back(ports, gate.id, "write", etag=gate.etag, comment="shorter", actor=EVE)
    await until(ports, "API-1", lambda found: found.waits > 0)
    await tickets.cancel(ports, "API-1", reason="not now", actor=OWNER)
    await runs.rerun(ports, RUN, "write", actor=OWNER)
    found = [(one.kind, one.by, one.reason, one.gate, one.details) for one in await lines(ports, ticket="API-1")]
    assert found == [
        ("send_back", "user:eve", "shorter", gate.id, {"to": "write"}),
        ("cancel", "user:owner", "not now", None, {}),
        ("rerun", "user:owner", "", None, {"parent": RUN}),
    ]


async def test_a_trail_is_of_a_run_or_ticket_that_exists(ports: Ports, started: Starter) -> None:
    with pytest.raises(Invalid):
        await trail.listing(ports, actor=OWNER)
    with pytest.raises(NotFound):
        await trail.listing(ports, run="X-1-r1", actor=OWNER)
