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

a, b, v, e = tables.artifacts, tables.blobs, tables.visits, tables.events


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

        made = pg_insert(table).values(**values).on_conflict_do_nothing()
        return tx.run(made.returning(sa.literal(1))).first() is not None  # rowcount is not told for an insert here
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
    return put_anew(tx, doc, run=run, visit=visit, author=author, parent=parent)


def put_anew(tx: Tx, doc: Document, *, run: str, visit: str, author: str, parent: int | None = None) -> ArtifactRef:
    """A row of its own, whatever the visit has already. Emits ``artifact.put``."""
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
    put = ArtifactRef(doc.kind, sha, int(row_id))
    _told(tx, put, run, visit, (newest or 0) + 1)
    return put


def _told(tx: Tx, put: ArtifactRef, run: str, visit: str, version: int) -> None:
    data = {"kind": put.kind, "row": put.row, "sha256": put.sha256, "version": version}
    tx.emit(Event("artifact.put", data), run=run, visit=visit)


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
        handed = tx.run(
            sa.insert(a).values(
                kind=ref.kind, run_id=row.run, visit_id=to, version=(newest or 0) + 1, sha256=ref.sha256, author=row.author,
                parent=ref.row, created=tx.now,
            ).returning(a.c.id)
        ).scalar_one()  # fmt: skip
        _told(tx, ArtifactRef(ref.kind, ref.sha256, int(handed)), row.run, to, (newest or 0) + 1)


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

    The outcome comes first since an edit may be taken back: then the approved row is not the highest version. Before
    and after are told by the numbers of events, since a clock may be set back.
    """
    living = sa.select(a, v.c.ended, v.c.made).join(v, v.c.id == a.c.visit_id)
    query = living.where(a.c.run_id == run, a.c.kind == kind, v.c.state != VisitState.SUPERSEDED)
    rows = conn.execute(query.order_by(a.c.version)).mappings().all()
    if not rows:
        return None
    stood_for = [r for r in rows if r["id"] in r["made"]]
    if not stood_for:
        return _row(rows[-1])
    ends = _done(conn, run) if len(stood_for) > 1 else {}
    chosen = max(stood_for, key=lambda r: (ends.get(r["visit_id"], 0), r["id"]))
    return _row(_put_later(conn, run, chosen, [r for r in rows if r["id"] > chosen["id"]]) or chosen)


def _done(conn: Connection, run: str) -> dict[str, int]:
    """Visit → the event that ended it. A visit that a rerun kept has none."""
    query = sa.select(e.c.visit_id, sa.func.max(e.c.seq)).where(e.c.run_id == run, e.c.kind == "visit.done")
    return {row[0]: row[1] for row in conn.execute(query.group_by(e.c.visit_id))}


def _put_later(
    conn: Connection, run: str, chosen: sa.RowMapping, after: Sequence[sa.RowMapping]
) -> sa.RowMapping | None:
    """The last of ``after`` that was put when the visit of ``chosen`` had ended; the others are edits taken back."""
    end = _done(conn, run).get(chosen["visit_id"]) if after else None
    query = sa.select(e.c.seq, e.c.data).where(e.c.run_id == run, e.c.kind == "artifact.put")
    puts = {row.data["row"]: row.seq for row in conn.execute(query)} if end is not None else {}

    def later(row: sa.RowMapping) -> bool:
        if end is None or row["id"] not in puts:  # a rerun's copy has no events of its own, only the times
            return bool(row["created"] > str(chosen["ended"]))
        return bool(puts[row["id"]] > end)

    return next((row for row in reversed(after) if later(row)), None)


def listed(conn: Connection, run: str, kind: str | None = None) -> Sequence[ArtifactRow]:
    query = sa.select(a).where(a.c.run_id == run).order_by(a.c.id)
    if kind:
        query = query.where(a.c.kind == kind)
    return [_row(r) for r in conn.execute(query).mappings()]


def _row(r: sa.RowMapping) -> ArtifactRow:
    ref = ArtifactRef(r["kind"], Sha(r["sha256"]), int(r["id"]))
    return ArtifactRow(ref, r["run_id"], r["visit_id"], r["version"], r["author"], r["parent"], r["created"])
