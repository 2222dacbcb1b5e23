"""The forge contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from beadmill.domain.change import Change, ChangeRef, ChangeStatus
from beadmill.processes.box import Health

METHODS = ("merge", "squash", "rebase")


@dataclass(frozen=True, slots=True)
class ChangeDraft:
    """``branch`` at ``head`` is already pushed when this is put.

    ``after_close`` says what becomes of new work on a branch whose change somebody closed: a new change, the old one
    reopened, or a Conflict CHANGE_CLOSED that offers both.
    """

    title: str
    body: str
    branch: str
    base: str
    head: str
    draft: bool = True
    after_close: Literal["new", "reopen", "ask"] = "new"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: str  # pending | passed | failed
    url: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """One review, submitted and not dismissed. The last decision of each author counts; one that is withdrawn is not
    here. ``commit`` is the head they looked at, "" = unknown."""

    author: str
    state: str  # approved | changes_requested | commented
    body: str = ""
    commit: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChangeState:
    """``merge_sha`` is set when merged, wherever that happened. ``repository`` is where the head branch lives, "" when
    that is the base's. ``mergeable`` is about base and head alone; ``blocked`` is why the forge would refuse to merge
    now (a rule, a review, a conflict), "" = nothing known. ``queued``: it waits in a merge queue."""

    change: Change
    body: str
    checks: tuple[Check, ...] = ()
    reviews: tuple[Review, ...] = ()
    merge_sha: str = ""
    repository: str = ""
    mergeable: Literal["yes", "no", "unknown"] = "unknown"
    blocked: str = ""
    queued: bool = False


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
    """``method`` is what was done. ``queued``: a merge queue took it and merges later; ``sha`` is "" until then."""

    sha: str
    base: str
    method: str
    queued: bool = False


class Forge(Protocol):
    @property
    def name(self) -> str: ...

    async def probe(self) -> Health:
        """Reachable, and may we push? Never raises."""
        ...

    async def find(self, branch: str) -> Change | None:
        """The newest change of this head branch, whatever its status."""
        ...

    async def put(self, draft: ChangeDraft) -> Change:
        """Opens or updates; idempotent by head branch. A change that somebody made ready stays ready; a closed or merged
        one with the same head is answered as it is.

        Raises Conflict when the remote head is not ``draft.head`` (HEAD_MISMATCH), when there is nothing to merge
        (NOTHING_TO_MERGE), or for a closed one (``ChangeDraft.after_close``).
        """
        ...

    async def ready(self, change: ChangeRef) -> Change:
        """No draft any more. Idempotent. Raises Conflict when it is closed or merged."""
        ...

    async def read(self, change: ChangeRef) -> ChangeState:
        """Raises NotFound."""
        ...

    def comments(self, change: ChangeRef, since: datetime | None = None) -> AsyncIterator[Comment]:
        """What people wrote on the change and on its lines, oldest first; ``since`` is inclusive."""
        ...

    async def merge(self, change: ChangeRef, *, expected_head: str, method: str = "") -> Merged:
        """``method`` "" = the first of METHODS that the repository allows. Idempotent: a change merged with this head
        answers with its merge, a
        queued one with ``queued``. Raises Stale when the head moved; Conflict when base and head conflict (MERGE_CONFLICT) or a rule of the forge
        stands in the way (MERGE_BLOCKED), and nothing was merged; Refused for a method that it does not have."""
        ...

    async def close(self, change: ChangeRef, *, note: str) -> None:
        """Idempotent. Raises Conflict when it is merged."""
        ...

    async def reopen(self, change: ChangeRef) -> Change:
        """Idempotent. Raises Conflict when it is merged, or when the forge cannot open it again."""
        ...


__all__ = [
    "METHODS",
    "Change",
    "ChangeDraft",
    "ChangeRef",
    "ChangeState",
    "ChangeStatus",
    "Check",
    "Comment",
    "Forge",
    "Merged",
    "Review",
]
