"""Manual QA: checklist, results, fix beads, baseline and the round's summary (reference §9.2, §9.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from beadmill.artifacts.base import CamelRecord, Document, Record
from beadmill.artifacts.beads import ContextGuidance
from beadmill.artifacts.command import Command

QaOutcome = Literal["pending", "pass", "fail", "waive", "improvement"]
RoundOutcome = Literal["passed", "waived", "skipped", "fixes"]
CoverageState = Literal["covered", "partially_covered", "uncovered", "not_applicable"]


# --- checklist --------------------------------------------------------------------------------------------------------
class QaRef(Record):
    """One acceptance criterion, ``EPIC-1/US-1-2/AC-3`` (counted from 1), and how far an item checks it."""

    ref: str
    coverage: Literal["full", "partial"] = "full"


class NotByHand(Record):
    """A criterion that no person can check: automated, build-only or internal."""

    ref: str
    reason: str


class QaItemText(Record):
    """The part of an item that a model writes."""

    title: str = Field(min_length=1, max_length=500)
    lineage_id: str = ""
    prior_item_ids: tuple[str, ...] = ()
    source: Literal["prd", "bead", "previous_qa", "implementation_diff"] = "prd"
    behavior: str
    prerequisites: tuple[str, ...] = ()
    actions: tuple[str, ...] = Field(min_length=1)
    expected_result: str
    watch_notes: str = ""
    severity: Literal["required", "optional"]
    recheck_state: Literal["new", "pending_recheck", "previously_passed"] = "new"
    bead_refs: tuple[str, ...] = ()
    prd_refs: tuple[QaRef, ...] = ()


class QaItem(QaItemText):
    id: str  # qa-vN-001, Beadmill's; its lineage_id is the id of the first item of its line

    @property
    def required(self) -> bool:
        return self.severity == "required"

    @property
    def stories(self) -> tuple[str, ...]:
        """Stories whose criteria it checks: what a fix bead's prdRefs must be."""
        return tuple(dict.fromkeys(one.ref.split("/")[1] for one in self.prd_refs))


class Covered(Record):
    """What becomes of one criterion. Advisory: nothing is refused for it."""

    ref: str
    text: str
    state: CoverageState
    items: tuple[str, ...] = ()
    reason: str = ""


class QaChecklist(Document):
    kind: ClassVar[str] = "qa_checklist"

    version: int = Field(ge=1)
    summary: str = ""
    items: tuple[QaItem, ...] = Field(min_length=1)
    coverage: tuple[Covered, ...] = ()

    def item(self, name: str) -> QaItem | None:
        return next((one for one in self.items if one.id == name), None)

    @property
    def totals(self) -> dict[str, int]:
        """Coverage state → how many criteria."""
        states: tuple[CoverageState, ...] = ("covered", "partially_covered", "uncovered", "not_applicable")
        return {state: sum(one.state == state for one in self.coverage) for state in states}


class QaBaseline(Document):
    """The worktree as the checklist was made for it. ``content`` is the hash over index and files."""

    kind: ClassVar[str] = "qa_baseline"

    version: int
    head: str
    content: str
    status: tuple[str, ...] = ()  # "XY path"
    local_only: tuple[str, ...] = ()
    undo_ref: str = ""  # what lay in the tree and belongs to nothing that was accepted


# --- results ----------------------------------------------------------------------------------------------------------
class QaLink(Record):
    url: str
    details: str = ""


class ImprovementDraft(Record):
    """A ticket to be: made as a draft on submit. ``context_override`` replaces what Beadmill tells of the item."""

    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=10_000)
    context_override: str = Field(default="", max_length=10_000)
    priority: int = Field(default=3, ge=1, le=5)
    manual_qa: Literal["auto", "on", "off"] = "auto"


class Evidence(Record):
    """A file that a person added; its bytes lie in the data home by ``sha256``."""

    id: str
    item: str
    name: str
    media: str
    size: int
    sha256: str

    @property
    def inline(self) -> bool:
        """A raster image that a page may show."""
        return self.media.startswith("image/")


class ItemResult(Record):
    item: str
    outcome: QaOutcome = "pending"
    note: str = Field(default="", max_length=20_000)
    observation: str = Field(default="", max_length=20_000)  # what was seen instead; a failure needs it
    reason: str = Field(default="", max_length=20_000)  # why a required item is waived
    links: tuple[QaLink, ...] = Field(default=(), max_length=50)
    evidence: tuple[str, ...] = ()
    improvement: ImprovementDraft | None = None
    group: str = Field(default="", max_length=60)  # failed items of one group become one fix


class QaResults(Document):
    """What a person found, as it was submitted or, with ``skipped``, as it stood when they skipped the rest."""

    kind: ClassVar[str] = "qa_results"

    version: int
    checklist: str  # sha256 of what was checked
    results: tuple[ItemResult, ...]
    evidence: tuple[Evidence, ...] = ()
    skipped: bool = False
    reason: str = ""

    def of(self, item: str) -> ItemResult:
        return next((one for one in self.results if one.item == item), ItemResult(item=item))

    @property
    def counts(self) -> dict[str, int]:
        outcomes: tuple[QaOutcome, ...] = ("pass", "fail", "waive", "improvement", "pending")
        return {outcome: sum(one.outcome == outcome for one in self.results) for outcome in outcomes}


# --- fix beads --------------------------------------------------------------------------------------------------------
class FixBead(CamelRecord):
    """One bead that mends one group of failures; Beadmill adds id, order, kind and origin."""

    group_id: str
    title: str = Field(min_length=1)
    prd_refs: tuple[str, ...] = ()
    description: str
    context_guidance: ContextGuidance = ContextGuidance()
    acceptance_criteria: tuple[str, ...] = Field(min_length=1)
    tests: tuple[str, ...] = Field(min_length=1)
    test_commands: tuple[Command, ...] = ()
    test_command_reason: str | None = None
    labels: tuple[str, ...] = ()
    target_files: tuple[str, ...] = Field(min_length=1)
    test_files: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    blocked_by_group_ids: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _reason_iff_no_commands(self) -> FixBead:
        if not self.test_commands and not (self.test_command_reason or "").strip():
            raise ValueError("testCommandReason is required when testCommands is empty")
        return self


class QaFixBeads(Document):
    """Every candidate, stored before anything is made of one. ``ids`` are the beads' ids, in the same order."""

    kind: ClassVar[str] = "qa_fix_beads"

    version: int
    ids: tuple[str, ...]
    candidates: tuple[FixBead, ...] = Field(min_length=1)


# --- round ------------------------------------------------------------------------------------------------------------
class Waived(Record):
    item: str
    title: str
    reason: str
    required: bool


class Improvement(Record):
    """A ticket that a round made."""

    item: str
    title: str
    ticket: str


class DriftReceipt(Record):
    """What became of changes in the worktree while a person tested. ``commit`` holds what was taken along."""

    choice: Literal["include", "discard"]
    included: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    commit: str = ""
    undo_ref: str = ""
    by: str = ""
    at: str = ""


class QaRound(Document):
    """How one round of manual QA ended. ``head`` is the branch behind it; ``images`` how pictures reach the coder."""

    kind: ClassVar[str] = "qa_round"

    version: int
    outcome: RoundOutcome
    started: str
    ended: str
    seconds: int
    head: str
    by: str
    counts: dict[str, int] = {}
    coverage: dict[str, int] = {}
    waivers: tuple[Waived, ...] = ()
    fix_beads: tuple[str, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    drift: tuple[DriftReceipt, ...] = ()
    evidence: int = 0
    images: Literal["references_only"] = "references_only"
    reason: str = ""

    @property
    def line(self) -> str:
        """One line for reports: ``v2 passed: 4 passed, 1 waived``."""
        words = {"pass": "passed", "fail": "failed", "waive": "waived", "improvement": "to be improved"}
        told = [f"{self.counts[key]} {word}" for key, word in words.items() if self.counts.get(key)]
        if pending := self.counts.get("pending"):
            told.append(f"{pending} not checked")
        said = {"fixes": "found failures"}.get(self.outcome, self.outcome)
        return f"v{self.version} {said}" + (f": {', '.join(told)}" if told else "")


# --- rules ------------------------------------------------------------------------------------------------------------
class Group(Record):
    """Failed items that one bead mends."""

    id: str
    items: tuple[str, ...]


def groups(checklist: QaChecklist, results: QaResults) -> tuple[Group, ...]:
    """One per merge group, one per failed item without; in the order of the checklist, named ``group-1…``."""
    members: dict[str, list[str]] = {}
    for item in checklist.items:
        result = results.of(item.id)
        if result.outcome == "fail":
            members.setdefault(f"by name {result.group}" if result.group else item.id, []).append(item.id)
    return tuple(Group(id=f"group-{n}", items=tuple(items)) for n, items in enumerate(members.values(), 1))


def begun(checklist: QaChecklist) -> tuple[ItemResult, ...]:
    """Where a round starts: what passed before and was not touched stands as passed, everything else is open."""
    return tuple(
        ItemResult(item=item.id, outcome="pass" if item.recheck_state == "previously_passed" else "pending")
        for item in checklist.items
    )


def problems(checklist: QaChecklist, results: Sequence[ItemResult]) -> tuple[str, ...]:
    """Why these results cannot be submitted, in words; empty = they can."""
    given = {one.item: one for one in results}
    found = [f"{name}: there is no such item" for name in given if checklist.item(name) is None]
    found += [f"{name}: it is there twice" for name in given if sum(one.item == name for one in results) > 1]
    for item in checklist.items:
        found += [f"{item.id}: {wrong}" for wrong in _wrong(item, given.get(item.id, ItemResult(item=item.id)))]
    return (*found, *_mixed(results))


def _wrong(item: QaItem, result: ItemResult) -> list[str]:
    found: list[str] = []
    if result.outcome == "pending" and item.required:
        found.append("it is required and not checked yet")
    if result.outcome == "fail" and not result.observation.strip():
        found.append("say what you saw instead")
    if result.outcome == "waive" and item.required and not result.reason.strip():
        found.append("say why it is waived")
    if result.outcome == "improvement" and not (result.improvement and result.improvement.title.strip()):
        found.append("the improvement needs a title")
    if result.group and result.outcome != "fail":
        found.append("only failed items are mended together")
    return [*found, *(f"not an http or https link: {link.url[:200]}" for link in bad_links(result))]


def bad_links(result: ItemResult) -> tuple[QaLink, ...]:
    return tuple(
        one for one in result.links if not one.url.lower().startswith(("http://", "https://")) or " " in one.url.strip()
    )


def _mixed(results: Sequence[ItemResult]) -> tuple[str, ...]:
    named = {one.group for one in results if one.group and one.outcome == "fail"}
    mixed = sorted(name for name in named if any(one.group == name and one.outcome != "fail" for one in results))
    return tuple(f"group {name}: every item of it must have failed" for name in mixed)
