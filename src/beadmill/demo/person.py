"""The person of the demo: answers gates through the public API, exactly as somebody at the GUI would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beadmill.demo import material
from beadmill.demo.client import Api
from beadmill.errors import BeadmillError, Conflict

CHOICES = {"approve": "approve", "merge": "merge"}  # by the kind of the gate


class Stuck(BeadmillError):
    """A gate that the demo must not answer by itself, such as a blocked run."""


@dataclass(frozen=True, slots=True)
class Person:
    api: Api
    ticket: str

    async def answer(self, gate: Mapping[str, Any]) -> str:
        """Answers one open gate and says what was answered; "" when it was answered meanwhile or shows something new.

        Raises Stuck for a gate that needs a real person.
        """
        try:
            if gate["kind"] == "interview":
                return await self._interview(gate)
            return await self._decide(gate)
        except Conflict:
            return ""

    async def _decide(self, gate: Mapping[str, Any]) -> str:
        choice = CHOICES.get(gate["kind"], "")
        if choice not in gate["choices"]:
            raise Stuck(
                f"the run waits: {gate['title']}",
                code="DEMO_NEEDS_A_PERSON",
                details={"gate": gate["id"], "kind": gate["kind"], "choices": list(gate["choices"])},
                kept="the run, its worktree and everything it has made",
                next=gate["answer_with"],
            )
        body = {"choice": choice}
        await self.api.call("gates.answer", gate=gate["id"], body=body, etag=gate["etag"], once=_once(gate))
        return f"{gate['title']}: {choice}"

    async def _interview(self, gate: Mapping[str, Any]) -> str:
        view = await self.api.call("interviews.show", key=self.ticket)
        if view["gate"] is None or view["gate"]["id"] != gate["id"]:
            return ""
        asked = [question["id"] for question in view["questions"]]
        said = {name: answer for name, answer in material.answers().items() if name in asked}
        body = {"answers": said}
        await self.api.call("interviews.answer", key=self.ticket, body=body, etag=gate["etag"], once=_once(gate))
        return "; ".join(f"{name}: {_told(said.get(name, {}))}" for name in asked)


def _once(gate: Mapping[str, Any]) -> str:
    return f"demo:{gate['id']}"


def _told(answer: Mapping[str, Any]) -> str:
    if answer.get("skipped") or not answer:
        return "skipped"
    return ", ".join(
        [*answer.get("selected_option_ids", ()), *([answer["free_text"]] if answer.get("free_text") else ())]
    )
