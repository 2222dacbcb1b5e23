"""The PRD (reference §4.2)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.command import Command
from beadmill.artifacts.interview import Approval


class SourceInterview(Record):
    content_sha256: str = ""


class Product(Record):
    problem_statement: str
    target_users: tuple[str, ...] = ()


class Scope(Record):
    in_scope: tuple[str, ...] = ()
    out_of_scope: tuple[str, ...] = ()


class TechnicalRequirements(Record):
    architecture_constraints: tuple[str, ...] = ()
    data_model: tuple[str, ...] = ()
    api_contracts: tuple[str, ...] = ()
    security_constraints: tuple[str, ...] = ()
    performance_constraints: tuple[str, ...] = ()
    reliability_constraints: tuple[str, ...] = ()
    error_handling_rules: tuple[str, ...] = ()
    tooling_assumptions: tuple[str, ...] = ()


class Verification(Record):
    required_commands: tuple[Command, ...] = ()


class Story(Record):
    id: str  # US-e-s
    title: str
    acceptance_criteria: tuple[str, ...] = ()
    implementation_steps: tuple[str, ...] = ()
    verification: Verification = Verification()


class Epic(Record):
    id: str  # EPIC-n
    title: str
    objective: str = ""
    implementation_steps: tuple[str, ...] = ()
    user_stories: tuple[Story, ...] = Field(min_length=1)


class Prd(Document):
    kind: ClassVar[str] = "prd"

    schema_version: Literal[1] = 1
    ticket_id: str = ""
    artifact: Literal["prd"] = "prd"
    status: Literal["draft", "approved"] = "draft"
    source_interview: SourceInterview = SourceInterview()
    product: Product
    scope: Scope = Scope()
    technical_requirements: TechnicalRequirements = TechnicalRequirements()
    epics: tuple[Epic, ...] = Field(min_length=1)
    risks: tuple[str, ...] = ()
    approval: Approval = Approval()

    def refs(self) -> frozenset[str]:
        """Every epic and story id: what a bead's prdRefs may name."""
        return frozenset(e.id for e in self.epics) | frozenset(s.id for e in self.epics for s in e.user_stories)
