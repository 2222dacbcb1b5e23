"""Autosaved answers and edits: compare-and-set by revision, one per gate or artifact and user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Json, Permission
from beadmill.errors import NotFound, Stale
from beadmill.operations import views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import countdown

d = t.drafts.c


async def show(ports: Ports, target: str, *, actor: Actor) -> views.DraftView:
    """Revision 0 and no body when nothing was saved."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _view(conn, target, actor))


async def among(ports: Ports, targets: Sequence[str], *, actor: Actor) -> tuple[views.DraftView, ...]:
    """Those of ``targets`` that have a draft of this person, newest first."""
    require(actor, Permission.READ)
    query = sa.select(t.drafts).where(d.target.in_(targets), d.user == actor.name).order_by(d.updated.desc())

    def read(conn: Connection) -> tuple[views.DraftView, ...]:
        return tuple(
            views.DraftView(target=row.target, revision=row.revision, body=row.body, updated=row.updated)
            for row in conn.execute(query)
        )

    return await ports.store.read(read)


async def save(ports: Ports, target: str, body: Json, *, revision: int, actor: Actor) -> views.DraftView:
    """Saves over ``revision``; the new one is one higher. Whoever writes at a question stops its countdown.

    Raises Stale when another window saved in between.
    """
    require(actor, Permission.DECIDE)
    return await ports.store.write(lambda tx: _save(tx, target, body, revision, actor))


async def discard(ports: Ports, target: str, *, revision: int, actor: Actor) -> views.DraftView:
    """Forgets the draft of that revision; none is no error. Raises Stale when another window saved in between."""
    require(actor, Permission.DECIDE)
    return await ports.store.write(lambda tx: _discard(tx, target, revision, actor))


def _discard(tx: Tx, target: str, revision: int, actor: Actor) -> views.DraftView:
    now = _view(tx.conn, target, actor)
    _unchanged(now, revision)
    tx.run(sa.delete(t.drafts).where(d.target == target, d.user == actor.name))
    return _view(tx.conn, target, actor)


def _unchanged(now: views.DraftView, revision: int) -> None:
    if now.revision != revision:
        raise Stale(
            "this draft was saved in another window in the meantime",
            code="DRAFT_STALE",
            details={"revision": now.revision, "yours": revision, "updated": now.updated, "body": now.body},
            kept="the other window's text is kept; yours is still in this one",
            next="take over the newer text, or save again over its revision",
        )


def _save(tx: Tx, target: str, body: Json, revision: int, actor: Actor) -> views.DraftView:
    _exists(tx.conn, target)
    now = _view(tx.conn, target, actor)
    _unchanged(now, revision)
    values: dict[str, Any] = {"revision": revision + 1, "body": body, "updated": tx.now}
    if revision == 0:
        tx.run(sa.insert(t.drafts).values(target=target, user=actor.name, **values))
    else:
        tx.run(sa.update(t.drafts).where(d.target == target, d.user == actor.name).values(**values))
    countdown.stop(tx, target, actor=actor)
    return _view(tx.conn, target, actor)


def _view(conn: Connection, target: str, actor: Actor) -> views.DraftView:
    row = conn.execute(sa.select(t.drafts).where(d.target == target, d.user == actor.name)).first()
    if row is None:
        return views.DraftView(target=target, revision=0, body=None, updated=None)
    return views.DraftView(target=target, revision=row.revision, body=row.body, updated=row.updated)


def _exists(conn: Connection, target: str) -> None:
    """A draft belongs to a gate (its id) or an artifact (its row)."""
    if target.isdecimal():
        found = conn.execute(sa.select(t.artifacts.c.id).where(t.artifacts.c.id == int(target))).first()
    else:
        found = conn.execute(sa.select(t.gates.c.id).where(t.gates.c.id == target)).first()
    if found is None:
        raise NotFound(f"there is no gate or artifact {target}", code="DRAFT_TARGET")
