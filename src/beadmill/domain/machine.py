"""Transition tables of run, visit and attempt; the ticket's 34 status words as a projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from beadmill.errors import Conflict


class TicketState(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELED = "canceled"


class RunState(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    CLOSED = "closed"  # ended without a merge, by decision
    CANCELED = "canceled"
    SUPERSEDED = "superseded"  # a rerun took over


class Hold(StrEnum):
    NONE = "none"
    PAUSED = "paused"
    BUDGET = "budget"


class VisitState(StrEnum):
    READY = "ready"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    SUPERSEDED = "superseded"
    CANCELED = "canceled"
    KEPT = "kept"  # copied by a rerun: counts as done

    @property
    def open(self) -> bool:
        return self in (VisitState.READY, VisitState.RUNNING, VisitState.PARKED)

    @property
    def counts(self) -> bool:
        """Part of the run's living history."""
        return self in (VisitState.DONE, VisitState.KEPT)


class AttemptState(StrEnum):
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    REPLACED = "replaced"  # the bead was edited while it ran


RUN: dict[RunState, frozenset[RunState]] = {
    RunState.ACTIVE: frozenset({RunState.COMPLETED, RunState.CLOSED, RunState.CANCELED, RunState.SUPERSEDED}),
    RunState.COMPLETED: frozenset({RunState.SUPERSEDED}),
    RunState.CLOSED: frozenset({RunState.SUPERSEDED}),
    RunState.CANCELED: frozenset({RunState.SUPERSEDED}),
    RunState.SUPERSEDED: frozenset(),
}
VISIT: dict[VisitState, frozenset[VisitState]] = {
    VisitState.READY: frozenset({VisitState.RUNNING, VisitState.SUPERSEDED, VisitState.CANCELED}),
    VisitState.RUNNING: frozenset(
        {VisitState.READY, VisitState.PARKED, VisitState.DONE, VisitState.SUPERSEDED, VisitState.CANCELED}
    ),
    VisitState.PARKED: frozenset({VisitState.READY, VisitState.SUPERSEDED, VisitState.CANCELED}),
    VisitState.DONE: frozenset({VisitState.SUPERSEDED}),
    VisitState.KEPT: frozenset({VisitState.SUPERSEDED}),
    VisitState.SUPERSEDED: frozenset(),
    VisitState.CANCELED: frozenset(),
}
ATTEMPT: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.OPEN: frozenset({AttemptState.DONE, AttemptState.FAILED, AttemptState.REPLACED}),
    AttemptState.DONE: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.REPLACED: frozenset(),
}

S = TypeVar("S", bound=StrEnum)


def check_run(old: RunState, new: RunState) -> None:
    """Raises Conflict (ILLEGAL_TRANSITION), as do its two siblings."""
    _check("run", RUN, old, new)


def check_visit(old: VisitState, new: VisitState) -> None:
    _check("visit", VISIT, old, new)


def check_attempt(old: AttemptState, new: AttemptState) -> None:
    _check("attempt", ATTEMPT, old, new)


def sources(table: Mapping[S, frozenset[S]], new: S) -> frozenset[S]:
    """The states that may become ``new``: the journal's ``UPDATE … WHERE state IN``."""
    return frozenset(old for old, may in table.items() if new in may)


def _check(what: str, table: Mapping[S, frozenset[S]], old: S, new: S) -> None:
    if new not in table[old]:
        raise Conflict(
            f"the {what} is {old}: it cannot become {new}", code="ILLEGAL_TRANSITION", kept="Nothing was changed."
        )


class Phase(StrEnum):
    """The 34 ticket status words (reference looptroop-lifecycle §1.1), lower snake case."""

    DRAFT = "draft"
    SCANNING_RELEVANT_FILES = "scanning_relevant_files"
    COUNCIL_DELIBERATING = "council_deliberating"
    COUNCIL_VOTING_INTERVIEW = "council_voting_interview"
    COMPILING_INTERVIEW = "compiling_interview"
    WAITING_INTERVIEW_ANSWERS = "waiting_interview_answers"
    VERIFYING_INTERVIEW_COVERAGE = "verifying_interview_coverage"
    WAITING_INTERVIEW_APPROVAL = "waiting_interview_approval"
    DRAFTING_PRD = "drafting_prd"
    COUNCIL_VOTING_PRD = "council_voting_prd"
    REFINING_PRD = "refining_prd"
    VERIFYING_PRD_COVERAGE = "verifying_prd_coverage"
    WAITING_PRD_APPROVAL = "waiting_prd_approval"
    DRAFTING_BEADS = "drafting_beads"
    COUNCIL_VOTING_BEADS = "council_voting_beads"
    REFINING_BEADS = "refining_beads"
    VERIFYING_BEADS_COVERAGE = "verifying_beads_coverage"
    EXPANDING_BEADS = "expanding_beads"
    WAITING_BEADS_APPROVAL = "waiting_beads_approval"
    PRE_FLIGHT_CHECK = "pre_flight_check"
    GENERATING_EXECUTION_SETUP_PLAN = "generating_execution_setup_plan"
    WAITING_EXECUTION_SETUP_APPROVAL = "waiting_execution_setup_approval"
    PREPARING_EXECUTION_ENV = "preparing_execution_env"
    CODING = "coding"
    RUNNING_FINAL_TEST = "running_final_test"
    GENERATING_QA_CHECKLIST = "generating_qa_checklist"
    WAITING_MANUAL_QA = "waiting_manual_qa"
    INTEGRATING_CHANGES = "integrating_changes"
    CREATING_PULL_REQUEST = "creating_pull_request"
    WAITING_PR_REVIEW = "waiting_pr_review"
    CLEANING_ENV = "cleaning_env"
    COMPLETED = "completed"
    CANCELED = "canceled"
    BLOCKED_ERROR = "blocked_error"


FIRST_PHASE: dict[str, Phase] = {
    "scan": Phase.SCANNING_RELEVANT_FILES,
    "interview": Phase.COUNCIL_DELIBERATING,
    "prd": Phase.DRAFTING_PRD,
    "beads": Phase.DRAFTING_BEADS,
    "preflight": Phase.PRE_FLIGHT_CHECK,
    "setup": Phase.GENERATING_EXECUTION_SETUP_PLAN,
    "build": Phase.CODING,
    "verify": Phase.RUNNING_FINAL_TEST,
    "qa": Phase.GENERATING_QA_CHECKLIST,
    "integrate": Phase.INTEGRATING_CHANGES,
    "pull_request": Phase.CREATING_PULL_REQUEST,
    "cleanup": Phase.CLEANING_ENV,
}


def first_phase(kind: str) -> Phase:
    """What a visit of this node kind shows before its node has said anything. Other kinds do work: coding."""
    return FIRST_PHASE.get(kind, Phase.CODING)


class VisitView(NamedTuple):
    """What the projection needs of one visit. ``blocked``: a blocked gate of it is open; ``waits_person``: any other
    gate is; ``wake``: when it goes on by itself."""

    state: VisitState
    phase: Phase | None
    blocked: bool = False
    waits_person: bool = False
    wake: datetime | str | None = None


Visits: TypeAlias = Sequence[tuple[VisitState, Phase | None, bool, bool, datetime | str | None]]
ENDED: dict[TicketState, Phase] = {
    TicketState.DRAFT: Phase.DRAFT,
    TicketState.COMPLETED: Phase.COMPLETED,
    TicketState.CANCELED: Phase.CANCELED,
}


def ticket_status(state: TicketState, run: RunState | None, hold: Hold, visits: Visits) -> Phase:
    """The one word for a ticket: its state if that says it all, else by the fixed priority blocked > waits for a person
    > running > parked until a time > queued. Equal rank: the earlier in the order of ``visits``."""
    if state in ENDED:
        return ENDED[state]
    views = [view for view in (VisitView(*v) for v in visits) if view.state.open]
    if hold is Hold.BUDGET or any(view.blocked for view in views):
        return Phase.BLOCKED_ERROR
    if not views:
        return _without_visits(run)
    first = min(views, key=_rank)
    return first.phase or next((v.phase for v in views if v.phase), Phase.SCANNING_RELEVANT_FILES)


def _without_visits(run: RunState | None) -> Phase:
    """Nothing is open, yet the ticket is active: between two commits of an end, or a rework that gave up."""
    if run is None:
        return Phase.SCANNING_RELEVANT_FILES
    if run in (RunState.COMPLETED, RunState.CLOSED):
        return Phase.CLEANING_ENV
    return Phase.BLOCKED_ERROR


def _rank(view: VisitView) -> int:
    if view.waits_person:
        return 0
    if view.state is VisitState.RUNNING or (view.state is VisitState.PARKED and view.wake is None):
        return 1  # parked without a time: its sessions work
    return 2 if view.state is VisitState.PARKED else 3


Column: TypeAlias = Literal["todo", "needs_input", "in_progress", "done"]
COLUMN: dict[Phase, Column] = {
    Phase.DRAFT: "todo",
    Phase.WAITING_INTERVIEW_ANSWERS: "needs_input",
    Phase.WAITING_INTERVIEW_APPROVAL: "needs_input",
    Phase.WAITING_PRD_APPROVAL: "needs_input",
    Phase.WAITING_BEADS_APPROVAL: "needs_input",
    Phase.WAITING_EXECUTION_SETUP_APPROVAL: "needs_input",
    Phase.WAITING_MANUAL_QA: "needs_input",
    Phase.WAITING_PR_REVIEW: "needs_input",
    Phase.BLOCKED_ERROR: "needs_input",
    Phase.COMPLETED: "done",
    Phase.CANCELED: "done",
}


def column(phase: Phase, *, asked: bool = False) -> Column:
    """The board column. ``asked``: an open question moves a working ticket to needs_input without a change of word."""
    found = COLUMN.get(phase, "in_progress")
    return "needs_input" if asked and found == "in_progress" else found
