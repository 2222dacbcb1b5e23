"""Transition tables, and the ticket's word and column."""

from __future__ import annotations

from itertools import product

import pytest

from beadmill.domain.machine import (
    ATTEMPT,
    FIRST_PHASE,
    RUN,
    VISIT,
    AttemptState,
    Hold,
    Phase,
    RunState,
    TicketState,
    VisitState,
    check_attempt,
    check_run,
    check_visit,
    column,
    first_phase,
    sources,
    ticket_status,
)
from beadmill.errors import Conflict

ACTIVE = TicketState.ACTIVE
READY, RUNNING, PARKED = VisitState.READY, VisitState.RUNNING, VisitState.PARKED
View = tuple[VisitState, Phase | None, bool, bool, str | None]


def view(state: VisitState, phase: Phase | None, *, blocked: bool = False, waits: bool = False, wake: str = "") -> View:
    return state, phase, blocked, waits, wake or None


def word(*visits: View, hold: Hold = Hold.NONE, run: RunState | None = RunState.ACTIVE) -> Phase:
    return ticket_status(ACTIVE, run, hold, visits)


@pytest.mark.parametrize(("old", "new"), list(product(VisitState, VisitState)))
def test_a_visit_moves_only_as_its_table_says(old: VisitState, new: VisitState) -> None:
    if new in VISIT[old]:
        check_visit(old, new)
        return
    with pytest.raises(Conflict) as caught:
        check_visit(old, new)
    assert caught.value.message == f"the visit is {old}: it cannot become {new}"
    assert caught.value.code == "ILLEGAL_TRANSITION"


def test_an_ended_run_can_only_be_superseded() -> None:
    check_run(RunState.COMPLETED, RunState.SUPERSEDED)
    with pytest.raises(Conflict, match="the run is completed: it cannot become active"):
        check_run(RunState.COMPLETED, RunState.ACTIVE)


def test_a_finished_attempt_stays_as_it_is() -> None:
    check_attempt(AttemptState.OPEN, AttemptState.DONE)
    with pytest.raises(Conflict, match="the attempt is done: it cannot become open"):
        check_attempt(AttemptState.DONE, AttemptState.OPEN)


def test_every_state_has_a_row_in_its_table() -> None:
    assert (set(RUN), set(VISIT), set(ATTEMPT)) == (set(RunState), set(VisitState), set(AttemptState))


def test_sources_are_what_may_become_a_state() -> None:
    assert sources(VISIT, VisitState.READY) == {RUNNING, PARKED}
    assert sources(VISIT, VisitState.KEPT) == frozenset()


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (TicketState.DRAFT, Phase.DRAFT),
        (TicketState.COMPLETED, Phase.COMPLETED),
        (TicketState.CANCELED, Phase.CANCELED),
    ],
)
def test_a_ticket_that_is_not_active_shows_its_state(state: TicketState, expected: Phase) -> None:
    assert ticket_status(state, None, Hold.NONE, [view(RUNNING, Phase.CODING)]) is expected


def test_the_word_goes_by_the_fixed_priority() -> None:
    ranked = [
        view(PARKED, Phase.WAITING_PRD_APPROVAL, waits=True),
        view(RUNNING, Phase.CODING),
        view(PARKED, Phase.DRAFTING_PRD, wake="2030-01-01T00:00:00Z"),
        view(READY, Phase.DRAFTING_BEADS),
    ]
    while ranked:
        assert word(*reversed(ranked)) is ranked[0][1]
        ranked.pop(0)


def test_a_blocked_visit_wins_over_everything() -> None:
    visits = view(PARKED, Phase.WAITING_PRD_APPROVAL, waits=True), view(PARKED, Phase.CODING, blocked=True)
    assert word(*visits) is Phase.BLOCKED_ERROR


def test_a_visit_parked_without_a_time_works_in_its_sessions() -> None:
    later = view(PARKED, Phase.DRAFTING_PRD, wake="2030-01-01T00:00:00Z")
    assert word(later, view(PARKED, Phase.CODING)) is Phase.CODING


def test_a_pause_changes_no_word_and_a_spent_budget_does() -> None:
    assert word(view(READY, Phase.CODING), hold=Hold.PAUSED) is Phase.CODING
    assert word(view(READY, Phase.CODING), hold=Hold.BUDGET) is Phase.BLOCKED_ERROR


def test_closed_visits_say_nothing() -> None:
    assert (
        word(view(VisitState.SUPERSEDED, Phase.CODING, blocked=True), view(READY, Phase.DRAFTING_PRD))
        is Phase.DRAFTING_PRD
    )


def test_a_visit_without_a_phase_borrows_one() -> None:
    assert word(view(RUNNING, None), view(READY, Phase.CODING)) is Phase.CODING
    assert word(view(RUNNING, None)) is Phase.SCANNING_RELEVANT_FILES


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (None, Phase.SCANNING_RELEVANT_FILES),
        (RunState.COMPLETED, Phase.CLEANING_ENV),
        (RunState.CLOSED, Phase.CLEANING_ENV),
        (RunState.ACTIVE, Phase.BLOCKED_ERROR),
    ],
)
def test_an_active_ticket_without_open_visits_shows_where_its_run_is(run: RunState | None, expected: Phase) -> None:
    assert word(run=run) is expected


def test_there_are_thirty_four_words_and_each_has_a_column() -> None:
    columns = [column(phase) for phase in Phase]
    assert {name: columns.count(name) for name in set(columns)} == {
        "todo": 1,
        "needs_input": 8,
        "in_progress": 23,
        "done": 2,
    }


def test_an_open_question_moves_a_working_ticket_only() -> None:
    asked = [column(phase, asked=True) for phase in (Phase.CODING, Phase.DRAFT, Phase.COMPLETED)]
    assert asked == ["needs_input", "todo", "done"]


def test_a_kind_of_its_own_begins_as_work() -> None:
    assert first_phase("prd") is Phase.DRAFTING_PRD
    assert first_phase("script") is Phase.CODING
    assert len(set(FIRST_PHASE.values())) == len(FIRST_PHASE)
