"""Execution setup: plan and profile (reference §7)."""

from __future__ import annotations

from typing import ClassVar, Literal

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.command import Command
from beadmill.domain.values import Json


class Readiness(Record):
    status: Literal["ready", "partial", "missing"]
    actions_required: bool
    evidence: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


class WorkspaceInput(Record):
    path: str
    kind: Literal["file", "directory"]
    source_status: Literal["ignored", "untracked"]
    category: Literal["local_config", "secret", "fixture", "dataset", "other_non_reproducible"]
    allow_large_copy: bool = False
    file_count: int = 0
    total_bytes: int = 0
    reason: str = ""


class Probe(Record):
    id: str
    command: Command
    purpose: str = ""
    functional: bool = True  # not a version print


class DetectedHook(Record):
    name: str
    path: str
    source: str = ""
    kind: Literal["hook", "manager_config"] = "hook"
    runnable: Literal["yes", "no", "unknown"] = "unknown"
    manager_hint: str = ""


class GitHooks(Record):
    policy: Literal["observe_only"] = "observe_only"
    detected: tuple[DetectedHook, ...] = ()


class SetupStep(Record):
    id: str
    title: str
    purpose: str = ""
    commands: tuple[Command, ...] = ()
    required: bool = True
    rationale: str = ""
    cautions: tuple[str, ...] = ()


class ProjectCommands(Record):
    prepare: tuple[Command, ...] = ()
    test_full: tuple[Command, ...] = ()
    lint_full: tuple[Command, ...] = ()
    typecheck_full: tuple[Command, ...] = ()


class SetupPlan(Document):
    kind: ClassVar[str] = "execution_setup_plan"

    schema_version: Literal[1] = 1
    ticket_id: str = ""
    artifact: Literal["execution_setup_plan"] = "execution_setup_plan"
    status: Literal["draft", "approved"] = "draft"
    summary: str = ""
    host_context: dict[str, str] = {}
    readiness: Readiness
    temp_roots: tuple[str, ...] = ()
    workspace_inputs: tuple[WorkspaceInput, ...] = ()
    workspace_probes: tuple[Probe, ...] = ()
    git_hooks: GitHooks = GitHooks()
    steps: tuple[SetupStep, ...] = ()
    project_commands: ProjectCommands = ProjectCommands()
    quality_gate_policy: dict[str, str] = {}
    cautions: tuple[str, ...] = ()


class CommandRun(Record):
    """A command Beadmill ran, as evidence. ``exit`` None = could not start or was killed by its deadline. ``failing``
    names what failed, tests or findings of a linter, as far as it is recognised in the whole output."""

    command: str
    exit: int | None
    seconds: float
    output: str = ""
    timed_out: bool = False
    cannot_start: bool = False
    purpose: str = ""
    failing: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.exit == 0


class SetupProfile(Document):
    """What is prepared, as verified by Beadmill itself."""

    kind: ClassVar[str] = "execution_setup_profile"

    status: Literal["ready", "blocked"]
    summary: str = ""
    bootstrap: tuple[CommandRun, ...] = ()
    probes: tuple[CommandRun, ...] = ()
    inputs_copied: tuple[str, ...] = ()
    path_prepend: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    baseline: tuple[CommandRun, ...] = ()  # the project's full tests before any change
    notes: tuple[str, ...] = ()


class Check(Record):
    name: str
    category: str
    result: Literal["pass", "warning", "fail"]
    message: str = ""
    next: str = ""


class PreflightReport(Document):
    kind: ClassVar[str] = "preflight_report"

    passed: bool
    checks: tuple[Check, ...]


class ScanReport(Document):
    """Where the run works: resolved branch, base commit, tree."""

    kind: ClassVar[str] = "workspace"

    branch: str
    base: str
    base_commit: str
    tree: str
    notes: tuple[str, ...] = ()
    extra: Json = None
