"""A node that writes a PRD and asks for approval: the shortest run with an artifact at a gate."""

from __future__ import annotations

from dataclasses import dataclass

from beadmill.artifacts.prd import Epic, Prd, Product, Story
from beadmill.domain.values import SYSTEM, GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.errors import Blocked

SOP = """
format: 1
title: Write
description: Writes a PRD and asks.
start: write
nodes:
  - id: write
    kind: write
  - id: check
    kind: gate
    config: {title: Good?}
    ends: [approved]
edges:
  - {from: write, outcome: approved, to: check}
  - {from: check, outcome: rejected, to: write, kind: rework, max_visits: 3}
"""


def prd(problem: str) -> Prd:
    story = Story(id="US-1-1", title="As a user I add", acceptance_criteria=("It adds",))
    epic = Epic(id="EPIC-1", title="Adding", user_stories=(story,))
    return Prd(ticket_id="API-1", product=Product(problem_statement=problem), epics=(epic,))


@dataclass(frozen=True, slots=True)
class Nothing:
    """The node takes no configuration."""


class WriteNode:
    spec = NodeSpec("write", Nothing, frozenset({"approved"}), writes=(Prd,))

    async def visit(self, v: Visit, cfg: Nothing, /) -> Outcome:
        if v.work.title == "Block":
            raise Blocked("NO_LUCK", "it does not work yet", next="retry")
        ref = await v.put(prd(v.work.title), by=SYSTEM)
        gate = GateRequest(GateKind.APPROVE, "Approve the PRD", ("approve",), shows=(ref,))
        answer = await v.ask("approve-1", gate)
        return Outcome("approved", made=answer.saw, note=answer.note)
