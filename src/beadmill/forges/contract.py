"""The forge contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from beadmill.domain.change import Change, ChangeRef, ChangeStatus
from beadmill.processes.box import Health


@dataclass(frozen=True, slots=True)
class ChangeDraft:
    """``branch`` at ``head`` is already pushed when this is put."""

    title: str
    body: str
    branch: str
    base: str
    head: str
    draft: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: str  # pending | passed | failed
    url: str = ""


@dataclass(frozen=True, slots=True)
class ChangeState:
    """``merge_sha`` is set when merged, wherever that happened."""

    change: Change
    body: str
    checks: tuple[Check, ...] = ()
    reviews: tuple[str, ...] = ()
    merge_sha: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    id: str
    author: str
    at: datetime
    body: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    sha: str
    base: str
    method: str


class Forge(Protocol):
    name: str

    async def probe(self) -> Health:
        """Reachable, and may we push? Never raises."""
        ...

    async def find(self, branch: str) -> Change | None:
        """The newest change of this head branch, whatever its status."""
        ...

    async def put(self, draft: ChangeDraft) -> Change:
        """Opens or updates; idempotent by head branch. Raises Conflict when the remote head is not ``draft.head``."""
        ...

    async def read(self, change: ChangeRef) -> ChangeState:
        """Raises NotFound."""
        ...

    def comments(self, change: ChangeRef, since: datetime | None = None) -> AsyncIterator[Comment]: ...

    async def merge(self, change: ChangeRef, *, expected_head: str, method: str = "merge") -> Merged:
        """Idempotent: an already merged change with this head answers with its merge. Raises Stale when the head
        moved, Conflict when base and head conflict."""
        ...

    async def close(self, change: ChangeRef, *, note: str) -> None:
        """Idempotent. Raises Conflict when it is merged."""
        ...


__all__ = ["Change", "ChangeDraft", "ChangeRef", "ChangeState", "ChangeStatus", "Check", "Comment", "Forge", "Merged"]
