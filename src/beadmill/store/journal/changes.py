"""The run's change at its forge, with the fenced decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import sqlalchemy as sa

from beadmill.domain.change import Change
from beadmill.domain.values import Event
from beadmill.errors import NotFound
from beadmill.store import tables
from beadmill.store.blobs import insert_ignore
from beadmill.store.db import Tx
from beadmill.store.journal import moves

Decision = Literal["merge", "close"]
c = tables.changes


def put(tx: Tx, run: str, change: Change, *, forge: str) -> None:
    """The same once more tells nobody anything."""
    values = {
        "forge": forge,
        "number": change.ref.number,
        "url": change.url,
        "branch": change.branch,
        "base": change.base,
        "head": change.head,
        "state": change.status,
    }
    if not insert_ignore(tx, c, run_id=run, **values):
        if _is(tx, run, values):
            return
        tx.run(sa.update(c).where(c.c.run_id == run).values(**values))
    tx.emit(
        Event("change.put", {"number": change.ref.number, "head": change.head, "state": change.status}),
        run=run,
        ticket=moves.ticket_key(tx, run),
    )


def _is(tx: Tx, run: str, values: Mapping[str, object]) -> bool:
    row = tx.run(sa.select(c).where(c.c.run_id == run)).mappings().first()
    return row is not None and all(row[name] == value for name, value in values.items())


def decide(tx: Tx, run: str, decision: Decision) -> Decision:
    """Recorded before the act: merge or close, never both. Returns the one that holds, which may be the opposite.

    Raises NotFound when the run has no change.
    """
    tx.run(sa.update(c).where(c.c.run_id == run, c.c.decision.is_(None)).values(decision=decision))
    fenced = tx.run(sa.select(c.c.decision).where(c.c.run_id == run)).scalar()
    if fenced is None:
        raise NotFound("This run has no change yet", code="NO_CHANGE")
    return cast("Decision", fenced)


def withdraw(tx: Tx, run: str, decision: Decision) -> None:
    """The act provably did not happen: the person may decide anew."""
    query = sa.update(c).where(c.c.run_id == run, c.c.decision == decision, c.c.merge_sha.is_(None))
    tx.run(query.values(decision=None))


def settle(tx: Tx, run: str, state: str, *, merge_sha: str | None = None) -> None:
    values = {"state": state, "merge_sha": merge_sha}
    if _is(tx, run, values):
        return
    tx.run(sa.update(c).where(c.c.run_id == run).values(**values))
    tx.emit(Event(f"change.{state}", {"sha": merge_sha or ""}), run=run, ticket=moves.ticket_key(tx, run))
