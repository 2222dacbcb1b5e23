"""Everything that crosses into the runner and back survives the way through JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import (
    Asked,
    CommandResult,
    Ended,
    Failed,
    Lapsed,
    Limited,
    Lost,
    Ran,
    Replied,
    SessionRef,
    Stopped,
    Why,
)  # fmt: skip
from beadmill.domain.values import Access, Brief, Part, Seat, Sha, Usage
from beadmill.processes.spec import (
    AgentEvent,
    AgentTask,
    AnswerOrder,
    Batch,
    BoxSpec,
    EventKind,
    Hold,
    Order,
    Policy,
    Release,
    Steer,
    Stop,
)  # fmt: skip
from beadmill.processes.wire import (
    BadWire,
    decode,
    decode_end,
    decode_order,
    decode_work,
    encode,
    encode_end,
    encode_order,
    encode_work,
)  # fmt: skip

AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
REF = SessionRef("run/prd.1/turn-1", "thread")
USED = Usage(10, 20, 30, 5, 0.25)


@pytest.mark.parametrize(
    "end",
    [
        Replied(session=REF, worked=timedelta(seconds=1.25), usage=USED, text="done ✓", data={"a": [1, None]}),
        Asked(session=REF, question="why?", options=("a", "b")),
        Limited(session=REF, until=AT, message="later"),
        Limited(session=REF),
        Lapsed(session=REF, idle=True),
        Stopped(session=REF),
        Failed(session=REF, why=Why.AUTH, message="no", continuable=True),
        Ran((CommandResult("make", 2, 0.5, "out"), CommandResult("x", None, 0.0, "", cannot_start=True)), stopped=True),
        Lost(),
    ],
)
def test_ends_survive(end: Ended | Ran | Lost) -> None:
    data = json.loads(json.dumps(encode_end(end)))
    assert data["type"] == type(end).__name__
    assert decode_end(data) == end


@pytest.mark.parametrize(
    "work",
    [
        AgentTask(
            Seat("codex", "large", "high"),
            Brief("coding", "text", (Part("prd", Sha("0" * 64), 5, 2, dropped=True),), "bead"),
            Access.ONLINE,
            Path("/tree"),
            timedelta(minutes=20),
            timedelta(seconds=90.5),
            schema={"type": "object"},
            resume=REF,
            questions=True,
        ),
        Batch(
            (CommandSpec(program="make", args=("-j", "2"), env={"A": "b"}, timeout_ms=500),),
            Path("/tree"),
            {"K": "v"},
            stop_at_first_failure=False,
        ),
    ],
)
def test_work_survives(work: AgentTask | Batch) -> None:
    assert decode_work(json.loads(json.dumps(encode_work(work)))) == work


@pytest.mark.parametrize("order", [Steer("left"), AnswerOrder("yes"), Hold(), Release(), Stop("canceled")])
def test_orders_survive(order: Order) -> None:
    assert decode_order(json.loads(json.dumps(encode_order(order)))) == order


def test_events_and_boxes_survive() -> None:
    event = AgentEvent(AT, EventKind.TOOL, {"id": "1", "input": {"cmd": "ls"}})
    box = BoxSpec("host", Path("/w"), Policy("off", (Path("/w/tree/.git"),)))
    assert decode(AgentEvent, json.loads(json.dumps(encode(event)))) == event
    assert decode(BoxSpec, json.loads(json.dumps(encode(box)))) == box


def test_a_newer_writer_does_not_break_an_older_reader() -> None:
    assert decode_end({**encode_end(Lost()), "left": [12], "new": "field"}) == Lost()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"type": "Exploded"}, "unknown type 'Exploded'"),
        ({"type": "Failed", "session": {"token": "t"}, "why": "boredom"}, "Failed: 'boredom' is not a valid Why"),
        ({"type": "Ran", "results": 3}, "Ran: 'int' object is not iterable"),
        ({"type": "Asked", "session": {"token": 7}, "question": ""}, "Asked: 7 is not str"),
    ],
)
def test_what_is_no_value_is_refused_with_its_reason(data: dict[str, object], says: str) -> None:
    with pytest.raises(BadWire) as refused:
        decode_end(data)
    assert str(refused.value) == says
