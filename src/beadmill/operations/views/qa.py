"""Manual QA."""

from __future__ import annotations

from beadmill.domain.values import Json
from beadmill.operations.views.base import View
from beadmill.operations.views.work import GateView


class EvidenceView(View):
    """``inline``: a raster image that a page shows; anything else is only ever downloaded."""

    id: str
    item: str
    name: str
    media: str
    size: int
    sha256: str
    inline: bool


class QaRoundView(View):
    """A round that has ended. ``line`` says how in one line; ``round`` is its whole summary."""

    version: int
    outcome: str
    line: str
    round: Json


class QaView(View):
    """The round that waits, or the last one. ``gate`` asks for the results, ``drift`` what becomes of changes in the
    worktree; both None = nothing waits. ``results`` has every item, as saved so far; ``problems`` say why they cannot
    be submitted yet. ``revision`` is what the next save is over."""

    ticket: str
    gate: GateView | None
    drift: GateView | None
    version: int | None
    worktree: str
    checklist: Json
    revision: int
    saved: str | None
    results: tuple[Json, ...]
    evidence: tuple[EvidenceView, ...]
    problems: tuple[str, ...]
    counts: dict[str, int]
    coverage: dict[str, int]
    rounds: tuple[QaRoundView, ...]
