"""Limits are rows: places taken and given back in the same commits as the work they bound (rule 10)."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import moves

ls = tables.leases
LANE = "lane"  # of a run: where a bead is built beside others


def take(tx: Tx, kind: str, resource: str, holder: str, *, limit: int, host: str) -> bool:
    """A place among ``limit``; a holder that has one keeps it."""
    mine = sa.select(ls.c.holder).where(ls.c.kind == kind, ls.c.resource == resource)
    holders = {x[0] for x in tx.run(mine)}
    if holder in holders:
        return True
    if len(holders) >= limit:
        return False
    tx.run(sa.insert(ls).values(kind=kind, resource=resource, holder=holder, host=host, taken=tx.now))
    return True


def numbered(tx: Tx, kind: str, resource: str, holder: str, *, live: Collection[str], host: str) -> int:
    """The holder's number, from 1: the one it has, else the lowest that none of ``live`` has."""
    rows = tx.run(sa.select(ls.c.resource, ls.c.holder).where(_numbers(kind, resource))).all()
    taken = {row.holder: int(row.resource.rpartition("/")[2]) for row in rows}
    if holder in taken:
        return taken[holder]
    for other in taken.keys() - set(live):
        tx.run(sa.delete(ls).where(ls.c.kind == kind, ls.c.resource == f"{resource}/{taken.pop(other)}"))
    number = next(n for n in range(1, len(taken) + 2) if n not in taken.values())
    tx.run(sa.insert(ls).values(kind=kind, resource=f"{resource}/{number}", holder=holder, host=host, taken=tx.now))
    return number


def drop(tx: Tx, kind: str, resource: str) -> None:
    """All that ``numbered`` gave of a resource."""
    tx.run(sa.delete(ls).where(_numbers(kind, resource)))


def _numbers(kind: str, resource: str) -> sa.ColumnElement[bool]:
    return sa.and_(ls.c.kind == kind, ls.c.resource.startswith(f"{resource}/", autoescape=True))


def free(tx: Tx, holder: str) -> None:
    """All places of a holder go back, and whoever waits for one may try again."""
    _wake(tx, sa.delete(ls).where(ls.c.holder == holder))


def give_back(tx: Tx, kind: str, holder: str) -> None:
    _wake(tx, sa.delete(ls).where(ls.c.holder == holder, ls.c.kind == kind))


def _wake(tx: Tx, gone: sa.Delete) -> None:
    for row in tx.run(gone.returning(ls.c.kind, ls.c.resource)).all():
        moves.woken(tx, "lease", f"{row.kind}/{row.resource}:", prefix=True)
