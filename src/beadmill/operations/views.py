"""What operations answer: pydantic models, the same for every door. Times are UTC ISO-8601 text, durations seconds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from beadmill.domain.values import Json

Column = Literal["todo", "needs_input", "in_progress", "done"]


class View(BaseModel):
    model_config = ConfigDict(frozen=True)


class Spend(View):
    """``cost_usd`` None = nothing priced yet, never zero by guess."""

    tokens: int = 0
    cost_usd: float | None = None
    agent_seconds: float = 0


class BeadCount(View):
    done: int = 0
    total: int = 0


class RepositoryView(View):
    path: str
    base: str
    remote: str
    forge: str
    problems: tuple[str, ...] = ()


class ProjectView(View):
    short: str
    name: str
    repository: RepositoryView | None  # None = removed: only the history is kept
    overrides: dict[str, Any]
    tickets: int
    created: str


class GateLine(View):
    """A gate in a list. ``answer_with`` is the command that answers it."""

    id: str
    kind: str
    title: str
    ticket: str | None
    project: str | None
    run: str
    node: str
    choices: tuple[str, ...]
    state: str
    etag: str
    lapse: str | None
    lapse_at: str | None
    created: str
    answer_with: str


class TicketLine(View):
    """A ticket in a list and on the board."""

    key: str
    project: str
    title: str
    priority: int
    sop: str
    state: str
    status: str
    column: Column
    run: str | None
    hold: str
    beads: BeadCount
    spend: Spend
    waits: int  # open gates
    created: str
    updated: str


class VisitView(View):
    id: str
    node: str
    n: int
    state: str
    phase: str | None
    outcome: str | None
    note: str
    comment: str
    wake_at: str | None
    made: tuple[int, ...]
    created: str
    started: str | None
    ended: str | None
    spend: Spend


class NodeView(View):
    """One line of the node rail: the SOP's node and its newest visit. ``state`` is waiting before any visit."""

    id: str
    kind: str
    title: str
    state: str
    visits: int
    outcome: str | None = None
    spend: Spend = Spend()
    started: str | None = None
    ended: str | None = None


class ChangeView(View):
    forge: str
    number: int
    url: str
    branch: str
    base: str
    head: str
    state: str
    merge_sha: str | None


class RunLine(View):
    id: str
    ticket: str | None
    project: str | None
    sop: str
    state: str
    hold: str
    parent: str | None
    spend: Spend
    created: str
    ended: str | None


class RunView(RunLine):
    settings: dict[str, Any]
    work: dict[str, Any]
    nodes: tuple[NodeView, ...]
    visits: tuple[VisitView, ...]
    gates: tuple[GateLine, ...]
    beads: BeadCount
    change: ChangeView | None
    seq: int  # events up to here are in this view


class TicketView(TicketLine):
    description: str
    acceptance: str
    overrides: dict[str, Any]
    effective: dict[str, Any]  # the settings a start would freeze, or the run's frozen ones
    runs: tuple[RunLine, ...]
    current: RunView | None


class ShownArtifact(View):
    row: int
    kind: str
    version: int
    sha256: str
    author: str
    created: str


class DecisionView(View):
    """The receipt of a gate."""

    choice: str
    payload: Json
    note: str
    actor: str
    door: str
    at: str
    saw: tuple[ShownArtifact, ...]


class GateView(GateLine):
    shows: tuple[ShownArtifact, ...]
    form: Json
    detail: Json
    may: str
    decision: DecisionView | None


class DraftView(View):
    """An autosaved answer. ``revision`` 0 = nothing saved yet."""

    target: str
    revision: int
    body: Json
    updated: str | None


class ArtifactLine(View):
    row: int
    kind: str
    run: str
    visit: str
    version: int
    sha256: str
    author: str
    parent: int | None
    size: int
    created: str


class ArtifactView(ArtifactLine):
    """``text`` is what a person reads and edits; ``document`` the same as JSON."""

    form: Literal["yaml", "jsonl"]
    text: str
    document: Json


class DiffView(View):
    """A unified diff of what people read, and the items that differ."""

    row: int
    against: int | None
    diff: str


class EditedView(ArtifactView):
    """``gates`` are the open gates that now show this version: their new ETags."""

    gates: tuple[GateLine, ...]


class AttemptView(View):
    n: int
    bead_sha: str
    current: bool  # belongs to the bead as it is planned now
    state: str
    start_commit: str
    end_commit: str
    note: str
    sessions: tuple[str, ...]
    proof: Json
    started: str | None
    ended: str | None


class CheckView(View):
    purpose: str
    command: str
    commit: str
    exit: int | None
    seconds: float
    output: str
    at: str


class BeadLine(View):
    id: str
    title: str
    state: str
    priority: int
    blocked_by: tuple[str, ...]
    attempts: int
    skipped: bool
    sha: str


class BeadView(BeadLine):
    bead: Json
    tries: tuple[AttemptView, ...]
    evidence: Json  # BeadEvidence of the attempt that is done, else of the last
    checks: tuple[CheckView, ...]
    diff: str


class SessionLine(View):
    token: str
    run: str
    visit: str
    kind: str
    seat: str
    template: str
    subject: str
    started: str
    ended: str | None
    end: str | None  # Replied, Failed, Ran …
    tokens: int
    cost_usd: float | None
    seconds: float


class SessionView(SessionLine):
    """``ledger`` is what the brief was made of: part, version, sha256, tokens."""

    ledger: Json
    brief: str
    result: Json
    log_bytes: int


class EventView(View):
    seq: int
    kind: str
    run: str | None
    visit: str | None
    ticket: str | None
    actor: str
    data: Json
    at: str


class EventsView(View):
    """``seq`` is the newest sequence read; ``gap`` says that events before ``events`` are gone: read the page anew."""

    events: tuple[EventView, ...]
    seq: int
    gap: bool


class AgentView(View):
    name: str
    state: Literal["ready", "missing", "refused", "failed"]
    path: str
    version: str
    signed_in: bool | None
    note: str
    can: dict[str, Any]


class ProbeView(AgentView):
    models: tuple[str, ...]


class SopLine(View):
    name: str
    title: str
    description: str
    version: int
    builtin: bool


class SopView(SopLine):
    body: str
    nodes: tuple[str, ...]


class ProblemView(View):
    code: str
    message: str
    node: str
    line: int
    column: int


class LintView(View):
    ok: bool
    problems: tuple[ProblemView, ...]


class InterviewView(View):
    """``questions`` of the waiting batch with their earlier answers; None gate = nothing waits."""

    ticket: str
    gate: GateView | None
    questions: tuple[Json, ...]
    answered: int
    session: Json


class HealthLine(View):
    name: str
    ok: bool
    message: str
    next: str = ""


class StatusView(View):
    version: str
    home: str
    database: str
    tickets: dict[str, int]
    waits: int
    sessions: int
    seq: int
    health: tuple[HealthLine, ...]


class ConfigView(View):
    """Every setting with its value and where it comes from. Values of agents' environments are never shown."""

    values: dict[str, Any]
    sources: dict[str, str]


class LinkView(View):
    """A one-time sign-in token and when it stops working."""

    token: str
    expires: str


class Done(View):
    """An act without a richer answer: what happened, what was kept."""

    message: str
    kept: str = ""
