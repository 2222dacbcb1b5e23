"""Artifacts, beads, sessions, events."""

from __future__ import annotations

from typing import Literal

from beadmill.domain.values import Json
from beadmill.operations.views.base import Spend, View
from beadmill.operations.views.work import GateLine


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
    """``text`` is what a person reads and edits; ``document`` the same as JSON. ``edits``: an edit is saved for an open
    ``gate``, or is approved with its save (``approve``) as this version was approved before, or changes a plan that is being built
    and paused (``replan``), or is refused ("")."""

    form: Literal["yaml", "jsonl"]
    text: str
    document: Json
    edits: Literal["", "gate", "approve", "replan"] = ""


class DiffView(View):
    """A unified diff of what people read, and the items that differ."""

    row: int
    against: int | None
    diff: str


class DocumentProblem(View):
    """``line`` and ``column`` count from 1, 0 = JSON was checked; ``text`` is the whole line, ``path`` dotted."""

    line: int
    column: int
    reason: str
    text: str
    path: str


class CheckedView(View):
    """``valid`` = it could be saved as a new version; ``problems`` in the order of the text, 200 at most."""

    row: int
    kind: str
    valid: bool
    problems: tuple[DocumentProblem, ...]


class EditedView(ArtifactView):
    """``gates`` are the gates that now show this version, with their new ETags; ``restarted`` the visits that begin
    because an approved document was edited."""

    gates: tuple[GateLine, ...]
    restarted: tuple[str, ...] = ()


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
    spend: Spend  # of all its tries
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
    cost_source: Literal["", "reported", "priced", "override", "unpriced"]
    model: str
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
