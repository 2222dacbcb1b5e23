"""The interview as a conversation: the open batch, its answers, skips. Each is one answer of one gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy.engine import Connection

from beadmill.artifacts.interview import Answer, InterviewSession
from beadmill.domain.values import Actor, GateKind, Json, Permission
from beadmill.errors import Conflict, Invalid
from beadmill.operations import _rows, gates, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import blobs
from beadmill.store import tables as t

ANSWER = "answer"
SKIP_ALL = "skip_all"
FIELDS = frozenset({"free_text", "selected_option_ids", "skipped", "skip_reason"})


async def show(ports: Ports, ticket: str, *, actor: Actor) -> views.InterviewView:
    """The batch that waits, and the session so far. Raises NotFound for an unknown ticket."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _view(conn, ticket))


def _view(conn: Connection, ticket: str) -> views.InterviewView:
    row = _rows.ticket_row(conn, ticket)
    lines = (
        _rows.open_gates(conn, t.gates.c.run_id == row.run_id, t.gates.c.kind == GateKind.INTERVIEW)
        if row.run_id
        else []
    )
    gate = gates.view(conn, lines[0].id) if lines else None
    session = _session(conn, row.run_id)
    answered = sum(1 for a in session.answers.values() if not a.skipped) if session else 0
    return views.InterviewView(
        ticket=ticket,
        gate=gate,
        questions=tuple(_questions(gate)),
        answered=answered,
        session=session.model_dump(mode="json") if session else None,
    )


def _session(conn: Connection, run: str | None) -> InterviewSession | None:
    row = blobs.newest(conn, run, InterviewSession.kind) if run else None
    return InterviewSession.parse(blobs.get_blob(conn, row.ref.sha256)) if row else None


def _questions(gate: views.GateView | None) -> Sequence[Json]:
    if gate is None or not isinstance(gate.detail, dict):
        return ()
    found: Sequence[Json] = gate.detail.get("questions", ())
    return found


async def answer(
    ports: Ports,
    ticket: str,
    answers: Mapping[str, Json],
    *,
    etag: str | None,
    actor: Actor,
    edits: Mapping[str, Json] | None = None,
    key: str = "",
) -> views.InterviewView:
    """``answers``: question id → text, or {free_text, selected_option_ids, skipped, skip_reason}; ``edits`` the same
    for questions of earlier batches.

    Every question of the batch must be answered or skipped. Raises Invalid naming the ids, Conflict when none waits.
    """
    gate = await _waiting(ports, ticket, actor)
    given = {name: _answer(name, value) for name, value in answers.items()}
    _complete(gate, given)
    payload = {"answers": given, "edits": {name: _answer(name, value) for name, value in (edits or {}).items()}}
    return await _decide(ports, ticket, gate, ANSWER, payload, etag=etag, actor=actor, key=key)


async def skip(
    ports: Ports,
    ticket: str,
    questions: Sequence[str],
    *,
    etag: str | None,
    actor: Actor,
    reason: str = "",
    key: str = "",
) -> views.InterviewView:
    """Skips the named questions of a batch; no name = the whole batch. Others of the batch must not be left open."""
    gate = await _waiting(ports, ticket, actor)
    asked = [q["id"] for q in _questions(gate)]
    given = {name: _answer(name, {"skipped": True, "skip_reason": reason}) for name in questions or asked}
    _complete(gate, given)
    return await _decide(ports, ticket, gate, ANSWER, {"answers": given}, etag=etag, actor=actor, key=key)


async def skip_all(
    ports: Ports, ticket: str, *, etag: str | None, actor: Actor, reason: str = "", key: str = ""
) -> views.InterviewView:
    """Ends the interview: everything still open is left to the council's own answers."""
    gate = await _waiting(ports, ticket, actor)
    return await _decide(ports, ticket, gate, SKIP_ALL, {"reason": reason}, etag=etag, actor=actor, key=key)


async def _waiting(ports: Ports, ticket: str, actor: Actor) -> views.GateView:
    view = await show(ports, ticket, actor=actor)
    if view.gate is None:
        raise Conflict(
            f"no interview question of {ticket} waits for an answer",
            code="NO_QUESTIONS",
            kept="your input",
            next=f"beadmill ticket show {ticket}",
        )
    return view.gate


async def _decide(
    ports: Ports,
    ticket: str,
    gate: views.GateView,
    choice: str,
    payload: Json,
    *,
    etag: str | None,
    actor: Actor,
    key: str,
) -> views.InterviewView:
    note = payload.get("reason", "")
    await gates.answer(ports, gate.id, choice, etag=etag, actor=actor, payload=payload, note=note, key=key)
    return await show(ports, ticket, actor=actor)


def _answer(name: str, value: Json) -> dict[str, Any]:
    fields = {"free_text": value} if isinstance(value, str) else value
    if not isinstance(fields, dict) or not fields.keys() <= FIELDS:
        raise Invalid(
            f"the answer to {name} is neither a text nor a record of {', '.join(sorted(FIELDS))}",
            code="ANSWER",
            kept="your input",
        )
    try:
        Answer.model_validate(fields)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]
        raise Invalid(f"the answer to {name}: {said['msg']}", code="ANSWER", kept="your input") from error
    return dict(fields)


def _complete(gate: views.GateView, given: Mapping[str, Any]) -> None:
    asked = [q["id"] for q in _questions(gate)]
    missing, unknown = [q for q in asked if q not in given], [q for q in given if q not in asked]
    if missing or unknown:
        said = [f"{', '.join(missing)} not answered or skipped"] if missing else []
        said += [f"{', '.join(unknown)} not asked"] if unknown else []
        raise Invalid(
            f"this batch asks {', '.join(asked)}: {'; '.join(said)}",
            code="BATCH",
            details={"missing": missing, "unknown": unknown, "asked": asked},
            kept="your input",
            next="answer or skip every question of the batch",
        )
    for question in _questions(gate):
        _options(question, given[question["id"]])


def _options(question: Json, given: Mapping[str, Any]) -> None:
    known = [option["id"] for option in question.get("options", ())]
    wrong = [chosen for chosen in given.get("selected_option_ids", ()) if chosen not in known]
    if wrong:
        raise Invalid(
            f"{question['id']} has no option {', '.join(wrong)}",
            code="OPTION",
            details={"unknown": wrong, "options": known},
            kept="your input",
            next=f"its options: {', '.join(known)}" if known else "answer it with text",
        )
