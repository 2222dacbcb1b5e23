"""The run's change on its forge, as the journal knows it. Decisions are fenced: written before the act, never undone."""

from __future__ import annotations

from typing import Literal, Protocol

from beadmill.domain.values import RunId
from beadmill.forges.contract import Change

Decision = Literal["merge", "close"]


class Changes(Protocol):
    """Rows of ``changes``; the implementation writes through the journal."""

    async def put(self, run: RunId, change: Change, *, forge: str) -> None:
        """Inserts or updates the run's change: number, url, branch, base, head, state."""
        ...

    async def decide(self, run: RunId, decision: Decision) -> Decision:
        """Records the decision when there is none; returns the one that holds, which may be the opposite."""
        ...

    async def withdraw(self, run: RunId, decision: Decision) -> None:
        """Lifts a fence whose act was proven not to have happened (the head moved, a conflict)."""
        ...

    async def merged(self, run: RunId, sha: str) -> None: ...

    async def closed(self, run: RunId) -> None: ...
