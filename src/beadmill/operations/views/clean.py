"""What could be removed, and what was."""

from __future__ import annotations

from typing import Literal

from beadmill.operations.views.base import View

CleanKind = Literal["worktree", "lane", "workspace", "set_aside", "temporary", "sessions", "undo", "backup"]
Verdict = Literal["ready", "ask", "keep"]


class CleanItem(View):
    """``ready``: nothing is lost. ``ask``: what ``loses`` names is on no ref, so it goes only when it is named.
    ``keep``: it stays; ``why`` says why. ``size`` in bytes on the disk. ``mark`` is what a removal must find again."""

    id: str
    kind: CleanKind
    ticket: str
    path: str
    size: int
    verdict: Verdict
    why: str
    loses: tuple[str, ...] = ()
    mark: str = ""


class CleanView(View):
    """``free``: bytes of everything that is ready; ``asks``: of what goes only when it is named."""

    items: tuple[CleanItem, ...]
    free: int
    asks: int


class CleanedLine(View):
    """``said``: what is kept and where, or why it stays."""

    id: str
    path: str
    removed: bool
    freed: int
    said: str


class CleanedView(View):
    lines: tuple[CleanedLine, ...]
    freed: int
