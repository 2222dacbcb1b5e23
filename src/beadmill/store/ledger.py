"""Ledger and Changes: what nodes write through, one commit a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beadmill.domain.bead import Attempt
from beadmill.domain.ended import CommandResult
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Json, VisitRef
from beadmill.store.db import Store
from beadmill.store.journal import attempts, changes


class Ledger:
    """The bead ledger of a run. Every method is idempotent by its key or by the attempt's number."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(
        self, run: str, visit: str | VisitRef, bead: str, *, bead_sha: str, tree: str, start_commit: str, key: str
    ) -> Attempt:
        return await self._store.write(
            lambda tx: attempts.begin(
                tx, run, str(visit), bead, bead_sha=bead_sha, tree=tree, start_commit=start_commit, key=key
            )
        )

    async def finish(
        self,
        run: str,
        bead: str,
        n: int,
        *,
        state: AttemptState,
        end_commit: str = "",
        note: str = "",
        proof: Mapping[str, Json] | None = None,
        sessions: Sequence[str] = (),
    ) -> bool:
        return await self._store.write(
            lambda tx: attempts.finish(
                tx, run, bead, n, state=state, end_commit=end_commit, note=note, proof=proof, sessions=sessions
            )
        )

    async def notes(self, run: str, bead: str, bead_sha: str) -> tuple[str, ...]:
        return await self._store.read(lambda conn: attempts.notes(conn, run, bead, bead_sha))

    async def attempts(self, run: str) -> tuple[Attempt, ...]:
        return await self._store.read(lambda conn: attempts.listed(conn, run))

    async def check(
        self, run: str, visit: str | VisitRef, *, bead: str, purpose: str, result: CommandResult, commit: str, key: str
    ) -> None:
        await self._store.write(
            lambda tx: attempts.check(tx, run, str(visit), bead=bead, purpose=purpose, result=result, commit=commit, key=key)
        )


class Changes:
    """The run's change, with its fenced decision."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(
        self, run: str, *, forge: str, number: int, url: str, branch: str, base: str, head: str, state: str
    ) -> None:
        await self._store.write(
            lambda tx: changes.put(
                tx, run, forge=forge, number=number, url=url, branch=branch, base=base, head=head, state=state
            )
        )

    async def decide(self, run: str, decision: str) -> str:
        return await self._store.write(lambda tx: changes.decide(tx, run, decision))

    async def undecide(self, run: str) -> None:
        await self._store.write(lambda tx: changes.undecide(tx, run))

    async def merged(self, run: str, sha: str) -> None:
        await self._store.write(lambda tx: changes.settle(tx, run, "merged", merge_sha=sha))

    async def closed(self, run: str) -> None:
        await self._store.write(lambda tx: changes.settle(tx, run, "closed"))
