"""Answers to a batch: what is refused, what is kept (reference §3.3, §3.4; platform §10.2)."""

from __future__ import annotations

from typing import Any

import pytest
from house_for_tests import OWNER, Starter
from questions_for_tests import batch, interviewed

from beadmill.artifacts.interview import Turn
from beadmill.errors import Conflict, Invalid, Missing, Stale
from beadmill.nodes._session import with_answers, with_turn
from beadmill.operations import gates, interviews
from beadmill.operations.ports import Ports

GOOD = {"Q02": {"selected_option_ids": ["staff", "customers"], "free_text": "both"}, "Q03": "Staff only"}
KEY = "API-1"


@pytest.fixture
async def asked(ports: Ports, started: Starter) -> Any:
    return await batch(ports, await started(), interviewed())


async def answer(ports: Ports, gate: Any, answers: Any, **more: Any) -> Any:
    return await interviews.answer(ports, KEY, answers, etag=gate.etag, actor=OWNER, **more)


async def payload(ports: Ports, gate: Any) -> Any:
    decision = (await gates.show(ports, gate.id, actor=OWNER)).decision
    assert decision
    return decision.payload


async def test_answers_are_kept_as_they_were_given(ports: Ports, asked: Any) -> None:
    await answer(ports, asked, GOOD, edits={"Q01": {"selected_option_ids": ["customers"]}})
    assert await payload(ports, asked) == {
        "answers": {"Q02": GOOD["Q02"], "Q03": {"free_text": "Staff only"}},
        "edits": {"Q01": {"selected_option_ids": ["customers"]}},
    }


WRONG = [
    ({"Q02": {"selected_option_ids": ["nobody"]}}, {}, "Q02 has no option nobody"),
    ({"Q03": {"selected_option_ids": ["staff"]}}, {}, "Q03 has no option staff"),
    ({"Q03": {"skipped": True, "free_text": "x"}}, {}, "Q03 is skipped and answered"),
    ({"Q03": {"skip_reason": "later", "free_text": "x"}}, {}, "Q03 is answered and has a reason for skipping it"),
    ({"Q09": "x"}, {}, "this batch asks Q02, Q03: Q09 not asked"),
    ({"Q03": {"words": "x"}}, {}, "the answer to Q03 is neither a text nor a record"),
    ({}, {"Q01": {"selected_option_ids": ["staff", "customers"]}}, "Q01 takes one option, not staff, customers"),
    ({}, {"Q03": "not yet"}, "Q03 has no earlier answer to change"),
]


@pytest.mark.parametrize(("answers", "edits", "said"), WRONG, ids=[said for *_, said in WRONG])
async def test_what_contradicts_itself_or_was_not_asked_is_refused(
    ports: Ports, asked: Any, answers: Any, edits: Any, said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        await answer(ports, asked, {**GOOD, **answers}, edits=edits)
    assert (await gates.show(ports, asked.id, actor=OWNER)).state == "open"


async def test_a_question_that_is_left_out_is_named(ports: Ports, asked: Any) -> None:
    with pytest.raises(Invalid, match="Q03 not answered or skipped") as refused:
        await answer(ports, asked, {"Q02": "both"})
    assert refused.value.details["missing"] == ["Q03"]


async def test_the_answer_of_an_earlier_batch_is_stale(ports: Ports, started: Starter, asked: Any) -> None:
    ticket = await started(title="Another")
    session = with_answers(interviewed(), {"answers": {}}, at="2026-01-02T12:00:00+00:00")
    later = await batch(ports, ticket, with_turn(session, Turn(complete=True)))
    with pytest.raises(Stale):
        await interviews.answer(ports, ticket.key, {"QFF1": "No"}, etag=asked.etag, actor=OWNER)
    with pytest.raises(Missing):
        await interviews.answer(ports, ticket.key, {"QFF1": "No"}, etag=None, actor=OWNER)
    assert (await gates.show(ports, later.id, actor=OWNER)).state == "open"


async def test_a_batch_is_sent_once_and_the_second_sender_is_told_who_was_first(ports: Ports, asked: Any) -> None:
    await answer(ports, asked, GOOD, key="one")
    with pytest.raises(Conflict, match="no interview question"):
        await answer(ports, asked, {**GOOD, "Q03": "other"}, key="two")
    with pytest.raises(Conflict, match="already answered: answer by user:owner"):
        await gates.answer(ports, asked.id, "answer", etag=asked.etag, actor=OWNER, key="three")
    assert (await payload(ports, asked))["answers"]["Q03"] == {"free_text": "Staff only"}


async def test_an_edit_alone_is_a_decision_of_its_own(ports: Ports, asked: Any) -> None:
    await interviews.edit(ports, KEY, {"Q01": "Everybody"}, etag=asked.etag, actor=OWNER)
    decision = (await gates.show(ports, asked.id, actor=OWNER)).decision
    assert decision
    assert (decision.choice, decision.payload) == ("edit", {"edits": {"Q01": {"free_text": "Everybody"}}})


async def test_skipping_all_takes_what_is_answered_along_with_one_reason_for_the_rest(ports: Ports, asked: Any) -> None:
    given: Any = {"answers": {"Q03": "Nothing"}, "edits": {"Q01": "Everybody"}, "reason": "no time"}
    await interviews.skip_all(ports, KEY, etag=asked.etag, actor=OWNER, **given)
    assert await payload(ports, asked) == {
        "answers": {"Q03": {"free_text": "Nothing"}},
        "edits": {"Q01": {"free_text": "Everybody"}},
        "reason": "no time",
    }


async def test_one_question_of_several_cannot_be_skipped_while_the_others_stay_open(ports: Ports, asked: Any) -> None:
    with pytest.raises(Invalid, match="Q03 not answered or skipped"):
        await interviews.skip(ports, KEY, ["Q02"], etag=asked.etag, actor=OWNER)
