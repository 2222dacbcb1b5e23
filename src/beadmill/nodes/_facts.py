"""Facts about a run that only the journal knows. app.py gives nodes an implementation over the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """``usd`` None = nothing of it was priced. ``agent_seconds`` is working time of all sessions together."""

    tokens: int = 0
    usd: float | None = None
    agent_seconds: float = 0


class RunFacts(Protocol):
    async def approved(self, run: str, kind: str) -> str:
        """sha256 of the document of this kind that the run's newest approval names, "" when there is none."""
        ...

    async def newest(self, run: str, kind: str) -> str:
        """sha256 of the run's newest document of this kind, "" when there is none."""
        ...

    async def place(self, run: str) -> str:
        """ "" when the run holds or can have one of its project's ``parallel_tickets`` places, else who holds them."""
        ...

    async def cost(self, run: str) -> Cost: ...
