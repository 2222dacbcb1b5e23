from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.artifacts.council import CouncilDrafts, CouncilRefined, CouncilVotes, Inspiration
from beadmill.artifacts.interview import Questions
from beadmill.artifacts.reading.shapes import QUESTIONS as SHAPE
from beadmill.briefs import Briefs, PartText
from beadmill.council import INTERVIEW, Council, Desk, Draft, Drafts, Table
from beadmill.domain.council import Tally, order
from beadmill.domain.ended import Ended, Replied, SessionRef
from beadmill.engine.port import Visit
from beadmill.errors import Blocked, Parked, TurnFailed
from beadmill.processes.spec import AgentTask
from beadmill.settings import RunSettings
from tests.nodes.fakes import FakeVisit, Journal, failed, header, lapsed, seats, table
from tests.nodes.planning_replies import QUESTIONS, REFINED_QUESTIONS, votes

LIMIT: dict[str, object] = {"max_questions": 5}


def council(v: Visit) -> Council[Questions]:
    return Council(v, INTERVIEW, Table.of(v, Briefs(), Path("/ws/tree")))


async def drafted(desk: Desk) -> Draft[Questions]:
    done = await desk.write("draft", "interview_draft", SHAPE, list, values=LIMIT, context=LIMIT)
    return Draft(desk.position, done.value)


class Round:
    """A node that drafts, votes and refines."""

    drafts: Drafts[Questions]
    tally: Tally
    refined: Questions

    async def visit(self, v: Visit) -> None:
        sitting = council(v)
        self.drafts = await sitting.draft(drafted)
        self.tally = await sitting.vote(self.drafts, lambda: [PartText("ticket_details", "Export")])
        self.refined = await sitting.refine(self.drafts, self.tally, list, context=LIMIT, values=LIMIT)


async def through(rows: Journal) -> Round:
    played = Round()
    while True:
        try:
            await played.visit(FakeVisit(rows))
        except Parked:
            continue
        return played


def of_seat(task: AgentTask) -> str:
    return QUESTIONS.replace("Who exports lists?", f"Who exports lists for seat {header(task)['seat']}?")


def journal(settings: RunSettings | None = None, **replies: object) -> Journal:
    said = {
        "interview_draft": of_seat,
        "interview_vote": votes("interview", best="seat 3?"),
        "interview_refine": REFINED_QUESTIONS,
        **replies,
    }
    return Journal(table(said), [], settings or seats("a", "b", "c"))


async def test_every_voter_sees_the_others_drafts_in_the_order_its_seed_draws() -> None:
    rows = journal()
    await through(rows)
    ballots = rows.last(CouncilVotes).ballots
    assert [sorted(ballot.order) for ballot in ballots] == [[1, 2], [0, 2], [0, 1]]
    assert [order(b.seed, sorted(b.order)) for b in ballots] == [b.order for b in ballots]
    assert len({ballot.seed for ballot in ballots}) == 3


async def test_labels_are_mapped_back_to_the_seats_that_wrote_the_drafts() -> None:
    rows = journal()
    played = await through(rows)
    assert played.tally.winner == 2
    scores = {(b.voter, s.draft): s.total for b in rows.last(CouncilVotes).ballots for s in b.scores}
    assert scores == {(0, 1): 50, (0, 2): 75, (1, 0): 50, (1, 2): 75, (2, 0): 50, (2, 1): 50}


async def test_a_vote_brief_names_no_author() -> None:
    rows = journal(seats("secret-one", "secret-two", "secret-three"))
    await through(rows)
    shown = "".join(rows.briefs("interview_vote") + rows.briefs("interview_refine"))
    assert "secret" not in shown
    assert rows.briefs("interview_vote")[0].count("\n### Draft ") == 2


async def test_a_draft_whose_author_was_answered_says_so_without_a_name() -> None:
    def second_asks(task: AgentTask) -> str | Ended:
        asks = header(task)["seat"] == "2"
        said = Replied(session=SessionRef(""), worked=timedelta(30), text=of_seat(task), answered=1)
        return said if asks else of_seat(task)

    rows = journal(interview_draft=second_asks)
    await through(rows)
    assert [draft.answered for draft in rows.last(CouncilDrafts).drafts] == [0, 1, 0]
    said = [text.count("Do not mark it down merely for differing") for text in rows.briefs("interview_vote")]
    assert said == [1, 0, 1]
    (refining,) = rows.briefs("interview_refine")
    assert refining.count("An alternative. While this draft was written, a person answered a question") == 1


async def test_with_two_drafts_each_voter_scores_both() -> None:
    rows = journal(seats("a", "b"))
    await through(rows)
    assert [sorted(ballot.order) for ballot in rows.last(CouncilVotes).ballots] == [[0, 1], [0, 1]]


async def test_the_refiner_sees_its_own_draft_first_and_its_changes_are_checked() -> None:
    rows = journal()
    await through(rows)
    text = rows.briefs("interview_refine")[0]
    first = text.split("### Draft 1")[1].split("### Draft 2")[0]
    assert "This is your own draft, the winner." in first
    assert "for seat 3?" in first
    record = rows.last(CouncilRefined)
    assert [(c.id, c.attribution) for c in record.changes] == [("Q01", "synthesized_unattributed")]


async def test_a_seat_that_fails_is_an_outcome_and_the_council_goes_on() -> None:
    def two_fail(task: AgentTask) -> str | Ended:
        ends: dict[str, Ended] = {"2": lapsed(), "3": failed()}
        return ends.get(header(task)["seat"]) or of_seat(task)

    rows = journal(seats("a", "b", "c", "d"), interview_draft=two_fail)
    await through(rows)
    outcomes = [draft.outcome for draft in rows.last(CouncilDrafts).drafts]
    assert outcomes == ["completed", "timed_out", "failed", "completed"]
    assert len(rows.last(CouncilVotes).ballots) == 4


async def test_a_missed_quorum_names_every_seat_and_forgets_the_failed_ones() -> None:
    def only_the_first(task: AgentTask) -> str | Ended:
        return of_seat(task) if header(task)["seat"] == "1" else failed()

    rows = journal(interview_draft=only_the_first)
    with pytest.raises(Blocked) as caught:
        await through(rows)
    blocked = caught.value
    assert (blocked.code, blocked.forget) == ("COUNCIL_QUORUM", ("draft/seat-2", "draft/seat-3", "quorum/draft"))
    assert [(s["seat"], s["outcome"]) for s in blocked.details["seats"]] == [(1, "failed"), (2, "failed")]


async def test_a_retry_after_a_missed_quorum_asks_only_the_seats_that_failed() -> None:
    broken = True

    def at_first(task: AgentTask) -> str | Ended:
        return failed() if broken and header(task)["seat"] != "1" else of_seat(task)

    rows = journal(interview_draft=at_first)
    with pytest.raises(Blocked) as caught:
        await through(rows)
    broken = False
    rows.tasks.clear()
    rows.forget(*caught.value.forget)
    await through(rows)
    again = [name for name in rows.tasks if name.startswith("draft/")]
    assert again == ["draft/seat-2/draft/ask", "draft/seat-3/draft/ask"]


async def test_a_missed_quorum_says_what_each_seat_gave_and_what_a_retry_does() -> None:
    def only_the_first(task: AgentTask) -> str | Ended:
        ends: dict[str, Ended | str] = {"2": lapsed(), "3": "No."}
        return ends.get(header(task)["seat"]) or of_seat(task)

    rows = journal(interview_draft=only_the_first)
    with pytest.raises(Blocked) as caught:
        await through(rows)
    said = caught.value.message
    assert said.startswith("1 of 3 seats gave a usable draft, 2 are needed. seat 2 scripted/b: timed_out: ")
    assert "; seat 3 scripted/c: invalid_output: no usable questions after 2 replies: " in said
    assert caught.value.next == "retry asks only the seats that failed"


async def test_votes_of_nothing_but_zeros_elect_a_draft_that_exists() -> None:
    def zeros(task: AgentTask) -> str:
        return str(votes("interview")(task)).replace(": 10", ": 0").replace(": 50", ": 0")  # type: ignore[operator]

    rows = journal(interview_vote=zeros, interview_draft=without_the_first)
    played = await through(rows)
    record = rows.last(CouncilVotes)
    assert (record.means, record.winner, record.tie_break) == ({1: 0, 2: 0}, 1, "earliest seat")
    assert played.refined.questions[0].question == "Who exports lists?"


def without_the_first(task: AgentTask) -> str | Ended:
    return failed() if header(task)["seat"] == "1" else of_seat(task)


async def test_an_empty_refinement_is_no_refinement() -> None:
    rows = journal(interview_refine=["", "", ""])
    with pytest.raises(Blocked) as caught:
        await through(rows)
    assert (caught.value.code, caught.value.forget) == ("AGENT_OUTPUT_INVALID", ("refine",))
    assert rows.all(CouncilRefined) == []


async def test_the_idea_of_another_draft_is_booked_to_its_seat() -> None:
    def takes_over(task: AgentTask) -> str:
        other = next(n for n in (2, 3) if f"### Draft {n}" in task.brief.text)
        taken = f"inspiration: {{draft: {other}, item: Q02}}"
        changed = QUESTIONS.replace("Which columns?", "Which columns and in which order?")
        shown = changed.replace("Who exports lists?", "Who exports lists for seat 3?")
        change = f"{{type: modified, item_type: question, id: Q02, before: a, after: b, {taken}}}"
        return f"{shown}changes:\n  - {change}\n"

    rows = journal(interview_refine=takes_over)
    await through(rows)
    (change,) = rows.last(CouncilRefined).changes
    assert (change.id, change.attribution, change.inspiration) == ("Q02", "inspired", Inspiration(draft=0, item="Q02"))


async def test_votes_have_a_quorum_of_their_own() -> None:
    rows = journal(interview_vote=failed())
    with pytest.raises(Blocked) as caught:
        await through(rows)
    assert caught.value.forget == ("vote/seat-1", "vote/seat-2", "vote/seat-3", "quorum/vote")


async def test_a_seat_alone_fails_with_its_own_end_so_that_it_can_be_continued() -> None:
    rows = journal(seats("a"), interview_draft=failed())
    with pytest.raises(TurnFailed) as caught:
        await through(rows)
    assert caught.value.end.why == "auth"


async def test_one_completed_draft_needs_no_vote_when_the_quorum_is_one() -> None:
    def one(task: AgentTask) -> str | Ended:
        return of_seat(task) if header(task)["seat"] == "2" else failed()

    rows = journal(seats("a", "b", quorum=1), interview_draft=one)
    played = await through(rows)
    assert (played.tally.winner, rows.all(CouncilVotes), played.refined) == (1, [], played.drafts.of(1).document)


async def test_the_implementer_sits_first_and_once() -> None:
    settings = seats("a", "b", "b").overlaid({"implementer": "scripted/b"})
    table_ = Table.of(FakeVisit(journal(settings)), Briefs(), Path("/ws/tree"))
    assert [seat.model for seat in table_.seats] == ["b", "a", "b"]


async def test_a_run_without_seats_says_what_to_do() -> None:
    with pytest.raises(Blocked) as caught:
        Table.of(FakeVisit(journal(RunSettings())), Briefs(), Path("/ws/tree"))
    assert (caught.value.code, bool(caught.value.next)) == ("NO_SEATS", True)


async def test_every_seat_gets_the_whole_deadline() -> None:
    rows = journal(seats("a", "b", "c", deadline_s=90))
    await through(rows)
    assert {task.budget for task in rows.tasks.values()} == {timedelta(seconds=90)}
