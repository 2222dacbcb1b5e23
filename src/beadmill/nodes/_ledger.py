"""What nodes write to the run's books: attempts at beads and checks. ``store.ledger.Ledger`` is the implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from beadmill.artifacts.setup import CommandRun
from beadmill.domain.bead import Attempt
from beadmill.domain.ended import CommandResult
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Json, RunId, VisitRef
from beadmill.proof.runs import result_of


class BeadLedger(Protocol):
    """Every write is idempotent: ``begin`` and ``check`` by key, ``finish`` by (run, bead, n)."""

    async def begin(
        self, run: RunId, visit: VisitRef, bead: str, *, bead_sha: str, tree: str, start_commit: str, key: str
    ) -> Attempt: ...

    async def finish(
        self,
        run: RunId,
        bead: str,
        n: int,
        *,
        state: AttemptState,
        end_commit: str = "",
        note: str = "",
        proof: Mapping[str, Json] = ...,
        sessions: Sequence[str] = (),
    ) -> None:
        """Raises Conflict when the attempt already ended in another way."""
        ...

    async def notes(self, run: RunId, bead: str, bead_sha: str) -> tuple[str, ...]:
        """What earlier attempts and people left for the next one, oldest first."""
        ...

    async def attempts(self, run: RunId) -> tuple[Attempt, ...]: ...

    async def check(
        self, run: RunId, visit: VisitRef, *, bead: str, purpose: str, result: CommandResult, commit: str, key: str
    ) -> None: ...


async def book(
    ledger: BeadLedger, visit: VisitRef, runs: Sequence[CommandRun], *, commit: str, key: str, bead: str = ""
) -> None:
    """One ``checks`` row per command that Beadmill ran."""
    for n, run in enumerate(runs):
        await ledger.check(
            visit.run, visit, bead=bead, purpose=run.purpose, result=result_of(run), commit=commit, key=f"{key}.{n}"
        )
