"""Manual QA: what a person is to check, what they found, files beside it, and the one answer of the round."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.qa import Evidence, QaChecklist, QaResults, problems
from beadmill.domain.values import Actor, GateKind, Json, Permission
from beadmill.errors import Conflict, Invalid, NotFound, Unprocessable
from beadmill.operations import _qa_draft, _rows, gates, views
from beadmill.operations.gates import NOTE_KEPT
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import known, once
from beadmill.operations.rules import require
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.evidence import EvidenceFiles
from beadmill.store.journal import gates as journal
from beadmill.store.journal import qa as books

e = t.qa_evidence.c
NAME = 200  # characters of a file's name
SUBMIT, SKIP = "submit", "skip"


@dataclass(frozen=True, slots=True)
class _Round:
    """The newest round of a run. ``gate`` is open, or None."""

    visit: str
    checklist: QaChecklist
    gate: views.GateView | None
    drift: views.GateView | None
    draft: _qa_draft.Draft
    files: tuple[Evidence, ...]


async def show(ports: Ports, ticket: str, *, actor: Actor) -> views.QaView:
    """The round that waits with everything saved so far, else the last one. Raises NotFound for an unknown ticket."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _view(conn, ticket))


def _view(conn: Connection, ticket: str) -> views.QaView:
    row = _rows.ticket_row(conn, ticket)
    now = _round(conn, row.run_id) if row.run_id else None
    ended = books.rounds(conn, row.run_id) if row.run_id else ()
    results = now.draft.results if now else ()
    counted = QaResults(version=1, checklist="", results=results)
    detail = now.gate.detail if now and now.gate else {}
    return views.QaView(
        ticket=ticket,
        gate=now.gate if now else None,
        drift=now.drift if now else None,
        version=now.checklist.version if now else None,
        worktree=detail.get("worktree", ""),
        checklist=now.checklist.model_dump(mode="json") if now else None,
        revision=now.draft.revision if now else 0,
        saved=now.draft.saved if now else None,
        results=tuple(one.model_dump(mode="json") for one in results),
        evidence=tuple(file_view(one) for one in now.files) if now else (),
        problems=problems(now.checklist, results) if now else (),
        counts=counted.counts,
        coverage=now.checklist.totals if now else {},
        rounds=tuple(
            views.QaRoundView(
                version=one.version, outcome=one.outcome, line=one.line, round=one.model_dump(mode="json")
            )
            for one in ended
        ),
    )  # fmt: skip


def file_view(one: Evidence) -> views.EvidenceView:
    return views.EvidenceView(**one.model_dump(), inline=one.inline)


def _round(conn: Connection, run: str) -> _Round | None:
    found = books.documents(conn, run, QaChecklist)
    if not found:
        return None
    row, checklist = found[-1]
    lines = _rows.open_gates(conn, t.gates.c.visit_id == row.visit, t.gates.c.kind == GateKind.QA)
    open_ = [gates.view(conn, line.id) for line in lines]
    submitted = [doc for _, doc in books.documents(conn, run, QaResults) if doc.version == checklist.version]
    draft = _qa_draft.load(conn, row.visit, checklist)
    if submitted:  # what was sent counts, not what was typed into a window afterwards
        draft = _qa_draft.Draft(draft.revision, submitted[-1].results, draft.saved)
    return _Round(
        row.visit,
        checklist,
        next((one for one in open_ if SUBMIT in one.choices), None),
        next((one for one in open_ if SUBMIT not in one.choices), None),
        draft,
        books.evidence(conn, row.visit),
    )


def _waiting(conn: Connection, ticket: str) -> tuple[_Round, views.GateView]:
    row = _rows.ticket_row(conn, ticket)
    now = _round(conn, row.run_id) if row.run_id else None
    if now is None or now.gate is None:
        raise Conflict(
            f"no manual QA of {ticket} waits for results",
            code="NO_QA",
            kept="your input",
            next=f"beadmill ticket show {ticket}",
        )
    return now, now.gate


# --- results ----------------------------------------------------------------------------------------------------------
async def save(ports: Ports, ticket: str, results: Mapping[str, Json], *, revision: int, actor: Actor) -> views.QaView:
    """``results``: item id → its result, whole; items that are not named stay. They need not be complete.

    Raises Stale when they were saved elsewhere in between, with what was saved; Conflict when no round waits; Invalid.
    """
    require(actor, Permission.DECIDE)

    def act(tx: Tx) -> None:
        now, _ = _waiting(tx.conn, ticket)
        _qa_draft.save(tx, now.visit, now.checklist, results, revision=revision)

    await ports.store.write(act)
    return await show(ports, ticket, actor=actor)


async def submit(
    ports: Ports, ticket: str, *, etag: str | None, revision: int, actor: Actor, key: str = ""
) -> views.QaView:
    """Sends the results as saved at ``revision``. The same ``key`` again is the same submission.

    Raises Missing without ``etag``, Stale when checklist or results are other ones by now, Unprocessable naming what is
    left to do, Conflict when no round waits.
    """
    return await _decide(ports, ticket, SUBMIT, etag=etag, revision=revision, reason="", actor=actor, key=key)


async def skip(
    ports: Ports,
    ticket: str,
    *,
    etag: str | None,
    revision: int,
    actor: Actor,
    reason: str = "",
    key: str = "",
) -> views.QaView:
    """Ends the round as it stands: its entries are kept, nothing is made of them. Raises as ``submit`` does."""
    if len(reason) > NOTE_KEPT:
        raise Invalid(f"the reason is longer than {NOTE_KEPT} characters", code="NOTE", kept="your input")
    return await _decide(ports, ticket, SKIP, etag=etag, revision=revision, reason=reason, actor=actor, key=key)


async def _decide(
    ports: Ports,
    ticket: str,
    choice: str,
    *,
    etag: str | None,
    revision: int,
    reason: str,
    actor: Actor,
    key: str,
) -> views.QaView:
    require(actor, Permission.DECIDE)
    what, request = f"qa.{choice}", {"ticket": ticket, "etag": etag, "revision": revision, "reason": reason}

    def act(tx: Tx) -> str:
        now, gate = _waiting(tx.conn, ticket)
        journal.bound(tx, journal.row_of(tx, gate.id), etag)
        _qa_draft.unchanged(now.draft, revision)
        if choice == SUBMIT:
            _complete(problems(now.checklist, now.draft.results))
        body = _qa_draft.payload(now.draft.results)
        own = key or uuid.uuid4().hex
        journal.answer(tx, gate.id, choice=choice, etag=etag, payload=body, note=reason, key=own, actor=actor)
        return gate.id

    done = await ports.store.read(lambda conn: known(conn, key, operation=what, actor=actor, request=request))
    if done is None:
        await ports.store.write(
            lambda tx: once(tx, key, operation=what, actor=actor, request=request, now=tx.now, act=lambda: act(tx))
        )
        ports.engine.ring()
    return await show(ports, ticket, actor=actor)


def _complete(wrong: Sequence[str]) -> None:
    if wrong:
        raise Unprocessable(
            f"the results cannot be submitted yet: {'; '.join(wrong[:5])}",
            code="QA_INCOMPLETE",
            details={"problems": list(wrong)},
            kept="everything you entered",
            next="resolve every required item, then submit again",
        )


# --- files ------------------------------------------------------------------------------------------------------------
def files_of(ports: Ports) -> EvidenceFiles:
    return EvidenceFiles(ports.settings.home / "evidence")


async def upload(
    ports: Ports, ticket: str, item: str, *, name: str, chunks: AsyncIterator[bytes], actor: Actor
) -> views.EvidenceView:
    """Adds a file of any type to an item, at most 250 MiB. Its bytes are kept as they are: no secret is looked for.

    Raises Conflict when no round waits, Invalid for a name that is a path, FileTooLarge.
    """
    require(actor, Permission.DECIDE)
    clean = file_name(name)
    now, _ = await ports.store.read(lambda conn: _waiting(conn, ticket))
    _item(now, item)
    files = files_of(ports)
    received = await files.receive(chunks)
    one = Evidence(
        id=uuid.uuid4().hex, item=item, name=clean, media=received.media, size=received.size, sha256=received.sha256
    )

    def act(tx: Tx) -> None:
        current, _ = _waiting(tx.conn, ticket)
        if current.visit != now.visit:
            raise Conflict(f"another round of {ticket} began meanwhile", code="QA_ROUND", kept="nothing of the file")
        books.add(tx, one, ticket=ticket, visit=now.visit, actor=actor)
        files.keep(received)  # inside the commit, where no removal of the same bytes can come between

    try:
        await ports.store.write(act)
    finally:
        files.forget(received)
    return file_view(one)


def _item(now: _Round, item: str) -> None:
    if now.checklist.item(item) is None:
        raise NotFound(f"there is no item {item}", code="QA_ITEM", kept="nothing of the file")


def file_name(name: str) -> str:
    """The name as it is shown and offered for download. Raises Invalid for one that is a path."""
    text = unicodedata.normalize("NFC", name).strip()
    if "/" in text or "\\" in text or text in (".", ".."):
        raise Invalid(f"{name[:200]!r} is a path, not a file's name", code="QA_FILE_NAME", kept="nothing of the file")
    plain = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    return " ".join(plain.split())[:NAME].lstrip(".") or "file"


async def evidence(
    ports: Ports, ticket: str, file: str, *, actor: Actor
) -> tuple[views.EvidenceView, AsyncIterator[bytes]]:
    """A file with its bytes, in pieces. Raises NotFound."""
    require(actor, Permission.READ)
    row = await ports.store.read(lambda conn: _file(conn, ticket, file))
    fields = {name: getattr(row, name) for name in Evidence.model_fields}
    return file_view(Evidence(**fields)), await files_of(ports).read(row.sha256)


async def remove(ports: Ports, ticket: str, file: str, *, actor: Actor) -> views.QaView:
    """Takes a file of the waiting round away. Raises NotFound, Conflict when the round has been submitted."""
    require(actor, Permission.DECIDE)
    files = files_of(ports)

    def act(tx: Tx) -> None:
        row = _file(tx.conn, ticket, file)
        now, _ = _waiting(tx.conn, ticket)
        if row.visit_id != now.visit:
            raise Conflict(
                f"{row.name} belongs to a round that has ended", code="QA_ROUND", kept="the file and its round"
            )
        if books.remove(tx, row, actor=actor):
            files.drop(row.sha256)

    await ports.store.write(act)
    return await show(ports, ticket, actor=actor)


def _file(conn: Connection, ticket: str, file: str) -> sa.Row[Any]:
    query = sa.select(t.qa_evidence).where(e.id == file, e.ticket == ticket, e.removed.is_(None))
    row = conn.execute(query).first()
    if row is None:
        raise NotFound(f"{ticket} has no file {file}", code="QA_FILE")
    return row
