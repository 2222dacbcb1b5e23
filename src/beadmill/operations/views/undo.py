"""States kept behind undo refs."""

from __future__ import annotations

from beadmill.operations.views.base import View


class UndoLine(View):
    """``when`` None and ``place`` "" = an earlier release kept it and did not say. ``place`` is ``tree`` or ``lanes/2``,
    ``head`` the commit that was checked out, ``files`` and ``size`` (bytes) what differs from it. ``left_out``: too big
    to be kept."""

    ref: str
    n: int
    when: str | None
    why: str
    place: str
    head: str
    files: int
    size: int
    left_out: tuple[str, ...]


class UndoFile(View):
    """``how``: A added, M changed, D deleted, T of another type."""

    path: str
    how: str
    size: int


class UndoView(UndoLine):
    """``diff`` is the patch against ``head``."""

    touched: tuple[UndoFile, ...]
    diff: str


class RestoredView(View):
    """Where the state is now: in ``tree``, or on ``branch`` at ``commit``. ``kept`` is the ref of what the tree held."""

    n: int
    tree: str = ""
    branch: str = ""
    commit: str = ""
    kept: str = ""
