"""The bead ledger: append, then one conditional finish. And the checks Beadmill ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from beadmill.domain.bead import Attempt
from beadmill.domain.ended import CommandResult
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Event, Json
from beadmill.errors import Conflict
from beadmill.store import tables
from beadmill.store.blobs import insert_ignore
from beadmill.store.db import Tx
from beadmill.store.journal import moves

a, c = tables.bead_attempts, tables.checks


def begin(tx: Tx, run: str, visit: str, bead: str, *, bead_sha: str, tree: str, start_commit: str, key: str) -> Attempt:
    """The attempt of this durable key; a repeat gives the same one. Numbers count on across visits and rounds."""
    known = tx.run(sa.select(a).where(a.c.key == key)).mappings().first()
    if known is None:
        newest = tx.run(sa.select(sa.func.max(a.c.n)).where(a.c.run_id == run, a.c.bead == bead)).scalar()
        tx.run(
            sa.insert(a).values(
                run_id=run,
                bead=bead,
                n=(newest or 0) + 1,
                bead_sha=bead_sha,
                visit_id=visit,
                key=key,
                tree=tree,
                start_commit=start_commit,
                state=AttemptState.OPEN,
                started=tx.now,
                sessions=[],
                proof={},
            )
        )
        tx.emit(
            Event("bead.started", {"bead": bead, "attempt": (newest or 0) + 1}),
            run=run,
            visit=visit,
            ticket=moves.ticket_key(tx, run),
        )
        known = tx.run(sa.select(a).where(a.c.key == key)).mappings().one()
    return _attempt(known)


def finish(
    tx: Tx,
    run: str,
    bead: str,
    n: int,
    *,
    state: AttemptState,
    end_commit: str = "",
    note: str = "",
    proof: Mapping[str, Json] | None = None,
    sessions: Sequence[str] = (),
) -> bool:
    """Only from open. False when it was finished this way already; raises Conflict when it ended in another way."""
    query = sa.update(a).where(a.c.run_id == run, a.c.bead == bead, a.c.n == n, a.c.state == AttemptState.OPEN)
    values = {
        "state": state,
        "end_commit": end_commit,
        "note": note,
        "proof": dict(proof or {}),
        "sessions": list(sessions),
        "ended": tx.now,
    }
    if tx.run(query.values(**values)).rowcount != 1:
        was = tx.run(sa.select(a.c.state).where(a.c.run_id == run, a.c.bead == bead, a.c.n == n)).scalar()
        if was != state:
            raise Conflict(f"Attempt {n} at {bead} already ended: {was}", code="ATTEMPT_ENDED")
        return False
    tx.emit(
        Event(f"bead.{state}", {"bead": bead, "attempt": n, "commit": end_commit}),
        run=run,
        ticket=moves.ticket_key(tx, run),
    )
    return True


def replace_open(tx: Tx, visit: str, scope_tokens: Sequence[str]) -> int:
    """Attempts whose sessions nobody attends any more are closed as replaced (rule 15)."""
    rows = tx.run(sa.select(a).where(a.c.visit_id == visit, a.c.state == AttemptState.OPEN)).mappings().all()
    gone = [row for row in rows if any(_scope(row["key"]) == _scope(token) for token in scope_tokens)]
    for row in gone:  # an edit taken back is a new try, not the one that was closed
        moves.forget(tx, visit, _scope(row["key"]).removeprefix(f"{visit}/"))
    return sum(finish(tx, row["run_id"], row["bead"], row["n"], state=AttemptState.REPLACED) for row in gone)


def _scope(key: str) -> str:
    """``run/visit/<bead>@<sha>/try-1/…`` → up to and with the try: the attempt's own scope."""
    return "/".join(key.partition("#")[0].split("/")[:4])


def listed(conn: sa.Connection, run: str) -> tuple[Attempt, ...]:
    rows = conn.execute(sa.select(a).where(a.c.run_id == run).order_by(a.c.started, a.c.bead, a.c.n)).mappings()
    return tuple(_attempt(row) for row in rows)


def notes(conn: sa.Connection, run: str, bead: str, bead_sha: str) -> tuple[str, ...]:
    """What earlier tries of this very work left for the next one, oldest first, then what people added on retries."""
    query = sa.select(a.c.note).where(a.c.run_id == run, a.c.bead == bead, a.c.bead_sha == bead_sha, a.c.note != "")
    tried = [x[0] for x in conn.execute(query.order_by(a.c.n))]
    g, d = tables.gates, tables.decisions
    said = conn.execute(
        sa.select(d.c.note, g.c.detail)
        .join(g, g.c.id == d.c.gate_id)
        .where(g.c.run_id == run, g.c.kind == "blocked", d.c.note != "")
        .order_by(d.c.at)
    ).all()
    people = [note for note, detail in said if (detail or {}).get("details", {}).get("bead") == bead]
    return tuple(tried + [f"From a person: {note}" for note in people])


def check(
    tx: Tx, run: str, visit: str, *, bead: str, purpose: str, result: CommandResult, commit: str, key: str
) -> None:
    insert_ignore(
        tx,
        c,
        run_id=run,
        visit_id=visit,
        bead=bead,
        purpose=purpose,
        command=result.command,
        commit_sha=commit,
        exit=result.exit,
        seconds=result.seconds,
        output=result.output,
        at=tx.now,
        key=key,
    )


def _attempt(row: sa.RowMapping) -> Attempt:
    ended = row["ended"]
    return Attempt(
        row["bead"],
        row["n"],
        row["bead_sha"],
        AttemptState(row["state"]),
        row["visit_id"],
        row["start_commit"],
        row["end_commit"],
        row["tree"],
        row["note"],
        tuple(row["sessions"]),
        dict(row["proof"]),
        datetime.fromisoformat(row["started"]),
        datetime.fromisoformat(ended) if ended else None,
    )
