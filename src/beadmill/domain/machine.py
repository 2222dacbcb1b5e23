"""Transition tables of run, visit and attempt; the ticket's 34 status words as a projection."""

from __future__ import annotations

from enum import StrEnum


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
