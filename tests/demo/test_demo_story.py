"""What the demo tells, and how its person answers: against an API that gives the wanted views."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.console import Console

from beadmill.demo.person import Person, Stuck
from beadmill.demo.show import LiveScreen, PlainScreen
from beadmill.demo.watch import STAGES, Look, Story, look
from beadmill.domain.machine import Phase
from beadmill.errors import Conflict


@dataclass
class Views:
    """Answers operations from ``views``; an exception is raised. ``calls`` is what was asked."""

    views: Mapping[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def call(self, operation: str, **told: Any) -> Any:
        self.calls.append((operation, told))
        view = self.views.get(operation)
        if isinstance(view, Exception):
            raise view
        return view

    def follow(self, topic: str) -> AsyncIterator[Mapping[str, Any]]:
        raise AssertionError(topic)


def gate(kind: str, *choices: str) -> dict[str, Any]:
    return {
        "id": "g",
        "kind": kind,
        "title": "T",
        "choices": choices,
        "etag": "e",
        "answer_with": "beadmill gate approve g",
    }


def bead(state: str, attempts: int) -> dict[str, Any]:
    return {"id": "a", "title": "Do a", "state": state, "attempts": attempts}


def seen(status: str, *beads: Mapping[str, Any]) -> Look:
    total = {"done": sum(b["state"] == "done" for b in beads), "total": len(beads)}
    nodes = [{"id": "build", "state": "parked", "visits": 2}, {"id": "verify", "state": "waiting", "visits": 0}]
    spend = {"tokens": 1200, "cost_usd": None, "unpriced": 2, "agent_seconds": 3.4}
    run = {"id": "D-1-r1", "beads": total, "gates": [], "nodes": nodes, "spend": spend}
    return Look({"key": "D-1", "status": status, "state": "active", "current": run}, beads)


# --- the person ---
async def test_an_approval_is_answered_with_what_the_gate_showed() -> None:
    api = Views()
    assert await Person(api, "D-1").answer(gate("approve", "approve", "fix_gaps")) == "T: approve"
    told = {"gate": "g", "body": {"choice": "approve"}, "etag": "e", "once": "demo:g"}
    assert api.calls == [("gates.answer", told)]


async def test_an_interview_is_answered_question_by_question() -> None:
    view = {"gate": gate("interview"), "questions": [{"id": "Q01"}, {"id": "Q03"}]}
    api = Views({"interviews.show": view})
    assert await Person(api, "D-1").answer(gate("interview")) == "Q01: refuse; Q03: skipped"
    assert list(api.calls[1][1]["body"]["answers"]) == ["Q01", "Q03"]


async def test_a_gate_that_changed_meanwhile_is_left_for_the_next_look() -> None:
    api = Views({"gates.answer": Conflict("stale", code="STALE")})
    assert await Person(api, "D-1").answer(gate("approve", "approve")) == ""


@pytest.mark.parametrize("kind", ["blocked", "budget", "question"])
async def test_the_demo_never_answers_for_a_person_who_is_really_needed(kind: str) -> None:
    with pytest.raises(Stuck) as caught:
        await Person(Views(), "D-1").answer(gate(kind, "retry"))
    assert caught.value.next == "beadmill gate approve g"


# --- the story ---
async def test_a_stage_is_told_once() -> None:
    story = Story(Views())
    told = [await story.lines(seen("coding")), await story.lines(seen("coding"))]
    assert told == [[STAGES["coding"]], []]


async def test_a_failed_try_is_told_with_its_reason() -> None:
    tries = [{"n": 1, "state": "failed", "note": "the tests do not pass\nmore"}, {"n": 2, "state": "open", "note": ""}]
    story = Story(Views({"beads.show": {"tries": tries}}), status="coding")
    told = [
        await story.lines(seen("coding", bead("in_progress", 1))),
        await story.lines(seen("coding", bead("in_progress", 2))),
    ]
    assert told == [[], ["bead a: try 1 failed, its work was undone. the tests do not pass"]]


async def test_a_bead_that_is_done_is_told_once() -> None:
    story = Story(Views(), status="coding")
    told = [await story.lines(seen("coding", bead("done", 1))), await story.lines(seen("coding", bead("done", 1)))]
    assert told == [["bead a: done, proven by its own commands (Do a)"], []]


def test_every_stage_that_a_ticket_can_be_in_has_a_sentence() -> None:
    no_work = {Phase.DRAFT, Phase.COMPLETED, Phase.CANCELED, Phase.BLOCKED_ERROR}
    later = {Phase.GENERATING_QA_CHECKLIST, Phase.WAITING_MANUAL_QA}  # the demo's SOP has no manual QA
    assert set(STAGES) == {str(phase) for phase in Phase} - {str(phase) for phase in no_work | later}


async def test_beads_that_are_all_done_are_not_read_again() -> None:
    before = seen("coding", bead("done", 1))
    api = Views({"tickets.show": before.ticket})
    assert await look(api, "D-1", before) == before
    assert [operation for operation, _ in api.calls] == ["tickets.show"]


# --- the screens ---
def test_plain_lines_are_written_as_they_are() -> None:
    out = io.StringIO()
    with PlainScreen(Console(file=out, width=20)) as screen:
        screen.say("a [line] that is longer than the terminal is wide")
    assert out.getvalue() == "a [line] that is longer than the terminal is wide\n"


def test_the_live_view_shows_nodes_beads_spending_and_lines() -> None:
    out = io.StringIO()
    with LiveScreen(Console(file=out, width=80, force_terminal=True, color_system=None)) as screen:
        screen.say("hello")
        screen.update(seen("coding", bead("in_progress", 2)))
    shown = out.getvalue()
    wanted = [
        "… build ×2",
        "· verify",
        "…  a  Do a  try 2",
        "1,200 tokens, 2 unpriced turns, 3 s of agent time",
        "hello",
    ]
    assert [text for text in wanted if text not in shown] == []
