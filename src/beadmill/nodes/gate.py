"""Gate: a person says yes or no."""

from __future__ import annotations

from beadmill.domain.values import GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._config import GateConfig


class GateNode:
    spec = NodeSpec("gate", GateConfig, frozenset({"approved", "rejected"}))

    async def visit(self, v: Visit, cfg: GateConfig, /) -> Outcome:
        request = GateRequest(GateKind.APPROVE, cfg.title, ("approved", "rejected"), detail={"text": cfg.text})
        answer = await v.ask("approve", request)
        return Outcome(answer.choice, note=answer.note)
