"""Content-addressed bytes and the artifact rows that name them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.base import Document
from beadmill.domain.machine import VisitState
from beadmill.domain.values import ArtifactRef, Event, Sha
from beadmill.errors import NotFound
from beadmill.store import tables
from beadmill.store.db import Tx

a, b, v = tables.artifacts, tables.blobs, tables.visits


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """Who, when, from which parent; ``ref.sha256`` names the bytes."""

    ref: ArtifactRef
    run: str
    visit: str
    version: int
    author: str
    parent: int | None
    created: str


def insert_ignore(tx: Tx, table: sa.Table, **values: object) -> bool:
    """INSERT … ON CONFLICT DO NOTHING on both dialects. True when the row is new."""
    if tx.postgres:
        from sqlalchemy.dialects.postgresql import insert as pg_insert

        return tx.run(pg_insert(table).values(**values).on_conflict_do_nothing()).rowcount == 1
    from sqlalchemy.dialects.sqlite import insert as lite_insert

    return tx.run(lite_insert(table).values(**values).on_conflict_do_nothing()).rowcount == 1


def put_blob(tx: Tx, data: bytes) -> Sha:
    sha = Sha(hashlib.sha256(data).hexdigest())
    insert_ignore(tx, b, sha256=sha, size=len(data), data=data)
    return sha


def get_blob(conn: Connection, sha: str) -> bytes:
    data = conn.execute(sa.select(b.c.data).where(b.c.sha256 == sha)).scalar()
    if data is None:
        raise NotFound(f"There is no stored content {sha}")
    return bytes(data)


def put_document(tx: Tx, doc: Document, *, run: str, visit: str, author: str, parent: int | None = None) -> ArtifactRef:
    """Same bytes of the same kind in the same visit: same row. Emits ``artifact.put`` for a new row."""
    if (known := same_document(tx.conn, doc, visit)) is not None:
        return known
    sha = put_blob(tx, doc.canonical())
    newest = tx.run(sa.select(sa.func.max(a.c.version)).where(a.c.run_id == run, a.c.kind == doc.kind)).scalar()
    row_id = tx.run(
        sa.insert(a)
        .values(
            kind=doc.kind,
            run_id=run,
            visit_id=visit,
            version=(newest or 0) + 1,
            sha256=sha,
            author=author,
            parent=parent,
            created=tx.now,
        )
        .returning(a.c.id)
    ).scalar_one()
    tx.emit(
        Event("artifact.put", {"kind": doc.kind, "row": row_id, "sha256": sha, "version": (newest or 0) + 1}),
        run=run,
        visit=visit,
    )
    return ArtifactRef(doc.kind, sha, int(row_id))


def same_document(conn: Connection, doc: Document, visit: str) -> ArtifactRef | None:
    """The row of these very bytes in this visit."""
    query = sa.select(a.c.id).where(a.c.visit_id == visit, a.c.kind == doc.kind, a.c.sha256 == doc.sha256)
    row = conn.execute(query).scalar()
    return None if row is None else ArtifactRef(doc.kind, doc.sha256, int(row))


def artifact(conn: Connection, row: int) -> ArtifactRow:
    found = conn.execute(sa.select(a).where(a.c.id == row)).mappings().first()
    if found is None:
        raise NotFound(f"There is no artifact {row}")
    return _row(found)


def hand_on(tx: Tx, made: Sequence[ArtifactRef], *, to: str) -> None:
    """The documents a rework outcome stands for become the next visit's own, since those of a superseded visit do not
    count: the bead that says what to mend, above all."""
    for ref in made:
        row = artifact(tx.conn, ref.row)
        newest = tx.run(sa.select(sa.func.max(a.c.version)).where(a.c.run_id == row.run, a.c.kind == ref.kind)).scalar()
        tx.run(
            sa.insert(a).values(
                kind=ref.kind, run_id=row.run, visit_id=to, version=(newest or 0) + 1, sha256=ref.sha256, author=row.author,
                parent=ref.row, created=tx.now,
            )
        )  # fmt: skip


def hand_over(tx: Tx, old: str, *, to: str) -> None:
    """What visit ``old`` had been handed on goes to the next visit of its node: a send back forgets no finding."""
    parent = a.alias()
    query = sa.select(a).join(parent, parent.c.id == a.c.parent)
    query = query.where(a.c.visit_id == old, parent.c.run_id == a.c.run_id, parent.c.visit_id != old)
    rows = {row["kind"]: _row(row).ref for row in tx.run(query.order_by(a.c.version)).mappings()}
    hand_on(tx, tuple(rows.values()), to=to)


def newest(conn: Connection, run: str, kind: str) -> ArtifactRow | None:
    """The row of this kind that holds in the run's living history (superseded visits do not count): what the last
    finished visit stands for, unless something was put after it ended; else the last version.

    The outcome comes first since an edit may be taken back: then the approved row is not the highest version.
    """
    living = sa.select(a, v.c.ended, v.c.made).join(v, v.c.id == a.c.visit_id)
    query = living.where(a.c.run_id == run, a.c.kind == kind, v.c.state != VisitState.SUPERSEDED)
    rows = conn.execute(query.order_by(a.c.version)).mappings().all()
    if not rows:
        return None
    stood_for = [r for r in rows if r["id"] in r["made"]]
    chosen = max(stood_for, key=lambda r: str(r["ended"]), default=None)
    later = [r for r in rows if chosen is not None and r["created"] > str(chosen["ended"])]
    return _row(rows[-1] if chosen is None else (later or [chosen])[-1])


def listed(conn: Connection, run: str, kind: str | None = None) -> Sequence[ArtifactRow]:
    query = sa.select(a).where(a.c.run_id == run).order_by(a.c.id)
    if kind:
        query = query.where(a.c.kind == kind)
    return [_row(r) for r in conn.execute(query).mappings()]


def _row(r: sa.RowMapping) -> ArtifactRow:
    ref = ArtifactRef(r["kind"], Sha(r["sha256"]), int(r["id"]))
    return ArtifactRow(ref, r["run_id"], r["visit_id"], r["version"], r["author"], r["parent"], r["created"])
