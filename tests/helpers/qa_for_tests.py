"""A node that asks for the results of a checklist, as the real one does, without a worktree and an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator

from house_for_tests import Nothing

from beadmill.artifacts.prd import Prd
from beadmill.artifacts.qa import Covered, QaChecklist, QaItem
from beadmill.domain.values import SYSTEM, GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
KEY, FIRST, SECOND = "API-1", "qa-v1-001", "qa-v1-002"


def item(name: str, **more: object) -> QaItem:
    fields = {
        "id": name, "title": f"Look at {name}", "behavior": "It is 中文 and readable.", "actions": ("Start it", "Look"),
        "expected_result": "It is there.", "severity": "required", "lineage_id": name,
    }  # fmt: skip
    return QaItem.model_validate(fields | more)


CHECKLIST = QaChecklist(
    version=1,
    summary="Start it, then look.",
    items=(item(FIRST), item(SECOND, severity="optional", watch_notes="The edge.", prerequisites=("A file",))),
    coverage=(Covered(ref="EPIC-1/US-1-1/AC-1", text="It adds", state="covered", items=(FIRST,)),),
)


class AskingNode:
    """Asks, then asks what becomes of a drift when the note of the answer says so."""

    spec = NodeSpec("write", Nothing, frozenset({"approved"}), writes=(Prd,))

    async def visit(self, v: Visit, cfg: Nothing, /) -> Outcome:
        ref = await v.put(CHECKLIST, by=SYSTEM)
        detail = {"version": 1, "worktree": "/somewhere/tree", "required": 1, "problems": []}
        gate = GateRequest(GateKind.QA, "Check it by hand", ("submit", "skip"), shows=(ref,), detail=detail)
        await v.ask("qa-1", gate)
        drift = {"code": "MANUAL_QA_WORKSPACE_DRIFT", "paths": ["a.py"], "more": 0}
        asked = GateRequest(GateKind.QA, "The worktree changed", ("include", "discard"), shows=(ref,), detail=drift)
        await v.ask("drift-1", asked)
        return Outcome("approved")


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
