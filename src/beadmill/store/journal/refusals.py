"""Why an answer or an edit is refused: who answered what and when, who saved which version."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from beadmill.domain.values import GateAnswer
from beadmill.errors import Conflict, Stale
from beadmill.store import tables
from beadmill.store.db import stamp

a, e = tables.artifacts, tables.events
TURNS = ("run.sent_back", "run.amended", "run.canceled", "run.superseded", "run.closed")  # what withdraws a gate


def answered(known: GateAnswer) -> Conflict:
    more = "; the gaps are being fixed, and the new version is put to you" if known.choice == "fix_gaps" else ""
    return Conflict(
        f"This was already answered: {known.choice} by {known.by} at {_minute(stamp(known.at))}{more}",
        code="ALREADY_ANSWERED",
        details={"choice": known.choice, "by": str(known.by), "door": known.by.door, "at": stamp(known.at)},
        kept="that answer stands",
        next="look at the ticket again",
    )


def withdrawn(conn: sa.Connection, gate: sa.RowMapping) -> Conflict:
    query = sa.select(e).where(e.c.run_id == gate["run_id"], e.c.kind.in_(TURNS), e.c.at >= gate["created"])
    turn = conn.execute(query.order_by(e.c.seq.desc()).limit(1)).mappings().first()
    details = {"by": turn["actor"], "at": turn["at"], "what": turn["kind"]} if turn else {}
    said = (
        f": {turn['kind'].replace('.', ' ').replace('_', ' ')} by {turn['actor']} at {_minute(turn['at'])}"
        if turn
        else ""
    )
    return Conflict(
        f"This question was withdrawn{said}",
        code="GATE_WITHDRAWN",
        details=details,
        kept="your input",
        next="look at the ticket again",
    )


def stale(conn: sa.Connection, gate: sa.RowMapping) -> Stale:
    saved = _saved(conn, gate)
    said = "; ".join(f"{x['by']} saved version {x['version']} of the {x['kind']} at {_minute(x['at'])}" for x in saved)
    return Stale(
        f"What this gate shows has changed since you read it: {said}" if said else "This is not what the gate shows",
        code="GATE_STALE",
        details={"etag": gate["etag"], "shows": gate["shows"], "saved": saved},
        kept="your input",
        next="read it again, then decide",
    )


def _saved(conn: sa.Connection, gate: sa.RowMapping) -> list[dict[str, Any]]:
    """Of the documents it shows, those that an edit has put there."""
    query = sa.select(e).where(e.c.visit_id == gate["visit_id"], e.c.kind == "gate.rebound").order_by(e.c.seq)
    put = {x["data"]["to"]: x for x in conn.execute(query).mappings() if x["data"].get("gate") == gate["id"]}
    rows = conn.execute(sa.select(a).where(a.c.id.in_([int(row) for _kind, row, _sha in gate["shows"]]))).mappings()
    return [
        {
            "kind": r["kind"],
            "row": r["id"],
            "version": r["version"],
            "by": put[r["id"]]["actor"],
            "at": put[r["id"]]["at"],
        }
        for r in rows
        if r["id"] in put
    ]


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"
