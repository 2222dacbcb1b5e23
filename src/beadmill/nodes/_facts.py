"""Facts about a run that only the journal knows, for the preflight."""

from __future__ import annotations

from typing import Protocol

from beadmill.domain.values import RunId


class RunFacts(Protocol):
    async def approved(self, run: RunId, kind: str) -> str:
        """sha256 of the document of this kind that the newest approval names, "" when there is none."""
        ...

    async def place(self, run: RunId) -> str:
        """"" when the run holds or can have one of its project's ``parallel_tickets`` places, else who holds them."""
        ...
