"""The memo of a visit: what it already did, by name and round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from beadmill.domain.machine import Phase
from beadmill.domain.values import Event, Json
from beadmill.errors import Superseded
from beadmill.store import blobs, tables
from beadmill.store.db import Tx
from beadmill.store.journal import moves, visits

st, sc, d, g, s = tables.steps, tables.scopes, tables.decisions, tables.gates, tables.sessions
BIG = 64 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded call. ``blob`` names the result when it is over 64 kB."""

    kind: str
    result: Json
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Memo:
    """Everything an activation needs to know at once. ``rows`` by (name, round); sessions by token."""

    rounds: Mapping[str, int]
    rows: Mapping[tuple[str, int], Row]
    decisions: Mapping[str, sa.RowMapping]
    sessions: Mapping[str, sa.RowMapping]


def memo(conn: sa.Connection, visit: str) -> Memo:
    rounds = {r.scope: r.round for r in conn.execute(sa.select(sc.c.scope, sc.c.round).where(sc.c.visit_id == visit))}
    rows = {
        (r.name, r.round): Row(r.kind, r.result, r.blob)
        for r in conn.execute(
            sa.select(st.c.name, st.c.round, st.c.kind, st.c.result, st.c.blob).where(st.c.visit_id == visit)
        )
    }
    query = sa.select(d, g.c.detail).join(g, g.c.id == d.c.gate_id).where(g.c.visit_id == visit)
    decisions = {r["gate_id"]: r for r in conn.execute(query).mappings()}
    sessions = {r["token"]: r for r in conn.execute(sa.select(s).where(s.c.visit_id == visit)).mappings()}
    return Memo(rounds, rows, decisions, sessions)


def record(
    tx: Tx,
    visit: str,
    owner: str,
    name: str,
    round_: int,
    *,
    kind: str,
    result: Json,
    phase: Phase | None = None,
    event: Event | None = None,
) -> Row:
    """Result and event in one commit. Raises Superseded when this activation no longer owns its visit."""
    if not moves.owned(tx, visit, owner):
        raise Superseded(visit)
    text = json.dumps(result)  # ASCII: a file name need not be UTF-8
    blob = blobs.put_blob(tx, text.encode()) if len(text) > BIG else None
    row = Row(kind, None if blob else result, blob)
    seq = tx.run(sa.select(sa.func.coalesce(sa.func.max(st.c.seq), 0) + 1).where(st.c.visit_id == visit)).scalar_one()
    values: dict[str, Any] = {"visit_id": visit, "name": name, "round": round_, "kind": kind, "seq": seq}
    tx.run(sa.insert(st).values(**values, result=row.result, blob=blob, created=tx.now))
    visits.set_phase(tx, visit, phase)
    run = visits.run_of(tx, visit)
    tx.emit(event or Event("step.done", {"name": name, "kind": kind}), run=run, visit=visit)
    return row


def full(conn: sa.Connection, row: Row) -> Json:
    return row.result if row.blob is None else json.loads(blobs.get_blob(conn, row.blob))
