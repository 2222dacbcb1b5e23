"""Checks into the books: one row per command that Beadmill ran."""

from __future__ import annotations

from collections.abc import Sequence

from beadmill.artifacts.setup import CommandRun
from beadmill.domain.values import VisitRef
from beadmill.proof.runs import result_of
from beadmill.store.ledger import Ledger


async def book(
    ledger: Ledger, visit: VisitRef, runs: Sequence[CommandRun], *, commit: str, key: str, bead: str = ""
) -> None:
    """Idempotent by ``key``."""
    for n, run in enumerate(runs):
        await ledger.check(
            visit.run,
            visit,
            bead=bead,
            purpose=run.purpose,
            result=result_of(run),
            commit=commit,
            key=f"{key}.{n}",
        )
