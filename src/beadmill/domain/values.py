"""Value types that every layer speaks. Frozen, comparable, standard library only (the runner loads them)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NewType, TypeAlias

Json: TypeAlias = Any  # a JSON value: None, bool, int, float, str, list, dict
RunId = NewType("RunId", str)
Sha = NewType("Sha", str)  # 64 lower-case hex digits


@dataclass(frozen=True, slots=True, order=True)
class VisitRef:
    """One numbered execution of a node in a run. Written ``<run>/<node>.<n>``."""

    run: RunId
    node: str
    n: int

    def __str__(self) -> str:
        return f"{self.run}/{self.node}.{self.n}"

    @classmethod
    def parse(cls, text: str) -> VisitRef:
        run, _, rest = text.partition("/")
        node, _, n = rest.rpartition(".")
        return cls(RunId(run), node, int(n))


@dataclass(frozen=True, slots=True, order=True)
class ArtifactRef:
    """``row`` says who, when and from which parent; ``sha256`` says the bytes."""

    kind: str
    sha256: Sha
    row: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a visit ended: the edge it leaves by, the artifacts it stands for, a short note for people."""

    edge: str
    made: tuple[ArtifactRef, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something. ``door`` is where it came in: web, cli, api, mcp, engine. ``scopes`` None = everything (the
    local owner, the system); a token carries the permissions it was given."""

    kind: Literal["user", "system", "agent", "timeout"]
    name: str
    door: str = ""
    scopes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


SYSTEM = Actor("system", "beadmill", "engine")
TIMEOUT = Actor("timeout", "countdown", "engine")  # nobody decided in time


@dataclass(frozen=True, slots=True)
class Seat:
    """Agent + model + effort. Two seats may be equal: a council tells them apart by position."""

    agent: str
    model: str = ""
    effort: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.agent, self.model, self.effort) if part)


@dataclass(frozen=True, slots=True)
class Part:
    """One line of a brief's context ledger. ``tokens`` is the estimate ceil(bytes / 4); ``note`` says what a person
    should know of the part."""

    name: str
    sha256: Sha
    tokens: int
    version: int = 0
    dropped: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Brief:
    """What one session is given. ``template`` is the prompt's name; ``subject`` the bead, seat or turn it is about."""

    template: str
    text: str
    ledger: tuple[Part, ...] = ()
    subject: str = ""


class Access(StrEnum):
    """What an agent may do to the workspace."""

    NONE = "none"  # no tools, an empty directory
    READ = "read"
    WRITE = "write"
    ONLINE = "online"  # write, and the web


class Permission(StrEnum):
    """What an actor must be allowed to do; operations/rules.py decides who is."""

    READ = "read"
    PLAN = "plan"  # create and edit tickets
    DECIDE = "decide"  # answer gates
    RUN = "run"  # start, pause, resume, cancel, rerun
    ADMIN = "admin"


class GateKind(StrEnum):
    """Everything a person decides is a gate."""

    APPROVE = "approve"
    INTERVIEW = "interview"
    QUESTION = "question"
    QA = "qa"
    MERGE = "merge"
    BLOCKED = "blocked"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What a node asks. ``shows`` is what an answer must name exactly; ``form`` is the JSON Schema of the payload;
    ``auto`` is a choice made at once by policy, ``why`` is its reason, and with ``in_budget`` it waits for a person when
    the run's budget warns; ``within`` and ``lapse`` are a countdown and the choice it makes."""

    kind: GateKind
    title: str
    choices: tuple[str, ...]
    shows: tuple[ArtifactRef, ...] = ()
    form: Json = None
    detail: Json = None  # what the page shows beside the artifacts: gaps, questions, warnings, diagnostics
    may: Permission = Permission.DECIDE
    auto: str | None = None
    why: str = ""
    in_budget: bool = False
    within: timedelta | None = None
    lapse: str | None = None


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The one decision of a gate. ``saw`` is what was bound when it was taken; ``key`` makes a repeat the same answer."""

    choice: str
    saw: tuple[ArtifactRef, ...]
    by: Actor
    at: datetime
    key: str
    payload: Json = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, for people and subscribers. ``kind`` is dotted, lower case; ``data`` small and free of secrets."""

    kind: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn. ``input`` excludes cache reads, ``output`` includes reasoning. ``cost_usd`` is what the CLI
    says this turn alone cost, None = it says nothing. ``model`` is what it says it used, "" = nothing said."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    cost_usd: float | None = None
    model: str = ""

    @property
    def tokens(self) -> int:
        return self.input + self.cached + self.output

    def __add__(self, other: Usage) -> Usage:
        priced = [c for c in (self.cost_usd, other.cost_usd) if c is not None]
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
            sum(priced) if priced else None,
            self.model or other.model,
        )


def estimate_tokens(text: str) -> int:
    """The house's one estimate, labelled as an estimate wherever it is shown: ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode()) // 4)
