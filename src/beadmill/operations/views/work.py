"""Projects, tickets, gates, runs, the interview."""

from __future__ import annotations

from typing import Any, Literal

from beadmill.domain.values import Json
from beadmill.operations.views.base import BeadCount, Column, Spend, View


class RepositoryView(View):
    path: str
    base: str
    remote: str
    forge: str
    forge_url: str = ""  # the service's web address when a person set it
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


class BudgetView(View):
    """How far a run is: ``what`` names the limit that is furthest along, ``share`` its part. ``unpriced`` turns are not
    seen by a limit in USD; ``blind`` says that there is such a limit and such turns."""

    state: Literal["ok", "warn", "over"]
    what: str
    share: float
    usd: float | None
    tokens: int | None
    minutes: float | None
    unpriced: int
    blind: bool


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
    budget: BudgetView
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
    """The receipt of a gate. ``acknowledged``: the gaps that an approval with gaps named. Policy and countdowns say why
    in ``note``."""

    choice: str
    payload: Json
    note: str
    actor: str
    door: str
    at: str
    saw: tuple[ShownArtifact, ...]
    acknowledged: tuple[str, ...]
    made_by: Literal["person", "policy", "timeout"]


class GateView(GateLine):
    shows: tuple[ShownArtifact, ...]
    form: Json
    detail: Json
    may: str
    decision: DecisionView | None


class OccurrenceView(View):
    """One stop of a run. ``details`` are its diagnostics. ``resolution``: retry, continue, send_back, another choice of
    its gate, canceled, withdrawn, or "" while it is open; ``resumed_to`` is the node that went on."""

    number: int
    gate: str
    node: str
    visit: str
    phase: str | None
    code: str
    message: str
    details: Json
    kept: str
    at: str
    state: str
    resolution: str
    note: str
    by: str
    resolved_at: str | None
    resumed_to: str | None


class DraftView(View):
    """An autosaved answer. ``revision`` 0 = nothing saved yet."""

    target: str
    revision: int
    body: Json
    updated: str | None


class InterviewView(View):
    """``questions`` of the waiting batch with their earlier answers; None gate = nothing waits."""

    ticket: str
    gate: GateView | None
    questions: tuple[Json, ...]
    answered: int
    session: Json
