from __future__ import annotations

import pytest

from beadmill.artifacts.council import CouncilDrafts, CouncilVotes, Coverage
from beadmill.artifacts.interview import FullAnswers, Interview
from beadmill.artifacts.prd import Prd
from beadmill.briefs import Briefs
from beadmill.domain.machine import Phase
from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from beadmill.nodes._approval import Review, approval
from beadmill.nodes._planning import CouncilConfig
from beadmill.nodes.prd import PrdNode
from beadmill.processes.spec import AgentTask
from tests.nodes.fakes import PERSON, Journal, Waiting, decide, drive, edit, header, seats, table
from tests.nodes.planning_replies import CLEAN, GAP, GAPS, interview, prd, prepared, resolution, votes

NODE = PrdNode(Briefs())
CONTRADICTION = {
    "domain": "prd",
    "passes": [
        {"number": 1, "status": "gaps", "gaps": [GAP], "resolutions": [{"gap": GAP, "action": "left_unresolved"}]},
        {"number": 2, "status": "clean"},
    ],
    "ended": "clean",
}
FILLED = "answers:\n  - id: Q02\n    free_text: All columns, they are few.\n"


def by_seat(task: AgentTask) -> str:
    return prd(f"seat {header(task)['seat']}")


def journal(*, skipped: bool = False, three: bool = True, **replies: object) -> Journal:
    said = {
        "full_answers": FILLED,
        "prd_draft": by_seat,
        "prd_vote": votes("prd", best="(seat 2)"),
        "prd_refine": prd("seat 2", "Save a list") + "changes: []\n",
        "prd_coverage": CLEAN,
        **replies,
    }
    settings = seats("a", "b", "c") if three else seats("a")
    return prepared(Journal(table(said), [decide("approve")], settings), interview(skipped=skipped))


async def test_three_seats_draft_vote_refine_and_a_person_approves_exactly_what_was_shown() -> None:
    rows = journal()
    outcome = await drive(NODE, CouncilConfig(), rows)
    approved = rows.last(Prd)
    assert (outcome.edge, outcome.made[0].sha256) == ("approved", approved.sha256)
    assert approved.epics[0].user_stories[0].title == "Save a list"
    assert approved.source_interview.content_sha256 == interview().sha256
    assert rows.last(CouncilVotes).winner == 1
    assert rows.phases == [
        Phase.DRAFTING_PRD,
        Phase.COUNCIL_VOTING_PRD,
        Phase.REFINING_PRD,
        Phase.VERIFYING_PRD_COVERAGE,
        Phase.WAITING_PRD_APPROVAL,
    ]


async def test_no_session_fills_answers_when_nothing_was_skipped() -> None:
    rows = journal()
    await drive(NODE, CouncilConfig(), rows)
    assert rows.briefs("full_answers") == []
    assert rows.last(FullAnswers).questions[1].answer.free_text == "All"


async def test_only_the_skipped_questions_are_answered_and_laid_over_the_interview() -> None:
    rows = journal(skipped=True)
    await drive(NODE, CouncilConfig(), rows)
    first, second = rows.last(FullAnswers).questions
    assert (first.answer.free_text, first.answer.answered_by) == ("Staff", "user")
    assert (second.answer.free_text, second.answer.answered_by) == ("All columns, they are few.", "ai_skip")


async def test_the_reason_for_a_skip_is_shown_in_the_full_answers_brief_alone() -> None:
    rows = journal(skipped=True)
    await drive(NODE, CouncilConfig(), rows)
    showing = {t.brief.template for t in rows.tasks.values() if "no idea" in t.brief.text}
    assert showing == {"full_answers"}


async def test_full_answers_and_draft_of_a_seat_share_one_clock() -> None:
    rows = journal(skipped=True)
    await drive(NODE, CouncilConfig(), rows)
    budgets = {name: task.budget.total_seconds() for name, task in rows.tasks.items() if "draft/seat-1/" in name}
    assert budgets == {"draft/seat-1/full-answers/ask": 1200, "draft/seat-1/draft/ask": 1170}


async def test_a_seat_that_cannot_fill_the_answers_does_not_draft() -> None:
    def one_fails(task: AgentTask) -> str:
        return "nothing" if header(task)["seat"] == "3" else FILLED

    rows = journal(skipped=True, full_answers=one_fails)
    await drive(NODE, CouncilConfig(), rows)
    outcomes = [draft.outcome for draft in rows.last(CouncilDrafts).drafts]
    assert outcomes == ["completed", "completed", "full_answers_invalid"]
    assert not [name for name in rows.tasks if name.startswith("draft/seat-3/draft")]


async def test_a_gap_is_revised_and_audited_again() -> None:
    revised = prd("seat 2", "Save a list, even an empty one") + resolution("updated")
    rows = journal(prd_coverage=[GAPS, CLEAN], prd_revise=revised)
    await drive(NODE, CouncilConfig(), rows)
    coverage = rows.last(Coverage)
    assert [(one.status, len(one.resolutions)) for one in coverage.passes] == [("gaps", 1), ("clean", 0)]
    assert rows.last(Prd).epics[0].user_stories[0].title == "Save a list, even an empty one"
    assert GAP in rows.briefs("prd_revise")[0]


async def test_the_last_check_is_marked_and_an_extra_one_is_not() -> None:
    revised = prd("seat 2", "Save a list") + resolution("already_covered")
    rows = journal(prd_coverage=[GAPS, GAPS, CLEAN], prd_revise=revised)
    rows.decisions = [decide("fix_gaps"), decide("approve")]
    await drive(NODE, CouncilConfig(passes=2), rows)
    assert [(one.final, one.extra) for one in rows.last(Coverage).passes] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    told = ["This is the last one" in text for text in rows.briefs("prd_coverage")]
    assert told == [False, True, False]


async def test_voters_are_told_that_drafts_rest_on_different_answers() -> None:
    rows = journal(skipped=True)
    await drive(NODE, CouncilConfig(), rows)
    told = "The drafts answered the skipped questions of the interview each in their own way."
    assert [told in text for text in rows.briefs("prd_vote")] == [True] * 3


async def test_a_contradiction_goes_to_the_person_at_once_and_is_never_clean() -> None:
    revised = prd("seat 2", "Save a list") + resolution("left_unresolved")
    rows = journal(prd_coverage=GAPS, prd_revise=revised)
    rows.decisions = []
    rows.settings = rows.settings.overlaid({"gates": {"prd": "auto_when_clean"}})
    with pytest.raises(Waiting):
        await drive(NODE, CouncilConfig(), rows)
    gate = rows.gates["approve-1"]
    assert len(rows.briefs("prd_coverage")) == 1
    assert [one["gap"] for one in gate.detail["unresolved"]] == [GAP]
    assert (gate.choices, gate.auto) == (("fix_gaps", "approve_with_gaps"), None)
    assert gate.detail["asked_because"] == ["1 undecided contradiction"]
    assert gate.form["properties"]["decisions"]["properties"][GAP]["description"] == "See the story."


async def test_what_the_person_decides_goes_word_for_word_into_the_revision_and_the_next_check() -> None:
    left, done = (prd("seat 2", "Save a list") + resolution(action) for action in ("left_unresolved", "updated"))
    rows = journal(prd_coverage=[GAPS, CLEAN], prd_revise=[left, done])
    answer = "An empty list gives\n  a header — nothing else."
    rows.decisions = [decide("fix_gaps", {"decisions": {GAP: answer}}), decide("approve")]
    await drive(NODE, CouncilConfig(), rows)
    told = f"- {GAP}\n  The person decided: {answer}"
    assert [told in brief for brief in rows.briefs("prd_revise")] == [False, True]
    assert [told in brief for brief in rows.briefs("prd_coverage")] == [False, True]
    kept = [(one.gap, one.answer, one.by) for one in rows.last(Coverage).decisions]
    assert kept == [(GAP, answer, "user:ada")]
    assert rows.gates["approve-2"].detail["decided"][0]["answer"] == answer


async def test_a_decided_contradiction_is_not_asked_again_even_when_the_check_names_it_again() -> None:
    left, done = (prd("seat 2", "Save a list") + resolution(action) for action in ("left_unresolved", "updated"))
    rows = journal(prd_coverage=GAPS, prd_revise=[left, done])
    rows.decisions = [decide("fix_gaps", {"decisions": {GAP: "A header."}}), decide("approve_with_gaps")]
    outcome = await drive(NODE, CouncilConfig(), rows)
    detail = rows.gates["approve-2"].detail
    assert (detail["gaps"], detail["unresolved"], outcome.edge) == ([GAP], [], "approved")


async def test_a_revision_may_not_leave_open_what_the_person_decided() -> None:
    left, done = (prd("seat 2", "Save a list") + resolution(action) for action in ("left_unresolved", "updated"))
    rows = journal(prd_coverage=[GAPS, CLEAN], prd_revise=[left, left, done])
    rows.decisions = [decide("fix_gaps", {"decisions": {GAP: "A header."}}), decide("approve")]
    await drive(NODE, CouncilConfig(), rows)
    assert len(rows.briefs("prd_revise")) == 3  # refused once, then asked again
    assert rows.last(Coverage).passes[0].resolutions[0].action == "updated"


async def test_a_fix_without_a_decision_and_without_a_gap_asks_again_and_spends_nothing() -> None:
    coverage = Coverage.model_validate(CONTRADICTION)
    reviews: list[int] = []

    async def fix(seen: Review[Prd], turn: int, _decisions: object) -> Review[Prd]:
        reviews.append(turn)
        return seen

    class Asks:
        spec = NODE.spec

        async def visit(self, v: Visit, _cfg: object, /) -> Outcome:
            document = await v.get(Interview)
            review = Review(document, await v.put(document, by=PERSON), coverage)
            return await approval(v, review, title="T", policy="required", fix=fix)  # type: ignore[arg-type]

    rows = prepared(Journal(table({}), [decide("fix_gaps"), decide("approve_with_gaps")]), interview())
    outcome = await drive(Asks(), None, rows)
    assert (outcome.edge, reviews, list(rows.gates)) == ("approved", [], ["approve-1", "approve-2"])


async def test_fix_gaps_revises_what_the_person_saw_and_asks_again() -> None:
    def renamed(document: Prd) -> Prd:
        return document.model_copy(update={"risks": ("a person wrote this",)})

    revised = prd("seat 2", "Save a list") + resolution("already_covered")
    rows = journal(prd_coverage=[GAPS, GAPS, CLEAN], prd_revise=revised)
    rows.decisions = [edit(renamed, "fix_gaps"), decide("approve")]
    outcome = await drive(NODE, CouncilConfig(passes=2), rows)
    assert "a person wrote this" in rows.briefs("prd_revise")[1]
    assert [one.extra for one in rows.last(Coverage).passes] == [False, False, True]
    assert outcome.made == rows.gates["approve-2"].shows
    assert rows.gates["approve-2"].choices == ("approve",)


async def test_a_second_extra_fix_is_told_what_the_first_one_did() -> None:
    revised = prd("seat 2", "Save a list") + resolution("already_covered")
    rows = journal(prd_coverage=GAPS, prd_revise=revised)
    rows.decisions = [decide("fix_gaps"), decide("fix_gaps"), decide("approve_with_gaps")]
    await drive(NODE, CouncilConfig(passes=1), rows)
    first, second = rows.briefs("prd_revise")
    assert "<extra_fixes>" not in first
    assert f"- already_covered: {GAP}: See the story." in second


async def test_the_edited_row_is_what_is_approved() -> None:
    rows = journal()
    rows.decisions = [edit(lambda doc: doc.model_copy(update={"risks": ("mine",)}))]
    outcome = await drive(NODE, CouncilConfig(), rows)
    assert outcome.made[0].sha256 == rows.last(Prd).sha256
    assert rows.last(Prd).risks == ("mine",)


async def test_a_clean_document_is_approved_by_policy() -> None:
    rows = journal()
    rows.decisions = []
    rows.settings = rows.settings.overlaid({"gates": {"prd": "auto_when_clean"}})
    outcome = await drive(NODE, CouncilConfig(), rows)
    assert (outcome.edge, rows.gates["approve-1"].auto) == ("approved", "approve")
    assert rows.gates["approve-1"].why.startswith("auto_when_clean: no gaps, no undecided contradictions, no warnings")
    assert rows.gates["approve-1"].in_budget


async def test_a_policy_of_off_says_what_it_passed_over() -> None:
    rows = journal(prd_coverage=GAPS, prd_revise=prd("seat 2", "Save a list") + resolution("left_unresolved"))
    rows.decisions = []
    rows.settings = rows.settings.overlaid({"gates": {"prd": "off"}})
    await drive(NODE, CouncilConfig(), rows)
    gate = rows.gates["approve-1"]
    assert (gate.auto, gate.why) == ("approve_with_gaps", "off: 1 undecided contradiction")


async def test_solo_planning_neither_votes_nor_refines() -> None:
    rows = journal(three=False)
    await drive(NODE, CouncilConfig(), rows)
    assert [task.brief.template for task in rows.tasks.values()] == ["prd_draft", "prd_coverage"]
    assert rows.all(CouncilVotes) == []
