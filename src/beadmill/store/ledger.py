"""Ledger, Changes and Facts: what nodes read and write of the run's books, one commit a call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from beadmill.artifacts.qa import Evidence, QaRound
from beadmill.domain.bead import Attempt
from beadmill.domain.change import Change
from beadmill.domain.ended import CommandResult
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Json, RunId, VisitRef
from beadmill.store.db import Store
from beadmill.store.journal import attempts, changes, facts, qa


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
        run: RunId,
        bead: str,
        n: int,
        *,
        state: AttemptState,
        end_commit: str = "",
        note: str = "",
        proof: Mapping[str, Json] | None = None,
        sessions: Sequence[str] = (),
    ) -> None:
        """Raises Conflict when the attempt already ended in another way."""
        await self._store.write(
            lambda tx: attempts.finish(
                tx, run, bead, n, state=state, end_commit=end_commit, note=note, proof=proof, sessions=sessions
            )
        )

    async def notes(self, run: RunId, bead: str, bead_sha: str) -> tuple[str, ...]:
        return await self._store.read(lambda conn: attempts.notes(conn, run, bead, bead_sha))

    async def attempts(self, run: RunId) -> tuple[Attempt, ...]:
        return await self._store.read(lambda conn: attempts.listed(conn, run))

    async def lane(self, run: RunId, holder: str, *, live: Collection[str]) -> int:
        """See journal.facts.lane."""
        return await self._store.write(lambda tx: facts.lane(tx, run, holder, live=live))

    async def rounds(self, run: RunId) -> tuple[QaRound, ...]:
        """Every finished round of manual QA, oldest first."""
        return await self._store.read(lambda conn: qa.rounds(conn, run))

    async def check(
        self, run: str, visit: str | VisitRef, *, bead: str, purpose: str, result: CommandResult, commit: str, key: str
    ) -> None:
        await self._store.write(
            lambda tx: attempts.check(
                tx, run, str(visit), bead=bead, purpose=purpose, result=result, commit=commit, key=key
            )
        )


class Changes:
    """The run's change, with its fenced decision."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, run: RunId, change: Change, *, forge: str) -> None:
        await self._store.write(lambda tx: changes.put(tx, run, change, forge=forge))

    async def decide(self, run: RunId, decision: changes.Decision) -> changes.Decision:
        return await self._store.write(lambda tx: changes.decide(tx, run, decision))

    async def withdraw(self, run: RunId, decision: changes.Decision) -> None:
        await self._store.write(lambda tx: changes.withdraw(tx, run, decision))

    async def merged(self, run: RunId, sha: str) -> None:
        await self._store.write(lambda tx: changes.settle(tx, run, "merged", merge_sha=sha))

    async def closed(self, run: RunId) -> None:
        await self._store.write(lambda tx: changes.settle(tx, run, "closed"))


class Facts:
    """What only the journal knows of a run."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def approved(self, run: RunId, kind: str) -> str:
        return await self._store.read(lambda conn: facts.approved(conn, run, kind))

    async def cost(self, run: RunId) -> facts.Cost:
        return await self._store.read(lambda conn: facts.cost(conn, run))

    async def rounds(self, run: RunId) -> tuple[QaRound, ...]:
        """Every finished round of manual QA, oldest first."""
        return await self._store.read(lambda conn: qa.rounds(conn, run))


class QaBooks:
    """What manual QA keeps beside its documents: files that people added, and the tickets it made."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def evidence(self, visit: VisitRef) -> tuple[Evidence, ...]:
        """In the order in which they were added; removed ones left out."""
        return await self._store.read(lambda conn: qa.evidence(conn, str(visit)))

    async def earlier(self, visit: VisitRef) -> tuple[qa.Earlier, ...]:
        """The rounds of the run before this visit, oldest first."""
        return await self._store.read(lambda conn: qa.earlier(conn, visit))

    async def improve(self, wish: qa.Wish, *, key: str) -> str:
        """A draft ticket; the same ``key`` is the same ticket. Returns its key. Raises Conflict without a project."""
        return await self._store.write(lambda tx: qa.improve(tx, wish, key=key))
