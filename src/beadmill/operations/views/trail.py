"""What people and policy decided and changed, in the order it happened."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from beadmill.operations.views.base import View
from beadmill.operations.views.work import ShownArtifact

TrailKind = Literal["decision", "automatic", "expiry", "edit", "skip", "send_back", "rerun", "hold", "resume", "cancel"]


class TrailLine(View):
    """One receipt. ``reason`` is what was said with it, or why policy decided. ``acknowledged`` are the gaps that an
    approval named.

    ``details`` by kind: edit {row, version, before, after (sha256), from_row, after_ai}; skip {surface, question, prompt,
    summary}; send_back {to}; rerun {parent}. A skip that was answered or skipped anew later keeps its line:
    ``superseded_at`` and ``superseded_by`` say when and by whom.
    """

    kind: TrailKind
    at: str
    by: str
    door: str = ""
    run: str
    node: str = ""
    gate: str | None = None
    title: str = ""
    choice: str = ""
    reason: str = ""
    saw: tuple[ShownArtifact, ...] = ()
    acknowledged: tuple[str, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)
    superseded_at: str | None = None
    superseded_by: str | None = None


class TrailView(View):
    run: str | None
    ticket: str | None
    lines: tuple[TrailLine, ...]
