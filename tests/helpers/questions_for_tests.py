"""Gates that a test opens by hand in a real run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from house_for_tests import OWNER

from beadmill.domain.values import GateKind, GateRequest
from beadmill.operations import gates, views
from beadmill.operations.ports import Ports
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
