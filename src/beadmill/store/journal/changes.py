"""The run's change at its forge, with the fenced decision."""

from __future__ import annotations

import sqlalchemy as sa

from beadmill.domain.values import Event
from beadmill.errors import Conflict
from beadmill.store import tables
from beadmill.store.blobs import insert_ignore
from beadmill.store.db import Tx
from beadmill.store.journal import moves

c = tables.changes


def put(tx: Tx, run: str, *, forge: str, number: int, url: str, branch: str, base: str, head: str, state: str) -> None:
    values = {
        "forge": forge,
        "number": number,
        "url": url,
        "branch": branch,
        "base": base,
        "head": head,
        "state": state,
    }
    if not insert_ignore(tx, c, run_id=run, **values):
        tx.run(sa.update(c).where(c.c.run_id == run).values(**values))
    tx.emit(
        Event("change.put", {"number": number, "head": head, "state": state}), run=run, ticket=moves.ticket_key(tx, run)
    )


def decide(tx: Tx, run: str, decision: str) -> str:
    """Recorded before the act: merge or close, never both. Raises Conflict when the other one was decided."""
    tx.run(sa.update(c).where(c.c.run_id == run, c.c.decision.is_(None)).values(decision=decision))
    fenced = tx.run(sa.select(c.c.decision).where(c.c.run_id == run)).scalar()
    if fenced != decision:
        raise Conflict(f"It was already decided to {fenced} this change", code="DECISION_FENCED")
    return decision


def undecide(tx: Tx, run: str) -> None:
    """The act was refused before anything happened outside: the person may decide anew."""
    tx.run(sa.update(c).where(c.c.run_id == run, c.c.merge_sha.is_(None)).values(decision=None))


def settle(tx: Tx, run: str, state: str, *, merge_sha: str | None = None) -> None:
    tx.run(sa.update(c).where(c.c.run_id == run).values(state=state, merge_sha=merge_sha))
    tx.emit(Event(f"change.{state}", {"sha": merge_sha or ""}), run=run, ticket=moves.ticket_key(tx, run))
