"""Blueprint (Part 1) and executable beads (Part 2) (reference §5), keys in camelCase."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from beadmill.artifacts.base import CamelRecord, Document
from beadmill.artifacts.command import Command


class ContextGuidance(CamelRecord):
    model_config = CamelRecord.model_config | {"alias_generator": None}
    patterns: tuple[str, ...] = ()
    anti_patterns: tuple[str, ...] = ()


class BlueprintBead(CamelRecord):
    """The part that the planning model writes."""

    id: str
    title: str
    prd_refs: tuple[str, ...] = ()
    description: str = ""
    context_guidance: ContextGuidance = ContextGuidance()
    acceptance_criteria: tuple[str, ...] = Field(min_length=1)
    tests: tuple[str, ...] = Field(min_length=1)
    test_commands: tuple[Command, ...] = ()
    test_command_reason: str | None = None

    @model_validator(mode="after")
    def _reason_iff_no_commands(self) -> BlueprintBead:
        if not self.test_commands and not (self.test_command_reason or "").strip():
            raise ValueError("testCommandReason is required when testCommands is empty")
        return self


class Blueprint(Document):
    kind: ClassVar[str] = "blueprint"

    beads: tuple[BlueprintBead, ...] = Field(min_length=1)


class Dependencies(CamelRecord):
    model_config = CamelRecord.model_config | {"alias_generator": None}
    blocked_by: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()


class Bead(BlueprintBead):
    """What one agent session finishes. Status, iteration and notes live in the ledger of attempts, not here."""

    priority: int = 1
    issue_type: str = "task"
    external_ref: str = ""
    labels: tuple[str, ...] = ()
    dependencies: Dependencies = Dependencies()
    target_files: tuple[str, ...] = Field(min_length=1)
    test_files: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()  # what later beads may rely on, declared by the plan
    created_at: str = ""
    qa_origin: str | None = None
    skipped: bool = False

    @property
    def blocked_by(self) -> Sequence[str]:
        return self.dependencies.blocked_by

    @property
    def sha(self) -> str:
        """Hash of everything the bead's work depends on: edited work is new work."""
        meaning = self.model_dump(mode="json", exclude={"priority", "created_at", "labels"})
        meaning["dependencies"] = sorted(self.dependencies.blocked_by)
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


class Beads(Document):
    """beads.jsonl: what to do; immutable, approved by hash."""

    kind: ClassVar[str] = "beads"

    beads: tuple[Bead, ...] = Field(min_length=1)

    def jsonl(self) -> str:
        return "".join(json.dumps(b.model_dump(mode="json"), ensure_ascii=False) + "\n" for b in self.beads)


class BeadStatus(CamelRecord):
    """The coder's marker at the end of an iteration (§8.1), plus ours: interfaces, deviations, a question."""

    model_config = CamelRecord.model_config | {"alias_generator": None}
    bead_id: str
    status: Literal["done", "error", "question"]
    checks: dict[Literal["tests", "lint", "typecheck", "qualitative"], Literal["pass", "fail"]] = {}
    reason: str = ""
    question: str = ""
    interfaces: tuple[str, ...] = ()  # what this bead now offers to later beads
    replaced_commands: tuple[ReplacedCommand, ...] = ()


class ReplacedCommand(CamelRecord):
    """A frozen command may be wrong: a proposal with its reason; proof/ decides whether it counts."""

    model_config = CamelRecord.model_config | {"alias_generator": None}
    original: Command
    replacement: Command
    reason: str


BeadStatus.model_rebuild()
