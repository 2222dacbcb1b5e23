from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from beadmill.artifacts.council import CoverageReply
from beadmill.artifacts.reading.shapes import COVERAGE
from beadmill.artifacts.reply import Reply
from beadmill.briefs import Briefs, PartText
from beadmill.domain.ended import Replied, SessionRef, Why
from beadmill.domain.values import Access, Brief, Seat
from beadmill.engine.structured import Structured, structured
from beadmill.errors import Blocked, Parked, TurnFailed
from beadmill.processes.spec import AgentTask
from tests.nodes.fakes import FakeVisit, Journal, failed, table
from tests.nodes.planning_replies import CLEAN, GAPS

BRIEFS = Briefs()
BAD = "status: perhaps\n"


def brief() -> Brief:
    values: dict[str, Any] = {"pass_number": 1, "max_passes": 2, "is_final": False, "extra": False}
    parts = [PartText("full_answers", "Q01: staff"), PartText("prd", "an export")]
    return BRIEFS.write("prd_coverage", parts, ticket="DEMO-1", seat="2", shape=COVERAGE, **values)


def task(given: Brief) -> AgentTask:
    budget = timedelta(seconds=100)
    return AgentTask(Seat("scripted"), given, Access.READ, Path("/ws/tree"), budget=budget, idle=budget)


async def asked(rows: Journal, *, retries: int = 1, **more: Any) -> Structured[CoverageReply]:
    while True:
        try:
            return await structured(
                FakeVisit(rows).at("here"),
                "audit",
                shape=COVERAGE,
                task=task,
                brief=brief,
                retries=retries,
                briefs=BRIEFS,
                **more,
            )
        except Parked:
            continue


def journal(first: object, repair: object = CLEAN) -> Journal:
    return Journal(table({"prd_coverage": first, "repair": repair}))


async def test_a_good_reply_is_read_once_and_kept_raw() -> None:
    rows = journal(CLEAN)
    done = await asked(rows)
    assert (done.value.status, done.worked) == ("clean", timedelta(seconds=30))
    kept = rows.last(Reply)
    assert (kept.name, kept.accepted, kept.attempts[0].text) == ("here/audit", True, CLEAN)


async def test_an_invalid_reply_is_repaired_in_the_same_conversation_on_the_same_clock() -> None:
    rows = journal(BAD)
    done = await asked(rows)
    repair = rows.tasks["here/audit/ask-2"]
    assert repair.resume == SessionRef("run-1/node.1/here/audit/ask", "talk-1")
    assert repair.budget == timedelta(seconds=70)
    assert repair.brief.text.startswith("Beadmill task: repair | ticket: DEMO-1 | subject:  | seat: 2 | turn: \n")
    assert (BAD.strip() in repair.brief.text, done.worked) == (True, timedelta(seconds=60))


async def test_an_empty_reply_is_asked_afresh() -> None:
    rows = journal(["", CLEAN])
    await asked(rows)
    assert rows.tasks["here/audit/ask-2"].resume is None
    assert rows.tasks["here/audit/ask-2"].brief == rows.tasks["here/audit/ask"].brief


async def test_a_council_is_always_asked_afresh() -> None:
    rows = journal([BAD, CLEAN])
    await asked(rows, fresh=True)
    assert [task.resume for task in rows.tasks.values()] == [None, None]


async def test_a_reply_without_a_conversation_is_asked_afresh() -> None:
    silent = Replied(session=SessionRef(""), text=BAD)
    rows = journal(CLEAN)
    rows.rows["here/audit/ask"] = silent
    await asked(rows)
    assert rows.tasks["here/audit/ask-2"].resume is None


async def test_a_check_of_the_caller_is_a_refusal_like_any_other() -> None:
    rows = journal(GAPS)
    done = await asked(rows, check=lambda reply: "no gap may be left" if reply.gaps else "")
    assert done.value.status == "clean"
    assert "no gap may be left" in rows.tasks["here/audit/ask-2"].brief.text


async def test_spent_re_asks_block_with_the_error_and_forget_the_exchange() -> None:
    rows = journal(BAD, BAD)
    with pytest.raises(Blocked) as caught:
        await asked(rows)
    assert (caught.value.code, caught.value.forget) == ("AGENT_OUTPUT_INVALID", ("here/audit",))
    assert [one.outcome for one in rows.last(Reply).attempts] == ["rejected", "rejected"]


async def test_no_retries_means_one_ask() -> None:
    rows = journal(BAD)
    with pytest.raises(Blocked):
        await asked(rows, retries=0)
    assert list(rows.tasks) == ["here/audit/ask"]


async def test_a_broken_transport_is_tried_again_only_where_fresh_sessions_are_the_rule() -> None:
    rows = journal([failed(Why.TRANSPORT), CLEAN])
    done = await asked(rows, fresh=True)
    assert [one.failure for one in rows.last(Reply).attempts] == ["transport", ""]
    assert done.interventions[0].category == "retry"
    with pytest.raises(TurnFailed):
        await asked(journal(failed(Why.TRANSPORT)))


async def test_a_native_value_is_preferred_to_the_text() -> None:
    data = {"status": "clean", "gaps": [], "follow_up_questions": []}
    rows = journal(Replied(session=SessionRef(""), text="see above", data=data))
    done = await asked(rows)
    assert done.value == CoverageReply(status="clean")


async def test_the_schema_goes_with_the_task() -> None:
    rows = journal(CLEAN)
    await asked(rows)
    schema = rows.tasks["here/audit/ask"].schema
    assert schema["required"] == ["status", "gaps", "follow_up_questions"]
