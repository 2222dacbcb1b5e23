"""Gates and their one decision each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from beadmill import redact
from beadmill.domain.gate import etag as etag_of
from beadmill.domain.values import SYSTEM, Actor, ArtifactRef, Event, GateAnswer, GateKind, GateRequest, Json, Sha
from beadmill.errors import Conflict, Invalid, Missing, NotFound, Stale
from beadmill.store import tables
from beadmill.store.db import Tx, stamp
from beadmill.store.journal import moves

g, d, v = tables.gates, tables.decisions, tables.visits


def open_gate(tx: Tx, gate: str, visit: str, request: GateRequest) -> None:
    """Inserted once; afterwards the row wins and the passed request is ignored. ``auto`` decides in this commit."""
    if tx.run(sa.select(g.c.id).where(g.c.id == gate)).first() is not None:
        return
    run = str(tx.run(sa.select(v.c.run_id).where(v.c.id == visit)).scalar_one())
    lapse_at = stamp(tx.moment + request.within) if request.within is not None and request.lapse else None
    tx.run(
        sa.insert(g).values(
            id=gate,
            run_id=run,
            visit_id=visit,
            kind=request.kind,
            title=request.title,
            choices=list(request.choices),
            shows=_shows(request.shows),
            form=request.form,
            detail=request.detail,
            may=request.may,
            lapse=request.lapse,
            lapse_at=lapse_at,
            state="open",
            etag=etag_of(gate, request.shows),
            created=tx.now,
        )
    )
    tx.emit(
        Event("gate.opened", {"gate": gate, "kind": request.kind, "title": request.title}),
        run=run,
        visit=visit,
        ticket=moves.ticket_key(tx, run),
    )
    if request.auto is not None:
        _decide(tx, gate, choice=request.auto, payload=None, note="by policy", key=f"auto:{gate}", actor=SYSTEM)


def answer(
    tx: Tx,
    gate: str,
    *,
    choice: str,
    etag: str | None,
    payload: Json = None,
    note: str = "",
    key: str,
    actor: Actor,
) -> GateAnswer:
    """Exactly once. The same ``key`` again is the same answer.

    Raises NotFound; Missing (428) without an etag; Stale (409) when what is shown has changed since; Conflict (409)
    when somebody else answered; Invalid (400) for a choice or payload the gate does not take.
    """
    row = _row(tx, gate)
    known = decision(tx.conn, gate)
    if known is not None:
        if known.key == key:
            return known
        raise Conflict(
            f"This was already answered: {known.choice} by {known.by}",
            code="ALREADY_ANSWERED",
            details={"choice": known.choice, "by": str(known.by), "at": stamp(known.at)},
            kept="that answer stands",
        )
    if row["state"] != "open":
        raise Conflict("This question was withdrawn", code="GATE_WITHDRAWN", next="look at the ticket again")
    if etag is None:
        raise Missing(
            "Say which version you have read: send its ETag in If-Match",
            code="IF_MATCH_REQUIRED",
            kept="nothing was changed",
            next="read the gate; its etag is what to send",
        )
    if etag != row["etag"]:
        raise Stale(
            "What this gate shows has changed since you read it",
            code="GATE_STALE",
            details={"etag": row["etag"], "shows": row["shows"]},
            kept="your input",
            next="read it again, then decide",
        )
    _check(row, choice, payload)
    ours = redact.ours()
    return _decide(tx, gate, choice=choice, payload=ours.work(payload), note=ours.work(note), key=key, actor=actor)


def _row(tx: Tx, gate: str) -> sa.RowMapping:
    row = tx.run(sa.select(g).where(g.c.id == gate)).mappings().first()
    if row is None:
        raise NotFound(f"There is no gate {gate}", code="GATE_NOT_FOUND")
    return row


def _check(row: sa.RowMapping, choice: str, payload: Json) -> None:
    if choice not in row["choices"]:
        raise Invalid(f"{choice!r} is not one of {', '.join(row['choices'])}", code="BAD_CHOICE")
    problems = list(_violations(row["form"], payload)) if row["form"] and payload is not None else []
    if problems:
        raise Invalid(problems[0], code="BAD_PAYLOAD", details={"problems": problems}, kept="your input")


def _violations(form: Json, payload: Json, where: str = "payload") -> Sequence[str]:
    """The part of JSON Schema that forms use: type, required, properties, items, enum, additionalProperties, and the
    limits exclusiveMinimum, maxLength, maxItems."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    wanted = form.get("type")
    if isinstance(wanted, str) and wanted in kinds and not isinstance(payload, kinds[wanted]):
        return [f"{where} must be of type {wanted}"]
    found: list[str] = []
    if "enum" in form and payload not in form["enum"]:
        found.append(f"{where} must be one of {form['enum']}")
    if "exclusiveMinimum" in form and not payload > form["exclusiveMinimum"]:
        found.append(f"{where} must be more than {form['exclusiveMinimum']}")
    for limit, kind in (("maxLength", str), ("maxItems", list)):
        if limit in form and isinstance(payload, kind) and len(payload) > form[limit]:
            found.append(f"{where} is longer than {form[limit]}")
    if isinstance(payload, dict):
        properties = form.get("properties", {})
        found += [f"{where}.{name} is missing" for name in form.get("required", []) if name not in payload]
        rest = form.get("additionalProperties", True)
        for name, value in payload.items():
            inner = properties.get(name, rest)
            if inner is False:
                found.append(f"{where}.{name} is not asked for")
            elif isinstance(inner, dict):
                found += _violations(inner, value, f"{where}.{name}")
    if isinstance(payload, list) and isinstance(form.get("items"), dict):
        for i, value in enumerate(payload):
            found += _violations(form["items"], value, f"{where}[{i}]")
    return found


def _decide(tx: Tx, gate: str, *, choice: str, payload: Json, note: str, key: str, actor: Actor) -> GateAnswer:
    row = _row(tx, gate)
    tx.run(
        sa.insert(d).values(
            gate_id=gate,
            choice=choice,
            saw=row["shows"],
            payload=payload,
            note=note,
            actor=str(actor),
            door=actor.door,
            key=key,
            at=tx.now,
        )
    )
    tx.run(sa.update(g).where(g.c.id == gate).values(state="answered"))
    tx.emit(
        Event("gate.answered", {"gate": gate, "kind": row["kind"], "choice": choice}),
        run=row["run_id"],
        visit=row["visit_id"],
        ticket=moves.ticket_key(tx, row["run_id"]),
        actor=actor,
    )
    if row["kind"] == GateKind.BLOCKED:
        _forget(tx, row)
    moves.woken(tx, "gate", gate)
    moves.project(tx, row["run_id"], actor=actor)
    return GateAnswer(choice, _refs(row["shows"]), actor, tx.moment, key, payload, note)


def _forget(tx: Tx, row: sa.RowMapping) -> None:
    """Retry and continue add one round to each scope that failed: old rows stay as history, out of the memo."""
    for scope in row["detail"]["forget"]:
        moves.forget(tx, row["visit_id"], scope)


def rebind(tx: Tx, gate: str, old: ArtifactRef, new: ArtifactRef, *, actor: Actor) -> str:
    """A saved edit takes the place of what an open gate shows. Returns the new etag. Raises Conflict when it is not
    open or does not show ``old`` any more."""
    row = _row(tx, gate)
    shows = _refs(row["shows"])
    if row["state"] != "open":
        raise Conflict("This gate was already answered", code="GATE_CLOSED", kept="the edit was not saved")
    if old not in shows:
        raise Stale(
            "Somebody saved another edit first",
            code="ARTIFACT_STALE",
            details={"shows": row["shows"]},
            kept="your input",
            next="read the newest version, then edit it",
        )
    now = tuple(new if ref == old else ref for ref in shows)
    etag = etag_of(gate, now)
    tx.run(sa.update(g).where(g.c.id == gate).values(shows=_shows(now), etag=etag))
    tx.emit(
        Event("gate.rebound", {"gate": gate, "from": old.row, "to": new.row}),
        run=row["run_id"],
        visit=row["visit_id"],
        ticket=moves.ticket_key(tx, row["run_id"]),
        actor=actor,
    )
    return etag


def withdraw(tx: Tx, visit: str) -> None:
    """Nobody waits for an answer any more."""
    tx.run(sa.update(g).where(g.c.visit_id == visit, g.c.state == "open").values(state="withdrawn"))


def lapse_due(tx: Tx) -> int:
    """Open gates whose countdown is over take their lapse choice."""
    due = tx.run(sa.select(g.c.id, g.c.lapse).where(g.c.state == "open", g.c.lapse_at <= tx.now)).all()
    for row in due:
        _decide(
            tx, row.id, choice=row.lapse, payload=None, note="the countdown ended", key=f"lapse:{row.id}", actor=SYSTEM
        )
    return len(due)


def stop_countdown(tx: Tx, gate: str) -> None:
    """A person started to deal with it: it waits for good."""
    tx.run(sa.update(g).where(g.c.id == gate, g.c.state == "open").values(lapse_at=None))


def decision(conn: sa.Connection, gate: str) -> GateAnswer | None:
    row = conn.execute(sa.select(d).where(d.c.gate_id == gate)).mappings().first()
    return None if row is None else to_answer(row)


def to_answer(row: sa.RowMapping) -> GateAnswer:
    kind, _, name = row["actor"].partition(":")
    actor = Actor(kind, name, row["door"])
    return GateAnswer(
        row["choice"],
        _refs(row["saw"]),
        actor,
        datetime.fromisoformat(row["at"]),
        row["key"],
        row["payload"],
        row["note"],
    )


def _shows(refs: Sequence[ArtifactRef]) -> list[list[Json]]:
    return [[ref.kind, ref.row, ref.sha256] for ref in refs]


def _refs(shows: Sequence[Sequence[Json]]) -> tuple[ArtifactRef, ...]:
    return tuple(ArtifactRef(one[0], Sha(one[2]), one[1]) for one in shows)
