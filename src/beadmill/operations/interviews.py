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
EDIT = "edit"
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
    given = _answers(gate, answers)
    _complete(gate, given)
    payload = {"answers": given, "edits": _edits(gate, edits)}
    return await _decide(ports, ticket, gate, ANSWER, payload, etag=etag, actor=actor, key=key)


async def edit(
    ports: Ports, ticket: str, edits: Mapping[str, Json], *, etag: str | None, actor: Actor, key: str = ""
) -> views.InterviewView:
    """Changes answers of earlier batches, in the form of ``answer``; the batch that waits is put again unchanged.

    Raises Invalid naming the ids, Conflict when no batch waits: the interviewer is at work, or the interview is over
    and its document can be edited at its approval.
    """
    gate = await _waiting(ports, ticket, actor)
    if not edits:
        raise Invalid("no answer to change was given", code="ANSWER", kept="your input")
    payload = {"edits": _edits(gate, edits)}
    return await _decide(ports, ticket, gate, EDIT, payload, etag=etag, actor=actor, key=key)


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
    given = _answers(gate, {name: {"skipped": True, "skip_reason": reason} for name in questions or asked})
    _complete(gate, given)
    return await _decide(ports, ticket, gate, ANSWER, {"answers": given}, etag=etag, actor=actor, key=key)


async def skip_all(
    ports: Ports,
    ticket: str,
    *,
    etag: str | None,
    actor: Actor,
    answers: Mapping[str, Json] | None = None,
    edits: Mapping[str, Json] | None = None,
    reason: str = "",
    key: str = "",
) -> views.InterviewView:
    """Ends the interview: what is given here counts, everything else still open is left to the council's own answers.
    ``reason`` goes with the questions that have none of their own."""
    gate = await _waiting(ports, ticket, actor)
    given = _answers(gate, answers or {})
    payload = {"answers": given, "edits": _edits(gate, edits), "reason": reason}
    return await _decide(ports, ticket, gate, SKIP_ALL, payload, etag=etag, actor=actor, key=key)


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


def _answers(gate: views.GateView, given: Mapping[str, Json]) -> dict[str, Any]:
    """Answers to questions of the batch. Raises Invalid for one that is not asked, or not possible."""
    asked = {q["id"]: q for q in _questions(gate)}
    unknown = [name for name in given if name not in asked]
    if unknown:
        raise _batch(list(asked), [], unknown)
    return {name: _answer(asked[name], value) for name, value in given.items()}


def _edits(gate: views.GateView, given: Mapping[str, Json] | None) -> dict[str, Any]:
    earlier = {q["id"]: q for q in gate.detail.get("earlier", ())}
    unknown = [name for name in given or () if name not in earlier]
    if unknown:
        raise Invalid(
            f"{', '.join(unknown)} has no earlier answer to change",
            code="EDIT",
            details={"unknown": unknown, "answered": list(earlier)},
            kept="your input",
            next=f"answered before: {', '.join(earlier) or 'nothing'}",
        )
    return {name: _answer(earlier[name], value) for name, value in (given or {}).items()}


def _answer(question: Json, value: Json) -> dict[str, Any]:
    name: str = question["id"]
    fields = {"free_text": value} if isinstance(value, str) else value
    if not isinstance(fields, dict) or not fields.keys() <= FIELDS:
        raise Invalid(
            f"the answer to {name} is neither a text nor a record of {', '.join(sorted(FIELDS))}",
            code="ANSWER",
            kept="your input",
        )
    try:
        said = Answer.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Invalid(f"the answer to {name}: {first['msg']}", code="ANSWER", kept="your input") from error
    _no_contradiction(name, said)
    _options(question, said)
    return dict(fields)


def _no_contradiction(name: str, said: Answer) -> None:
    """A question is answered or skipped: the reason of a skip must not outlive a change of mind."""
    answered = bool(said.free_text.strip() or said.selected_option_ids)
    wrong = "skipped and answered" if said.skipped and answered else ""
    wrong = wrong or ("answered and has a reason for skipping it" if said.skip_reason and answered else "")
    if wrong:
        raise Invalid(
            f"{name} is {wrong}", code="CONTRADICTION", kept="your input", next="send the answer, or the skip, alone"
        )


def _options(question: Json, said: Answer) -> None:
    known = [option["id"] for option in question.get("options", ())]
    wrong = [chosen for chosen in said.selected_option_ids if chosen not in known]
    if wrong:
        raise Invalid(
            f"{question['id']} has no option {', '.join(wrong)}",
            code="OPTION",
            details={"unknown": wrong, "options": known},
            kept="your input",
            next=f"its options: {', '.join(known)}" if known else "answer it with text",
        )
    if question.get("answer_type") == "single_choice" and len(said.selected_option_ids) > 1:
        raise Invalid(
            f"{question['id']} takes one option, not {', '.join(said.selected_option_ids)}",
            code="OPTION",
            details={"options": known},
            kept="your input",
            next="choose one; what else there is to say goes into the note",
        )


def _complete(gate: views.GateView, given: Mapping[str, Any]) -> None:
    asked = [q["id"] for q in _questions(gate)]
    missing = [name for name in asked if name not in given]
    if missing:
        raise _batch(asked, missing, [])


def _batch(asked: Sequence[str], missing: Sequence[str], unknown: Sequence[str]) -> Invalid:
    said = [f"{', '.join(missing)} not answered or skipped"] if missing else []
    said += [f"{', '.join(unknown)} not asked"] if unknown else []
    return Invalid(
        f"this batch asks {', '.join(asked)}: {'; '.join(said)}",
        code="BATCH",
        details={"missing": list(missing), "unknown": list(unknown), "asked": list(asked)},
        kept="your input",
        next="answer or skip every question of the batch",
    )
