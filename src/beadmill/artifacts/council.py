"""What a council leaves behind: drafts, votes, changes, coverage (reference §2)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.interview import InterviewSummary
from beadmill.domain.values import Json

Outcome = Literal["completed", "timed_out", "invalid_output", "full_answers_invalid", "failed"]


class Intervention(Record):
    """One thing reading/ did to a reply before it was accepted, or why a reply was refused."""

    category: Literal["parser_fix", "cleanup", "synthesized", "dropped", "attribution", "retry"]
    stage: Literal["parse", "normalize", "semantic_validation", "retry"]
    title: str
    detail: str = ""


class SeatDraft(Record):
    """One seat's result. ``body`` is the normalised document, only when completed."""

    seat: int  # position in the council
    label: str  # agent/model/effort
    outcome: Outcome
    body: Json = None
    basis: Json = None  # the seat's Full Answers, in the PRD council
    error: str = ""
    seconds: float = 0
    metrics: dict[str, int] = {}
    interventions: tuple[Intervention, ...] = ()
    answered: int = 0  # questions of the seat that a person answered while it drafted


class CouncilDrafts(Document):
    kind: ClassVar[str] = "council_drafts"

    domain: Literal["interview", "prd", "beads"]
    drafts: tuple[SeatDraft, ...]


class Score(Record):
    """Five categories 0-20 for one draft; ``total`` is recomputed; ``reason`` ≤ 200 characters."""

    draft: int  # seat position
    categories: tuple[int, int, int, int, int]
    total: int
    reason: str = ""


class Ballot(Record):
    """One voter: the seed and the order it saw (order[i] = seat shown as ``Draft i+1``)."""

    voter: int
    seed: str
    order: tuple[int, ...]
    outcome: Outcome
    scores: tuple[Score, ...] = ()
    error: str = ""


class CouncilVotes(Document):
    kind: ClassVar[str] = "council_votes"

    domain: Literal["interview", "prd", "beads"]
    rubric: tuple[str, ...]
    ballots: tuple[Ballot, ...]
    means: dict[int, float]  # by seat, only drafts somebody scored
    winner: int
    tie_break: str = ""


class Inspiration(Record):
    draft: int  # seat position of the losing draft
    item: str = ""


class Change(Record):
    """One difference between the winner's draft and the refined document."""

    type: Literal["modified", "replaced", "added", "removed"]
    item_type: str
    id: str
    before: str = ""
    after: str = ""
    inspiration: Inspiration | None = None
    attribution: Literal["inspired", "model_unattributed", "synthesized_unattributed", "invalid_unattributed"] = (
        "model_unattributed"
    )


class CouncilRefined(Document):
    kind: ClassVar[str] = "council_refined"

    domain: Literal["interview", "prd", "beads"]
    winner: int
    changes: tuple[Change, ...] = ()
    interventions: tuple[Intervention, ...] = ()


class Gap(Record):
    text: str


class AffectedItem(Record):
    item_type: str
    id: str
    label: str = ""


class Resolution(Record):
    """Exactly one per gap (§2.6)."""

    gap: str
    action: Literal["updated", "already_covered", "left_unresolved"]
    rationale: str = ""
    affected_items: tuple[AffectedItem, ...] = ()


class Decided(Record):
    """What a person said to a contradiction that a revision had left to them, word for word."""

    gap: str
    answer: str
    by: str  # who, as receipts name them
    at: str


class CoveragePass(Record):
    number: int
    status: Literal["clean", "gaps"]
    gaps: tuple[str, ...] = ()
    resolutions: tuple[Resolution, ...] = ()
    candidate_sha256: str = ""
    extra: bool = False  # an "Extra Fix" a person asked for
    decisions: tuple[Decided, ...] = ()  # what the revision after this pass had to carry out
    synthetic: bool = False  # no audit: the person skipped the rest, or nothing was to be asked
    final: bool = False  # the last one allowed: its gaps go to the person as they are


class Coverage(Document):
    kind: ClassVar[str] = "coverage"

    domain: Literal["interview", "prd", "beads"]
    passes: tuple[CoveragePass, ...] = ()
    ended: Literal[
        "clean",
        "gaps",
        "coverage_pass_limit_reached",
        "follow_up_budget_exhausted",
        "follow_up_generation_failed",
        "skipped",
    ] = "clean"

    @property
    def open_gaps(self) -> tuple[str, ...]:
        done = self.ended in ("clean", "skipped")  # who skips everything has seen what was asked
        return self.passes[-1].gaps if self.passes and not done else ()

    @property
    def decisions(self) -> tuple[Decided, ...]:
        """The newest word on each contradiction."""
        return tuple({one.gap: one for p in self.passes for one in p.decisions}.values())

    @property
    def unresolved(self) -> tuple[Resolution, ...]:
        """Contradictions that only a person can settle and nobody has, each once."""
        known = {one.gap for one in self.decisions}
        left = [r for p in self.passes for r in p.resolutions if r.action == "left_unresolved" and r.gap not in known]
        return tuple({r.gap: r for r in left}.values())


class PrdFindings(Document):
    """What the checks of the requirements left open, for the gate that approves them later, with the plan."""

    kind: ClassVar[str] = "prd_findings"

    prd_sha256: str
    coverage: Coverage


class CoverageReply(Record):
    """The audit's envelope."""

    status: Literal["clean", "gaps"]
    gaps: tuple[str, ...] = ()
    follow_up_questions: tuple[Json, ...] = ()
    summary: InterviewSummary = InterviewSummary()  # of an interview: what the answers say


class ScoreLine(Record):
    """One voter's line for one label, as the model writes it."""

    categories: tuple[int, ...] = Field(min_length=5, max_length=5)
    total_score: int | None = None
    reason: str = ""
