"""Artifacts: read, compare, and edit what an open gate shows."""

from __future__ import annotations

import asyncio
import difflib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts import text as texts
from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.replan import kept
from beadmill.domain.values import Actor, Json, Permission
from beadmill.errors import Conflict, Invalid, Missing, NotFound, Stale
from beadmill.operations import _amend, _replan, _rows, views
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import once
from beadmill.operations.rules import require
from beadmill.store import blobs
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import gates as journal

a = t.artifacts.c


async def listing(
    ports: Ports,
    *,
    actor: Actor,
    run: str = "",
    ticket: str = "",
    kind: str = "",
    visit: str = "",
    cursor: str = "",
    limit: int | None = None,
) -> Page[views.ArtifactLine]:
    """Oldest first. With ``ticket``, the artifacts of its current run."""
    require(actor, Permission.READ)
    most = bounded(limit)
    query = _query().order_by(a.id).limit(most + 1)
    for column, value in ((a.run_id, run), (a.kind, kind), (a.visit_id, visit)):
        query = query.where(column == value) if value else query
    if ticket:
        query = query.join(t.tickets, t.tickets.c.run_id == a.run_id).where(t.tickets.c.key == ticket)
    if cursor:
        query = query.where(beyond([(a.id, False)], decode(cursor, 1)))

    def read(conn: Connection) -> Page[views.ArtifactLine]:
        rows, after = cut(list(conn.execute(query)), most, ["id"])
        return Page(items=tuple(views.ArtifactLine(**_fields(row)) for row in rows), next=after)

    return await ports.store.read(read)


def _query() -> sa.Select[Any]:
    return sa.select(t.artifacts, t.blobs.c.size).join(t.blobs, t.blobs.c.sha256 == a.sha256)


def _fields(row: Any) -> dict[str, Any]:
    return {
        "row": row.id,
        "kind": row.kind,
        "run": row.run_id,
        "visit": row.visit_id,
        "version": row.version,
        "sha256": row.sha256,
        "author": row.author,
        "parent": row.parent,
        "size": row.size,
        "created": row.created,
    }


async def show(ports: Ports, row: int, *, actor: Actor) -> views.ArtifactView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: view(conn, row))


def view(conn: Connection, row: int) -> views.ArtifactView:
    found = _row(conn, row)
    data = blobs.get_blob(conn, found.sha256)
    form: Literal["yaml", "jsonl"] = "jsonl" if found.kind == Beads.kind else "yaml"
    edits: Literal["", "gate", "approve", "replan"] = "gate" if _showing(conn, found) else ""
    if not edits and _amend.amendable(conn, found):
        edits = "approve"
    if not edits and found.kind == Beads.kind and _replan.possible(conn, found.run_id, row):
        edits = "replan"
    text = texts.as_text(found.kind, data)
    return views.ArtifactView(**_fields(found), form=form, text=text, document=json.loads(data), edits=edits)


def _row(conn: Connection, row: int) -> Any:
    found = conn.execute(_query().where(a.id == row)).first()
    if found is None:
        raise NotFound(f"there is no artifact {row}", code="ARTIFACT_NOT_FOUND", next="beadmill artifact list")
    return found


async def raw(ports: Ports, row: int, *, actor: Actor) -> tuple[bytes, str]:
    """The canonical bytes and their sha256. Raises NotFound."""
    require(actor, Permission.READ)

    def read(conn: Connection) -> tuple[bytes, str]:
        found = _row(conn, row)
        return blobs.get_blob(conn, found.sha256), str(found.sha256)

    return await ports.store.read(read)


async def diff(ports: Ports, row: int, *, actor: Actor, against: int | None = None) -> views.DiffView:
    """Against another version, else the parent, else the version before. Raises NotFound, Invalid across kinds."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _diff(conn, row, against))


def _diff(conn: Connection, row: int, against: int | None) -> views.DiffView:
    new = _row(conn, row)
    other = against if against is not None else (_parent(conn, new) or _before(conn, new))
    if other is None:
        return views.DiffView(row=row, against=None, diff="")
    old = _row(conn, other)
    if old.kind != new.kind:
        raise Invalid(f"{old.kind} {other} and {new.kind} {row} cannot be compared", code="KIND")
    before, after = (
        texts.readable(r.kind, blobs.get_blob(conn, r.sha256)).splitlines(keepends=True) for r in (old, new)
    )
    left, right = (f"{r.kind} v{r.version} ({r.author})" for r in (old, new))
    return views.DiffView(row=row, against=other, diff="".join(difflib.unified_diff(before, after, left, right)))


def _parent(conn: Connection, row: Any) -> int | None:
    """The version it was edited from; a document made from another kind (beads from a blueprint) has none."""
    return row.parent if row.parent is not None and _row(conn, row.parent).kind == row.kind else None


def _before(conn: Connection, row: Any) -> int | None:
    query = sa.select(a.id).where(a.run_id == row.run_id, a.kind == row.kind, a.version == row.version - 1)
    return conn.execute(query).scalar()


async def check(
    ports: Ports, row: int, *, actor: Actor, text: str | None = None, document: Json = None
) -> views.CheckedView:
    """Everything that keeps this text, or JSON, from being a new version of ``row``. Nothing is saved.

    Raises NotFound, Invalid when neither is given or nobody edits this kind.
    """
    require(actor, Permission.READ)
    kind = await ports.store.read(lambda conn: str(_row(conn, row).kind))
    if text is None and document is None:
        raise Invalid("send the text or document to check", code="EMPTY_EDIT", kept="nothing was changed")
    if text is not None:
        checked = await asyncio.to_thread(texts.check, kind, text)
    else:
        checked = await asyncio.to_thread(texts.check_value, kind, document)
    problems = tuple(views.DocumentProblem(**asdict(one)) for one in checked.problems)
    return views.CheckedView(row=row, kind=kind, valid=not problems, problems=problems)


# --- edit ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Edit:
    row: int
    etag: str | None
    text: str | None
    document: Json
    approve: bool = False
    note: str = ""
    key: str = ""


async def edit(
    ports: Ports,
    row: int,
    *,
    etag: str | None,
    actor: Actor,
    text: str | None = None,
    document: Json = None,
    approve: bool = False,
    note: str = "",
    key: str = "",
) -> views.EditedView:
    """A new version by this person, from its text or its JSON; the open gates that showed ``row`` now show it.

    A plan that is being built takes an edit while its run is paused; beads that are done stay as they are.

    With ``approve`` it is saved and approved in one action: at its gate, or, for an interview or PRD approved before,
    until preflight begins; then everything made from it is superseded and begins again.

    Raises Missing without ``etag``, Stale when it is not ``row``'s or a newer version stands, Conflict when no open
    gate shows it, Refused after preflight has begun, Unprocessable with line and column for a text that is no such
    document.
    """
    require(actor, Permission.DECIDE)
    wish = _Edit(row, etag, text, document, approve, note, key)
    request = {"row": row, "etag": etag, "text": text, "document": document, "approve": approve, "note": note}

    def act(tx: Tx) -> views.EditedView:
        done = once(
            tx,
            key,
            operation="artifacts.edit",
            actor=actor,
            request=request,
            now=tx.now,
            act=lambda: _edit(tx, wish, actor),
        )
        lines = [_rows.gate_line(_rows.gate_row(tx.conn, gate)) for gate in done["gates"]]
        return views.EditedView(
            **view(tx.conn, done["row"]).model_dump(), gates=tuple(lines), restarted=tuple(done["restarted"])
        )

    edited = await ports.store.write(act)
    if approve:
        ports.engine.ring()
    return edited


def _edit(tx: Tx, wish: _Edit, actor: Actor) -> dict[str, Any]:
    row = _row(tx.conn, wish.row)
    if wish.etag is None:
        raise Missing("say which version you edited (If-Match)", code="IF_MATCH_REQUIRED", kept="your input")
    gates = _showing(tx.conn, row)
    _current(tx.conn, row, wish.etag, gates, amends=wish.approve)
    doc = texts.from_text(row.kind, wish.text) if wish.text is not None else _document(row.kind, wish.document)
    if not gates and isinstance(doc, Beads) and not wish.approve:
        return _replanned(tx, row, doc, wish, actor)
    if not gates:
        return _amend.after_approval(tx, row, doc, actor=actor, note=wish.note, key=wish.key)
    old = blobs.artifact(tx.conn, wish.row).ref
    new = blobs.put_document(tx, doc, run=row.run_id, visit=row.visit_id, author=str(actor), parent=wish.row)
    if new.row != old.row:
        for gate in gates:
            journal.rebind(tx, gate.id, old, new, actor=actor)
    shown = [gate.id for gate in gates]
    if wish.approve:
        _amend.at_gates(tx, shown, actor=actor, note=wish.note, key=wish.key)
    return {"row": new.row, "gates": shown, "restarted": []}


def _replanned(tx: Tx, row: Any, made: Beads, wish: _Edit, actor: Actor) -> dict[str, Any]:
    here = _replan.standing(tx.conn, row.run_id)
    kept(here.plan, made, done=here.done)
    new = _replan.save(tx, here, made, actor=actor, note=wish.note, changes=["edited as a whole"])
    return {"row": new, "gates": [], "restarted": []}


def _document(kind: str, document: Json) -> Document:
    if document is None:
        raise Invalid("send the edited text or document", code="EMPTY_EDIT", kept="nothing was changed")
    return texts.from_value(kind, document)


def _showing(conn: Connection, row: Any) -> list[Any]:
    query = _rows.gate_query().where(t.gates.c.run_id == row.run_id, t.gates.c.state == "open")
    return [gate for gate in conn.execute(query) if any(int(shown[1]) == row.id for shown in gate.shows)]


def _current(conn: Connection, row: Any, etag: str, gates: list[Any], *, amends: bool) -> None:
    if amends and not gates and etag == row.sha256:
        return  # what holds is looked up when it is amended
    newest = conn.execute(
        _query().where(a.run_id == row.run_id, a.kind == row.kind).order_by(a.version.desc()).limit(1)
    ).one()
    if etag != row.sha256 or (not gates and newest.id != row.id):
        raise Stale(
            f"{newest.author} saved version {newest.version} of this {row.kind} at {newest.created}",
            code="ARTIFACT_STALE",
            details={"row": newest.id, "sha256": newest.sha256, "by": newest.author, "at": newest.created},
            kept="your input",
            next=f"compare it with the newest version: beadmill artifact diff {newest.id}",
        )
    if not gates and row.kind == Beads.kind and _replan.at_work(conn, row.run_id):
        return  # a plan at work is changed while its run is paused: that is looked up when it is saved
    if not gates:
        raise Conflict(
            f"no open gate shows this {row.kind}",
            code="NOT_AT_A_GATE",
            kept="your input",
            next=_amend.way(conn, row),
        )
