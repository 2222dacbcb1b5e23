"""Gates: everything a person decides. One inbox, one answer each, bound to what was seen."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, GateKind, Json, Permission
from beadmill.errors import Conflict, Invalid
from beadmill.operations import _rows, runs, views
from beadmill.operations.occurrences import checked
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t
from beadmill.store.journal import gates as journal
from beadmill.store.journal.gates import AUTO, LAPSE, WITH_GAPS

OPEN = "open"
NOTE_KEPT = 20_000  # characters of a note or reason


async def listing(
    ports: Ports,
    *,
    actor: Actor,
    project: str = "",
    ticket: str = "",
    kind: str = "",
    state: str = "open",
    cursor: str = "",
    limit: int | None = None,
) -> Page[views.GateLine]:
    """The inbox: what waits longest comes first. ``state`` open, answered, withdrawn, or "" for all."""
    require(actor, Permission.READ)
    most = bounded(limit)
    columns = [(t.gates.c.created, False), (t.gates.c.id, False)]
    query = _rows.gate_query().order_by(t.gates.c.created, t.gates.c.id).limit(most + 1)
    wanted = {t.gates.c.state: state, t.gates.c.kind: kind, t.projects.c.short: project, t.tickets.c.key: ticket}
    for column, value in wanted.items():
        query = query.where(column == value) if value else query
    if cursor:
        query = query.where(beyond(columns, decode(cursor, 2)))

    def read(conn: Connection) -> Page[views.GateLine]:
        rows, after = cut(list(conn.execute(query)), most, ["created", "id"])
        return Page(items=tuple(_rows.gate_line(row) for row in rows), next=after)

    return await ports.store.read(read)


async def waiting(ports: Ports, *, actor: Actor) -> int:
    """How many gates are open."""
    require(actor, Permission.READ)
    query = sa.select(sa.func.count()).select_from(t.gates).where(t.gates.c.state == "open")
    return await ports.store.read(lambda conn: conn.execute(query).scalar_one())


async def show(ports: Ports, gate: str, *, actor: Actor) -> views.GateView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: view(conn, gate))


def view(conn: Connection, gate: str) -> views.GateView:
    row = _rows.gate_row(conn, gate)
    return views.GateView(
        **_rows.gate_fields(row),
        shows=_rows.shown(conn, row.shows),
        form=row.form,
        detail=row.detail,
        may=row.may,
        decision=_decision(conn, gate),
    )


def _decision(conn: Connection, gate: str) -> views.DecisionView | None:
    row = conn.execute(sa.select(t.decisions).where(t.decisions.c.gate_id == gate)).first()
    if row is None:
        return None
    return views.DecisionView(
        choice=row.choice,
        payload=row.payload,
        note=row.note,
        actor=row.actor,
        door=row.door,
        at=row.at,
        saw=_rows.shown(conn, row.saw),
        acknowledged=acknowledged(row),
        made_by=made_by(row),
    )


def acknowledged(decision: Any) -> tuple[str, ...]:
    """The gaps that an approval with gaps named."""
    payload = decision.payload if isinstance(decision.payload, dict) else {}
    return tuple(payload.get("acknowledged", ())) if decision.choice == WITH_GAPS else ()


def made_by(decision: Any) -> Literal["person", "policy", "timeout"]:
    kind = decision.actor.partition(":")[0]
    if kind not in ("system", "timeout"):
        return "person"
    if kind == "timeout" or decision.key.startswith(LAPSE):
        return "timeout"
    return "policy" if decision.key.startswith(AUTO) else "person"


async def answer(
    ports: Ports,
    gate: str,
    choice: str,
    *,
    etag: str | None,
    actor: Actor,
    payload: Json = None,
    note: str = "",
    key: str = "",
) -> views.GateView:
    """Decides once. The same ``key`` again is the same answer.

    Raises Missing without ``etag``, Stale when what the gate shows has changed (naming who saved what), Conflict when
    it is answered (naming who, what and when), Invalid for a choice or payload that the gate does not take,
    Unprocessable for a retry's note that is none.
    """
    row = await ports.store.read(lambda conn: _rows.gate_row(conn, gate))
    require(actor, Permission(row.may))
    if row.kind == GateKind.BLOCKED:
        checked(note)
    _sensible(row, choice, payload, note)
    await ports.store.write(
        lambda tx: journal.answer(
            tx,
            gate,
            choice=choice,
            etag=etag,
            payload=payload,
            note=note,
            key=key or uuid.uuid4().hex,
            actor=actor,
        )
    )
    ports.engine.ring()
    return await show(ports, gate, actor=actor)


def _sensible(row: Any, choice: str, payload: Json, note: str) -> None:
    if len(note) > NOTE_KEPT:
        raise Invalid(
            f"the note is longer than {NOTE_KEPT} characters",
            code="NOTE",
            details={"length": len(note)},
            kept="your input",
            next="shorten it, or keep the long text in the ticket",
        )
    detail = row.detail if isinstance(row.detail, dict) else {}
    said = payload.get("decisions") if isinstance(payload, dict) else None
    decided = isinstance(said, dict) and any(str(text).strip() for text in said.values())
    if row.state == OPEN and choice == WITH_GAPS and decided:
        raise Invalid(
            "an approval carries out no decision: it takes what is shown as it is",
            code="DECISIONS_UNUSED",
            kept="your input",
            next="fix_gaps has it revised by your decisions; or approve without them",
        )
    if row.state == OPEN and choice == "fix_gaps" and not detail.get("gaps") and not decided:
        raise Invalid(
            "there is no gap to fix: say how at least one contradiction is to be decided",
            code="NOTHING_TO_FIX",
            details={"undecided": [one["gap"] for one in detail.get("unresolved", ())]},
            kept="your input",
            next="send decisions, or approve it with what is open",
        )
    if row.state == OPEN and choice == "approve" and WITH_GAPS in row.choices:
        open_ = journal.acknowledged(detail)
        raise Conflict(
            f"{len(open_)} open: {'; '.join(open_)}",
            code="GAPS_OPEN",
            details={"gaps": open_, "choices": list(row.choices)},
            kept="nothing was decided",
            next=f"{' or '.join(row.choices)}: to go on with them is a choice of its own",
        )


async def send_back(
    ports: Ports, gate: str, target: str, *, etag: str | None, actor: Actor, comment: str = "", key: str = ""
) -> views.RunView:
    """Answers the gate by sending the run back to ``target``: everything behind it is superseded, never overwritten.

    Raises Missing, Stale, Conflict as ``answer`` does; NotFound for a node the run has not.
    """
    row = await ports.store.read(lambda conn: _rows.gate_row(conn, gate))
    require(actor, Permission(row.may))
    return await runs.send_back(ports, row.run_id, target, actor=actor, comment=comment, gate=gate, etag=etag, key=key)


async def hold(ports: Ports, gate: str, *, actor: Actor) -> views.GateView:
    """A person is about to answer: no question of the gate's visit lapses any more. Idempotent; it needs no ETag, since
    it decides nothing.

    Raises NotFound; Conflict when it is decided already.
    """
    row = await ports.store.read(lambda conn: _rows.gate_row(conn, gate))
    require(actor, Permission(row.may))
    await ports.store.write(lambda tx: journal.hold(tx, gate, actor=actor))
    return await show(ports, gate, actor=actor)
