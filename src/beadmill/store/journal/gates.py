"""Gates and their one decision each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from beadmill import redact
from beadmill.domain.form import violations
from beadmill.domain.gate import etag as etag_of
from beadmill.domain.values import (
    SYSTEM,
    TIMEOUT,
    Actor,
    ArtifactRef,
    Event,
    GateAnswer,
    GateKind,
    GateRequest,
    Json,
    Sha,
)
from beadmill.errors import Conflict, Invalid, Missing, NotFound
from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import budgets, countdown, moves, refusals

g, d, v = tables.gates, tables.decisions, tables.visits
WITH_GAPS = "approve_with_gaps"
AUTO, LAPSE = "auto:", "lapse:"  # how the keys begin of decisions that policy and a countdown make


def open_gate(tx: Tx, gate: str, visit: str, request: GateRequest) -> None:
    """Inserted once; afterwards the row wins and the passed request is ignored. ``auto`` decides in this commit."""
    if tx.run(sa.select(g.c.id).where(g.c.id == gate)).first() is not None:
        return
    run = str(tx.run(sa.select(v.c.run_id).where(v.c.id == visit)).scalar_one())
    request = _within_budget(tx, run, request)
    insert(tx, gate, visit, run, request)
    tx.emit(
        Event("gate.opened", {"gate": gate, "kind": request.kind, "title": request.title}),
        run=run,
        visit=visit,
        ticket=moves.ticket_key(tx, run),
    )
    if request.auto is not None:
        note, key = request.why or "by policy", f"{AUTO}{gate}"
        decide(tx, gate, choice=request.auto, payload=None, note=note, key=key, actor=SYSTEM)


def _within_budget(tx: Tx, run: str, request: GateRequest) -> GateRequest:
    """Policy does not decide by itself while the run's budget warns: the gate then says why a person is asked."""
    if not (request.auto and request.in_budget):
        return request
    now = budgets.spending(tx.conn, run).spent
    if now.state == "ok":
        return request
    seen = (
        f"{now.share:.0%} of the budget in {now.what} are used" if now.share else "the budget does not see every turn"
    )
    return replace(request, auto=None, detail={**(request.detail or {}), "asked_because": [seen]})


def insert(tx: Tx, gate: str, visit: str, run: str, request: GateRequest) -> None:
    """The row alone, open."""
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
            lapse_at=countdown.deadline(tx, visit, request),
            state="open",
            etag=etag_of(gate, request.shows),
            created=tx.now,
        )
    )


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
        raise refusals.answered(known)
    bound(tx, row, etag)
    _check(row, choice, payload)
    ours = redact.ours()
    return decide(tx, gate, choice=choice, payload=ours.work(payload), note=ours.work(note), key=key, actor=actor)


def bound(tx: Tx, row: sa.RowMapping, etag: str | None) -> None:
    """Raises Conflict naming who answered or withdrew it when it is not open; Missing; Stale naming who saved what."""
    if row["state"] != "open":
        known = decision(tx.conn, row["id"])
        raise refusals.answered(known) if known else refusals.withdrawn(tx.conn, row)
    if etag is None:
        raise Missing(
            "Say which version you have read: send its ETag in If-Match",
            code="IF_MATCH_REQUIRED",
            kept="nothing was changed",
            next="read the gate; its etag is what to send",
        )
    if etag != row["etag"]:
        raise refusals.stale(tx.conn, row)


def row_of(tx: Tx, gate: str) -> sa.RowMapping:
    """Raises NotFound."""
    return _row(tx, gate)


def _row(tx: Tx, gate: str) -> sa.RowMapping:
    row = tx.run(sa.select(g).where(g.c.id == gate)).mappings().first()
    if row is None:
        raise NotFound(f"There is no gate {gate}", code="GATE_NOT_FOUND")
    return row


def _check(row: sa.RowMapping, choice: str, payload: Json) -> None:
    if choice not in row["choices"]:
        raise Invalid(f"{choice!r} is not one of {', '.join(row['choices'])}", code="BAD_CHOICE")
    problems = list(violations(row["form"], payload)) if row["form"] and payload is not None else []
    if problems:
        raise Invalid(problems[0], code="BAD_PAYLOAD", details={"problems": problems}, kept="your input")


def decide(tx: Tx, gate: str, *, choice: str, payload: Json, note: str, key: str, actor: Actor) -> GateAnswer:
    """Writes the decision, unchecked. An approval with gaps keeps what it acknowledges."""
    row = _row(tx, gate)
    if choice == WITH_GAPS:
        payload = {**(payload or {}), "acknowledged": acknowledged(row["detail"])}
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
    if actor != TIMEOUT:
        countdown.stop(tx, gate, actor=actor)
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


def acknowledged(detail: Json) -> list[str]:
    """The gaps and undecided contradictions a gate names, each once."""
    said = detail if isinstance(detail, dict) else {}
    return list(dict.fromkeys((*said.get("gaps", ()), *(one["gap"] for one in said.get("unresolved", ())))))


def _forget(tx: Tx, row: sa.RowMapping) -> None:
    """Retry and continue add one round to each scope that failed: old rows stay as history, out of the memo."""
    for scope in row["detail"]["forget"]:
        moves.forget(tx, row["visit_id"], scope)


def rebind(tx: Tx, gate: str, old: ArtifactRef, new: ArtifactRef, *, actor: Actor) -> str:
    """A saved edit takes the place of what an open gate shows. Returns the new etag. Raises Conflict when it is not
    open or does not show ``old`` any more."""
    row = _row(tx, gate)
    shows = _refs(row["shows"])
    if row["state"] != "open" or old not in shows:
        bound(tx, row, "")
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
        key = f"{LAPSE}{row.id}"
        decide(tx, row.id, choice=row.lapse, payload=None, note="the countdown ended", key=key, actor=TIMEOUT)
    return len(due)


def hold(tx: Tx, gate: str, *, actor: Actor) -> None:
    """A person deals with it: what counts down there stands still for good. The second time changes nothing.

    Raises NotFound; Conflict when the countdown, or somebody, was first.
    """
    if _row(tx, gate)["state"] != "open":
        raise Conflict(
            "This was decided before the clock could be stopped",
            code="GATE_CLOSED",
            kept="what was decided",
            next="look at the gate: it says who decided, and what",
        )
    countdown.stop(tx, gate, actor=actor)


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
