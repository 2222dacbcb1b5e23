"""Evidence, final test, integration, change and cleanup (reference §9)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.command import Command
from beadmill.artifacts.setup import CommandRun


class RedOnBase(Record):
    """What the new tests say about the code without the change (deliver.md, build loop)."""

    result: Literal["proved", "absent", "not_proved", "not_applicable", "off"]
    tests: tuple[str, ...] = ()
    detail: str = ""
    runs: tuple[CommandRun, ...] = ()


class TestChange(Record):
    """One finding of the tamper guard."""

    path: str
    kind: Literal["deleted", "renamed", "skipped", "only", "fewer_assertions", "loosened_config"]
    detail: str = ""
    framework: str = "unknown framework"


class Deviation(Record):
    """A frozen command that was replaced, why, and why that counts."""

    original: str
    replacement: str
    reason: str
    accepted: bool
    because: str = ""


class Finding(Record):
    severity: Literal["blocker", "major", "minor", "note"]
    text: str
    path: str = ""
    line: int = 0


class Review(Record):
    """The independent reviewer's verdict."""

    verdict: Literal["approve", "request_changes", "unavailable"]
    summary: str = ""
    findings: tuple[Finding, ...] = ()
    reviewer: str = ""


class BeadEvidence(Document):
    """What proves one bead. ``holds`` is what the build loop acts on."""

    kind: ClassVar[str] = "bead_evidence"

    bead: str
    bead_sha: str
    attempt: int
    holds: bool
    why_not: str = ""
    checks: tuple[CommandRun, ...] = ()
    known_failures: tuple[str, ...] = ()  # commands that fail the same way at the start commit
    red_on_base: RedOnBase = RedOnBase(result="not_applicable")
    test_changes: tuple[TestChange, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    interfaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0
    commit: str = ""
    warnings: tuple[str, ...] = ()
    review: Review | None = None  # by another seat, where the settings ask for it


class FileEffect(Record):
    path: str
    intent: Literal["candidate", "temporary", "unexpected"] = "candidate"
    reason: str = ""


class FinalTestCommands(Record):
    """The model's reply (§9.1)."""

    commands: tuple[Command, ...] = Field(min_length=1)
    test_files: tuple[str, ...] = Field(min_length=1)
    modified_files: tuple[str, ...] = Field(min_length=1)
    file_effects: tuple[FileEffect, ...] = ()
    summary: str = ""
    tests_count: int | None = None


class Disposition(Record):
    path: str
    disposition: Literal["candidate", "local_only"]
    reason: str


class FinalTestReport(Document):
    kind: ClassVar[str] = "final_test_report"

    passed: bool
    attempt: int
    planned_by: str = ""
    summary: str = ""
    test_files: tuple[str, ...] = ()
    runs: tuple[CommandRun, ...] = ()
    file_effects: tuple[Disposition, ...] = ()
    regression: tuple[CommandRun, ...] = ()
    regressions: tuple[str, ...] = ()  # project commands that passed in the baseline and fail now
    flaky: tuple[str, ...] = ()  # failed, and passed when run once more
    theirs: tuple[str, ...] = ()  # fail in the same way on the base by itself
    test_changes: tuple[TestChange, ...] = ()
    review: Review | None = None
    commit: str = ""
    notes: tuple[str, ...] = ()


class FileAudit(Record):
    path: str
    decision: Literal["include", "exclude", "review"]
    reason: str = ""


class IntegrationReport(Document):
    kind: ClassVar[str] = "integration_report"

    candidate_commit: str
    merge_base: str
    pre_squash_head: str
    commit_count: int
    files: tuple[FileAudit, ...]
    base: str
    branch: str
    undo_ref: str = ""
    completed_at: str = ""
    manual_qa: str = ""  # how the last round of manual QA ended, "" = there was none


class PullRequestText(Record):
    """The model's reply."""

    title: str
    summary: str
    why: str = ""
    what_changed: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()


class PullRequestReport(Document):
    kind: ClassVar[str] = "pull_request_report"

    number: int
    url: str
    state: str
    title: str
    body: str
    head_sha: str
    base: str
    branch: str
    forge: str
    patch: str = ""  # the same for the same change on another base
    text: PullRequestText | None = None
    decided_by: str = ""  # who decided to merge this patch before the base moved under it
    handled: tuple[str, ...] = ()  # remarks of the forge that became work


class MergeReport(Document):
    kind: ClassVar[str] = "merge_report"

    disposition: Literal["merged", "closed_unmerged"]
    number: int
    sha: str = ""
    method: str = ""
    proof: str = ""  # how plain git shows that base contains the change
    reason: str = ""
    by: str = ""


class CleanupReport(Document):
    kind: ClassVar[str] = "cleanup_report"

    status: Literal["clean", "warning"]
    removed: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
