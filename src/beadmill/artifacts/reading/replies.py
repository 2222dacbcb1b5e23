"""Replies that are more than one document: what the model writes, and what the caller gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, create_model

from beadmill.artifacts.base import CamelRecord, Document, Record
from beadmill.artifacts.beads import BlueprintBead, Dependencies
from beadmill.artifacts.council import Change, Resolution
from beadmill.artifacts.delivery import FileAudit
from beadmill.artifacts.interview import AnswerType, Option, PhaseName
from beadmill.artifacts.qa import FixBead, NotByHand, QaItemText

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class Refined(Generic[D]):
    """The winner's refined document. ``changes`` are already checked against the draft when it was in the context."""

    document: D
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Revised(Generic[D]):
    """A document revised for gaps, with exactly one resolution per gap."""

    document: D
    changes: tuple[Change, ...] = ()
    resolutions: tuple[Resolution, ...] = ()


class InspirationReply(Record):
    draft: int  # the number of the alternative draft as it was shown
    item: str = ""


class ChangeReply(Record):
    type: str
    item_type: str = ""
    id: str = ""
    before: str = ""
    after: str = ""
    inspiration: InspirationReply | None = None


class ExpansionPart(CamelRecord):
    """What the model adds to one blueprint bead (§5.2)."""

    issue_type: str = "task"
    labels: tuple[str, ...] = Field(min_length=1)
    dependencies: Dependencies = Dependencies()
    target_files: tuple[str, ...] = Field(min_length=1)
    test_files: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


class Expansion(BlueprintBead, ExpansionPart):
    """One line of the expansion: the copied Part-1 fields and the added ones."""


class Expansions(Record):
    beads: tuple[Expansion, ...] = Field(min_length=1)


class FollowUp(Record):
    """A question the audit wants to ask; Beadmill numbers it and says where it comes from."""

    id: str = ""
    question: str
    phase: PhaseName = "Assembly"
    priority: Literal["critical", "high", "medium", "low"] = "medium"
    rationale: str = ""
    answer_type: AnswerType = "free_text"
    options: tuple[Option, ...] = ()


class CoverageForm(Record):
    status: Literal["clean", "gaps"]
    gaps: tuple[str, ...] = ()
    follow_up_questions: tuple[FollowUp, ...] = ()


class SummaryLine(Record):
    """One sentence, and the answered questions it comes from."""

    text: str
    answers: tuple[str, ...] = ()


class SummaryForm(Record):
    goals: tuple[SummaryLine, ...] = ()
    constraints: tuple[SummaryLine, ...] = ()
    non_goals: tuple[SummaryLine, ...] = ()


class InterviewCoverageForm(CoverageForm):
    summary: SummaryForm = SummaryForm()


class CategoryScores(Record):
    categories: dict[str, int]
    total_score: int | None = None
    reason: str = ""


class Votes(Record):
    draft_scores: dict[str, CategoryScores] = Field(min_length=1)


class Audit(Record):
    files: tuple[FileAudit, ...]


class ChecklistForm(Record):
    """A checklist as a model writes it; Beadmill numbers the items and works out the coverage."""

    summary: str = ""
    items: tuple[QaItemText, ...] = Field(min_length=1)
    not_applicable_prd_refs: tuple[NotByHand, ...] = ()


class FixBeadsForm(Record):
    beads: tuple[FixBead, ...] = Field(min_length=1)


class Text(Record):
    text: str


def with_changes(model: type[Document], *, gaps: bool = False) -> type[BaseModel]:
    """The fields of ``model``, then ``changes`` and, for a revision, ``gap_resolutions``."""
    fields: dict[str, Any] = {name: (info.annotation, info) for name, info in model.model_fields.items()}
    fields["changes"] = (tuple[ChangeReply, ...], ())
    if gaps:
        fields["gap_resolutions"] = (tuple[Resolution, ...], ())
    return create_model(f"{'Revised' if gaps else 'Refined'}{model.__name__}", __base__=Record, **fields)
