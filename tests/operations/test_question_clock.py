"""A person at an agent's question: what they begin to do stops its countdown."""

from __future__ import annotations

from typing import Any

import pytest
from house_for_tests import OWNER, Starter
from questions_for_tests import opened, question

from beadmill.domain.values import Actor
from beadmill.errors import Conflict, Refused
from beadmill.operations import drafts, gates
from beadmill.operations.ports import Ports


@pytest.fixture
async def asked(ports: Ports, started: Starter) -> Any:
    return await opened(ports, await started(), "question-1", question())


async def lapses(ports: Ports, gate: Any) -> bool:
    return (await gates.show(ports, gate.id, actor=OWNER)).lapse_at is not None


async def test_reading_a_question_stops_nothing(ports: Ports, asked: Any) -> None:
    assert await lapses(ports, asked)


async def test_holding_a_question_stops_its_countdown_and_may_be_said_twice(ports: Ports, asked: Any) -> None:
    held = [await gates.hold(ports, asked.id, actor=OWNER) for _ in range(2)]
    assert [(one.state, one.lapse, one.lapse_at) for one in held] == [("open", "decide_yourself", None)] * 2


async def test_the_first_saved_words_stop_the_countdown(ports: Ports, asked: Any) -> None:
    await drafts.save(ports, asked.id, {"text": ["re"]}, revision=0, actor=OWNER)
    assert not await lapses(ports, asked)


async def test_an_answered_question_cannot_be_held(ports: Ports, asked: Any) -> None:
    await gates.answer(ports, asked.id, "decide_yourself", etag=asked.etag, actor=OWNER)
    with pytest.raises(Conflict, match="decided before"):
        await gates.hold(ports, asked.id, actor=OWNER)


async def test_who_may_only_read_stops_no_clock(ports: Ports, asked: Any) -> None:
    with pytest.raises(Refused):
        await gates.hold(ports, asked.id, actor=Actor("user", "guest", "api", ("read",)))
    assert await lapses(ports, asked)
