"""Gates that a test opens by hand in a real run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from house_for_tests import OWNER

from beadmill.artifacts.base import Document
from beadmill.artifacts.interview import Asked, InterviewSession, Option, Progress, Question, Turn
from beadmill.domain.values import ArtifactRef, GateKind, GateRequest
from beadmill.nodes._batch import batch_gate
from beadmill.nodes._session import with_answers, with_turn
from beadmill.operations import gates, views
from beadmill.operations.ports import Ports
from beadmill.store import blobs
from beadmill.store.journal import gates as journal


async def opened(ports: Ports, ticket: Any, name: str, request: GateRequest) -> views.GateView:
    """The gate ``name`` in the first visit of a started ticket."""
    visit = ticket.current.visits[0].id
    gate = f"{visit}/{name}#0"
    await ports.store.write(lambda tx: journal.open_gate(tx, gate, visit, request))
    return await gates.show(ports, gate, actor=OWNER)


def question(text: str = "Which colour?", *options: str) -> GateRequest:
    return GateRequest(
        GateKind.QUESTION,
        text,
        ("answer", "decide_yourself"),
        form={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        detail={"question": text, "options": list(options)},
        within=timedelta(minutes=5),
        lapse="decide_yourself",
    )


STAFF = Option(id="staff", label="Staff only")
CUSTOMERS = Option(id="customers", label="Customers")
WHO = Asked(
    id="Q01",
    question="Who exports?",
    phase="Foundation",
    priority="critical",
    rationale="It decides the format.",
    answer_type="single_choice",
    options=(STAFF, CUSTOMERS),
)
WHICH = Asked(id="Q02", question="Which?", phase="Structure", answer_type="multiple_choice", options=(STAFF, CUSTOMERS))
WHAT = Asked(id="Q03", question="What else?", phase="Assembly")


def interviewed() -> InterviewSession:
    """Q01 was answered in the first batch; Q02 and Q03 wait in the second."""
    first = Turn(questions=(WHO,), ai_commentary="First the people.", progress=Progress(current=1, total=4))
    second = Turn(questions=(WHICH, WHAT), ai_commentary="Now the rest.", progress=Progress(current=3, total=4))
    compiled = tuple(Question(id=q.id, phase=q.phase, question=q.question) for q in (WHO, WHICH, WHAT))
    session = with_turn(InterviewSession(max_follow_ups=1, compiled=compiled), first)
    answered = {"answers": {"Q01": {"selected_option_ids": ["staff"]}}}
    return with_turn(with_answers(session, answered, at="2026-01-02T12:00:00+00:00"), second)


async def stored(ports: Ports, ticket: Any, document: Document) -> int:
    """The row of a document that the first visit of a started ticket has made."""
    ref = await _put(ports, ticket, document)
    return ref.row


async def _put(ports: Ports, ticket: Any, document: Document) -> ArtifactRef:
    visit = ticket.current.visits[0].id
    more: dict[str, Any] = {"run": ticket.current.id, "visit": visit, "author": "system:beadmill", "parent": None}
    return await ports.store.write(lambda tx: blobs.put_document(tx, document, **more))


async def batch(ports: Ports, ticket: Any, session: InterviewSession) -> views.GateView:
    """The gate of the session's last batch in the first visit of a started ticket; its session is stored."""
    last, ref = session.batches[-1], await _put(ports, ticket, session)
    return await opened(ports, ticket, f"batch-{last.number}", batch_gate(session, last, ref, key=ticket.key))
