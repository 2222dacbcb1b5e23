"""Manual QA in the books: evidence, earlier rounds, and tickets that a round made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.base import Document
from beadmill.artifacts.qa import Evidence, QaChecklist, QaResults, QaRound
from beadmill.domain.values import SYSTEM, Actor, Event, Json, VisitRef
from beadmill.errors import Conflict
from beadmill.store import blobs, tables
from beadmill.store.db import Tx
from beadmill.store.journal import tickets

D = TypeVar("D", bound=Document)
e, m, p = tables.qa_evidence, tables.qa_improvements, tables.projects
COLUMNS = (e.c.id, e.c.item, e.c.name, e.c.media, e.c.size, e.c.sha256)


@dataclass(frozen=True, slots=True)
class Earlier:
    """One round before: what was asked, what was found, how it ended."""

    checklist: QaChecklist
    results: QaResults
    summary: QaRound


@dataclass(frozen=True, slots=True)
class Wish:
    """A ticket to be made: ``values`` as tickets have them, ``origin`` what it comes of, ``evidence`` ids to copy."""

    visit: str
    project: str
    ticket: str
    item: str
    values: Mapping[str, Json]
    origin: Mapping[str, Json]
    evidence: tuple[Evidence, ...] = ()


# --- evidence ---------------------------------------------------------------------------------------------------------
def evidence(conn: Connection, visit: str) -> tuple[Evidence, ...]:
    query = sa.select(*COLUMNS).where(e.c.visit_id == visit, e.c.removed.is_(None)).order_by(e.c.created, e.c.id)
    return tuple(Evidence(**row) for row in conn.execute(query).mappings())


def add(tx: Tx, one: Evidence, *, ticket: str, visit: str, actor: Actor) -> None:
    values = {**one.model_dump(), "ticket": ticket, "visit_id": visit, "author": str(actor), "created": tx.now}
    tx.run(sa.insert(e).values(**values))
    told = {"item": one.item, "id": one.id, "name": one.name, "size": one.size, "sha256": one.sha256}
    _told(tx, "qa.evidence_uploaded", told, visit=visit, ticket=ticket, actor=actor)


def remove(tx: Tx, row: sa.Row[Any], *, actor: Actor) -> bool:
    """True when no other file has the same bytes. The row stays as history."""
    tx.run(sa.update(e).where(e.c.id == row.id).values(removed=tx.now))
    told = {"item": row.item, "id": row.id, "name": row.name}
    _told(tx, "qa.evidence_removed", told, visit=row.visit_id, ticket=row.ticket, actor=actor)
    left = sa.select(sa.func.count()).select_from(e).where(e.c.sha256 == row.sha256, e.c.removed.is_(None))
    return int(tx.run(left).scalar_one()) == 0


def _told(tx: Tx, kind: str, data: dict[str, Json], *, visit: str, ticket: str, actor: Actor) -> None:
    tx.emit(Event(kind, data), run=VisitRef.parse(visit).run, visit=visit, ticket=ticket, actor=actor)


# --- rounds -----------------------------------------------------------------------------------------------------------
def documents(conn: Connection, run: str, kind: type[D]) -> list[tuple[blobs.ArtifactRow, D]]:
    """All of the run, of superseded visits too: a round that found failures is superseded by what mends them."""
    rows = blobs.listed(conn, run, kind.kind)
    return [(row, kind.parse(blobs.get_blob(conn, row.ref.sha256))) for row in rows]


def rounds(conn: Connection, run: str) -> tuple[QaRound, ...]:
    """Each version once, oldest first."""
    found = {one.version: one for _, one in documents(conn, run, QaRound)}
    return tuple(found[version] for version in sorted(found))


def earlier(conn: Connection, visit: VisitRef) -> tuple[Earlier, ...]:
    lists = {one.version: one for _, one in documents(conn, visit.run, QaChecklist)}
    results = {one.version: one for _, one in documents(conn, visit.run, QaResults)}
    ended = [one for one in rounds(conn, visit.run) if one.version < visit.n]
    return tuple(
        Earlier(lists[one.version], results[one.version], one)
        for one in ended
        if one.version in lists and one.version in results
    )


# --- improvements -----------------------------------------------------------------------------------------------------
def improve(tx: Tx, wish: Wish, *, key: str) -> str:
    """Raises Conflict when the project is gone."""
    known = tx.run(sa.select(m.c.ticket).where(m.c.key == key)).scalar()
    if known is not None:
        return str(known)
    project = tx.run(sa.select(p.c.id).where(p.c.short == wish.project)).scalar()
    if project is None:
        raise Conflict(f"there is no project {wish.project} any more", code="NO_PROJECT", kept="the results")
    sop = tx.run(sa.select(tables.tickets.c.sop).where(tables.tickets.c.key == wish.ticket)).scalar()
    ticket = tickets.insert(tx, int(project), wish.project, {"sop": sop or "deliver", **wish.values}, actor=SYSTEM)
    row = {"visit_id": wish.visit, "item": wish.item, "origin": dict(wish.origin), "created": tx.now}
    tx.run(sa.insert(m).values(key=key, ticket=ticket, **row))
    _copy(tx, wish.evidence, ticket)
    told = {"item": wish.item, "ticket": ticket, "title": wish.values["title"]}
    _told(tx, "qa.improvement_created", told, visit=wish.visit, ticket=wish.ticket, actor=SYSTEM)
    return ticket


def _copy(tx: Tx, files: Sequence[Evidence], ticket: str) -> None:
    """The same bytes under a row of the new ticket's own: it keeps them when the round's file is removed."""
    for one in files:
        name = hashlib.sha256(f"{ticket} {one.id}".encode()).hexdigest()[:32]
        values = {**one.model_dump(), "id": name, "ticket": ticket, "copied_from": one.id}
        tx.run(sa.insert(e).values(**values, author=str(SYSTEM), created=tx.now))


def origin_of(conn: Connection, ticket: str) -> Mapping[str, Json] | None:
    """What a ticket that manual QA made comes of."""
    found: Mapping[str, Json] | None = conn.execute(sa.select(m.c.origin).where(m.c.ticket == ticket)).scalar()
    return found
