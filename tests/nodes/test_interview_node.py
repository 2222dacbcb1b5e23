from __future__ import annotations

from collections.abc import Callable

import pytest

from beadmill.artifacts.council import CouncilVotes, Coverage
from beadmill.artifacts.interview import Answer, Interview, InterviewSession
from beadmill.briefs import Briefs
from beadmill.domain.ended import Ended
from beadmill.domain.machine import Phase
from beadmill.domain.values import Access, GateKind
from beadmill.nodes._planning import CouncilConfig
from beadmill.nodes.interview import InterviewNode
from beadmill.processes.spec import AgentTask
from tests.nodes.fakes import Decide, Journal, Waiting, decide, drive, edit, failed, header, seats, table
from tests.nodes.planning_replies import (
    ASK_MORE,
    BATCH,
    CLEAN,
    COMPLETE,
    QUESTIONS,
    REFINED_QUESTIONS,
    SECOND,
    prepared,
    votes,
)

NODE = InterviewNode(Briefs())
CFG = CouncilConfig()
STAFF = decide("answer", {"answers": {"Q01": {"selected_option_ids": ["staff"]}}})
COLUMNS = decide("answer", {"answers": {"Q02": {"free_text": "All"}, "FU1": {"skipped": True, "skip_reason": "Later"}}})
NOTHING = decide("answer", {"answers": {"QFF1": {"free_text": "No"}}})
APPROVE = decide("approve")


def journal(*decisions: Decide, turns: object = None, **replies: object) -> Journal:
    said = {
        "interview_draft": QUESTIONS,
        "interview_vote": votes("interview"),
        "interview_refine": REFINED_QUESTIONS,
        "interview_turn": turns or [BATCH, SECOND, COMPLETE],
        "interview_coverage": CLEAN,
        **replies,
    }
    return prepared(Journal(table(said), list(decisions), seats("a", "b", "c")))


async def test_an_interview_from_the_councils_questions_to_the_approved_document() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    outcome = await drive(NODE, CFG, rows)
    done = rows.last(Interview)
    assert outcome.made[0].sha256 == done.sha256
    assert [(q.id, q.source, q.answer.skipped) for q in done.questions] == [
        ("Q01", "compiled", False),
        ("Q02", "compiled", False),
        ("FU1", "prompt_follow_up", True),
        ("QFF1", "final_free_form", False),
    ]
    assert done.summary.final_free_form_answer == "No"
    assert rows.phases[-3:] == [
        Phase.WAITING_INTERVIEW_ANSWERS,
        Phase.VERIFYING_INTERVIEW_COVERAGE,
        Phase.WAITING_INTERVIEW_APPROVAL,
    ]


async def test_one_conversation_holds_the_interview_and_hears_only_what_is_new() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    first, second, third = [t for t in rows.tasks.values() if t.brief.template == "interview_turn"]
    assert (first.resume, second.resume is not None, third.resume is not None) == (None, True, True)
    assert "Q01: Who exports lists?\n  chosen: Staff only" in second.brief.text
    assert "chosen: Staff only" not in third.brief.text
    assert header(third)["turn"] == "3"


async def test_a_batch_is_a_gate_with_a_form_for_exactly_its_questions() -> None:
    rows = journal()
    with pytest.raises(Waiting):
        await drive(NODE, CFG, rows)
    gate = rows.gates["batch-1"]
    session = rows.last(InterviewSession)
    assert (gate.kind, gate.choices) == (GateKind.INTERVIEW, ("answer", "skip_all"))
    assert gate.shows[0].sha256 == session.sha256
    assert list(gate.form["properties"]["answers"]["properties"]) == ["Q01"]
    assert gate.detail["commentary"] == "First the people."


async def test_skipping_everything_goes_straight_to_the_approval() -> None:
    payload = {"answers": {"Q01": {"selected_option_ids": ["staff"]}}, "reason": "no time"}
    rows = journal(decide("skip_all", payload), APPROVE)
    await drive(NODE, CFG, rows)
    done = rows.last(Interview)
    answers = {q.id: (q.answer.skipped, q.answer.answered_by, q.answer.skip_reason) for q in done.questions}
    assert answers == {"Q01": (False, "user", None), "Q02": (True, "user_skip", "no time")}
    assert (rows.last(Coverage).ended, rows.briefs("interview_coverage")) == ("skipped", [])
    assert [(one.status, one.synthetic) for one in rows.last(Coverage).passes] == [("clean", True)]


async def test_an_edit_of_an_earlier_answer_counts_and_the_interviewer_is_told() -> None:
    changed = {"answers": {"Q02": {"free_text": "All"}}, "edits": {"Q01": {"selected_option_ids": ["customers"]}}}
    rows = journal(STAFF, decide("answer", changed), NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    third = rows.briefs("interview_turn")[2]
    assert "they changed earlier answers too" in third
    assert "chosen: Customers" in third
    assert rows.last(Interview).questions[0].answer.selected_option_ids == ("customers",)


async def test_a_lost_conversation_is_taken_up_from_the_session_document() -> None:
    def turns(task: AgentTask) -> str | Ended:
        number = header(task)["turn"]
        if number == "2" and task.resume is not None:
            return failed()
        return {"1": BATCH, "2": SECOND}.get(number, COMPLETE)

    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE, turns=turns)
    await drive(NODE, CFG, rows)
    anew = next(task for name, task in rows.tasks.items() if "turn-2-anew" in name)
    assert anew.resume is None
    said = "Answered:\nQ01: Who exports lists?\n  chosen: Staff only\n\nSkipped by the person:\nnone\n\nNot asked yet:\nQ02"
    assert f"<session>\n{said} (Structure): Which columns?\n</session>" in anew.brief.text
    assert [q.id for q in rows.last(Interview).questions] == ["Q01", "Q02", "FU1", "QFF1"]


async def test_gaps_become_follow_up_questions_and_the_audit_runs_again() -> None:
    more = decide("answer", {"answers": {"CFU1": {"free_text": "An empty file"}}})
    rows = journal(STAFF, COLUMNS, NOTHING, more, APPROVE, interview_coverage=[ASK_MORE, CLEAN])
    await drive(NODE, CFG, rows)
    last = rows.last(Interview).questions[-1]
    assert (last.id, last.source, last.follow_up_round, last.answer.free_text) == (
        "CFU1",
        "coverage_follow_up",
        1,
        "An empty file",
    )
    assert [(one.status) for one in rows.last(Coverage).passes] == ["gaps", "clean"]
    assert rows.gates["batch-4"].detail["source"] == "coverage"


async def test_gaps_of_the_last_pass_are_shown_at_the_approval() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, interview_coverage=ASK_MORE)
    with pytest.raises(Waiting):
        await drive(NODE, CouncilConfig(passes=1), rows)
    detail = rows.gates["approve-1"].detail
    assert detail["gaps"] == ["Nothing says what an empty list gives."]
    assert detail["ended"] == "coverage_pass_limit_reached"
    assert rows.gates["approve-1"].choices == ("approve_with_gaps",)


async def test_without_a_follow_up_budget_gaps_go_to_the_person() -> None:
    rows = journal(STAFF, NOTHING, APPROVE, turns=[BATCH, COMPLETE], interview_coverage=ASK_MORE)
    rows.settings = rows.settings.overlaid({"council": {"follow_up_percent": 0}})
    await drive(NODE, CFG, rows)
    assert rows.last(Coverage).ended == "follow_up_budget_exhausted"


async def test_the_edited_interview_is_what_is_approved() -> None:
    def mine(document: Interview) -> Interview:
        first = document.questions[0].model_copy(update={"answer": Answer(free_text="Everybody")})
        return document.model_copy(update={"questions": (first, *document.questions[1:])})

    rows = journal(STAFF, COLUMNS, NOTHING, edit(mine))
    outcome = await drive(NODE, CFG, rows)
    assert outcome.made[0].sha256 == rows.last(Interview).sha256
    assert rows.last(Interview).questions[0].answer.free_text == "Everybody"


async def test_a_limit_of_no_questions_asks_nobody_anything() -> None:
    rows = journal(APPROVE)
    rows.settings = rows.settings.overlaid({"council": {"interview_questions": 0}})
    outcome = await drive(NODE, CFG, rows)
    assert (outcome.edge, rows.tasks, rows.last(Interview).questions) == ("approved", {}, ())


async def test_voters_have_no_tools_and_drafters_may_not_write() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    access: Callable[[str], set[Access]] = lambda t: {k.access for k in rows.tasks.values() if k.brief.template == t}  # noqa: E731
    assert (access("interview_vote"), access("interview_draft")) == ({Access.NONE}, {Access.READ})
    assert not any(task.questions for task in rows.tasks.values())
    assert len(rows.last(CouncilVotes).ballots) == 3


async def test_an_sop_lowers_the_limit_of_questions_and_says_the_policy() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING)
    outcome = await drive(NODE, CouncilConfig(questions=2, policy="auto_when_clean"), rows)

    assert (rows.last(InterviewSession).max_questions, outcome.edge) == (2, "approved")
    assert rows.gates["approve-1"].auto == "approve"


async def test_an_edit_alone_puts_the_same_batch_again_and_asks_no_model() -> None:
    change = decide("edit", {"edits": {"Q01": {"selected_option_ids": ["customers"]}}})
    rows = journal(STAFF, change, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    assert list(rows.gates) == ["batch-1", "batch-2", "batch-2-edited-1", "batch-3", "approve-1"]
    assert (rows.gates["batch-1"].choices, rows.gates["batch-2"].choices[2:]) == (("answer", "skip_all"), ("edit",))
    assert len(rows.briefs("interview_turn")) == 3
    assert "they changed earlier answers too" in rows.briefs("interview_turn")[2]
    assert rows.last(Interview).questions[0].answer.selected_option_ids == ("customers",)


async def test_skipping_the_rest_of_the_follow_ups_ends_the_checks_too() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, decide("skip_all"), APPROVE, interview_coverage=[ASK_MORE, CLEAN])
    await drive(NODE, CFG, rows)
    passes = rows.last(Coverage).passes
    assert [(one.number, one.status, one.synthetic) for one in passes] == [(1, "gaps", False), (2, "clean", True)]
    assert rows.gates["approve-1"].detail["gaps"] == []


async def test_the_free_form_question_is_the_last_of_the_live_session() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    finals = [(name, gate.detail["is_final_free_form"]) for name, gate in rows.gates.items() if "batch" in name]
    assert finals == [("batch-1", False), ("batch-2", False), ("batch-3", True)]


async def test_the_session_keeps_when_each_batch_was_sent_and_when_a_question_was_skipped() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    session, at = rows.last(InterviewSession), "2026-01-02T12:00:00+00:00"
    assert [(b.number, b.submitted_at) for b in session.batches] == [(1, at), (2, at), (3, at)]
    kept = {name: (a.batch, a.skipped_at) for name, a in session.answers.items()}
    assert kept == {"Q01": (1, ""), "Q02": (2, ""), "FU1": (2, at), "QFF1": (3, "")}
    assert session.completed_at == at


SUMMED_UP = (
    CLEAN
    + """
summary:
  goals:
    - {text: Staff export lists., answers: [Q01]}
    - {text: Everybody is happy., answers: []}
  constraints:
    - {text: All columns., answers: [Q02, FU1]}
  non_goals: []
"""
)


async def test_the_summary_says_what_answers_bear_out_and_nothing_else() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE, interview_coverage=SUMMED_UP)
    await drive(NODE, CFG, rows)
    summary = rows.last(Interview).summary
    assert (summary.goals, summary.constraints, summary.non_goals) == (("Staff export lists.",), (), ())
    assert summary.final_free_form_answer == "No"


async def test_without_a_summary_of_the_audit_its_lists_stay_empty() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    summary = rows.last(Interview).summary
    assert (summary.goals, summary.constraints, summary.non_goals) == ((), (), ())


async def test_the_winner_interviews() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE, interview_vote=votes("interview", best="Who exports"))
    await drive(NODE, CFG, rows)
    assert {str(t.seat) for t in rows.tasks.values() if t.brief.template == "interview_turn"} == {
        rows.last(Interview).generated_by.winner_model
    }


async def test_no_step_of_the_interview_may_ask_by_the_agents_own_channel() -> None:
    rows = journal(STAFF, COLUMNS, NOTHING, APPROVE)
    await drive(NODE, CFG, rows)
    assert {task.questions for task in rows.tasks.values()} == {False}
