"""Beads: the plan folded with the ledger of attempts, and what proves each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.replan import Change, replanned, said
from beadmill.domain.bead import Attempt, status
from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Actor, Json, Permission
from beadmill.errors import Missing, NotFound, Stale
from beadmill.git.run import Repo
from beadmill.operations import _replan, _rows, views
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import once
from beadmill.operations.rules import require
from beadmill.store import blobs
from beadmill.store import tables as t
from beadmill.store.db import Tx

b = t.bead_attempts.c
DIFF = 400_000  # characters; a longer diff is cut and says so


@dataclass(frozen=True, slots=True)
class _Plan:
    beads: tuple[Bead, ...]
    attempts: tuple[Attempt, ...]
    states: Mapping[str, Any]

    def line(self, bead: Bead) -> dict[str, Any]:
        return {
            "id": bead.id,
            "title": bead.title,
            "state": str(self.states[bead.id]),
            "priority": bead.priority,
            "blocked_by": tuple(bead.blocked_by),
            "attempts": sum(1 for a in self.attempts if a.bead == bead.id),
            "skipped": bead.skipped,
            "sha": bead.sha,
        }


async def listing(ports: Ports, run: str, *, actor: Actor) -> tuple[views.BeadLine, ...]:
    """In the order of the plan; empty before there is one. Raises NotFound for an unknown run."""
    require(actor, Permission.READ)

    def read(conn: Connection) -> tuple[views.BeadLine, ...]:
        plan = _plan(conn, run)
        return tuple(views.BeadLine(**plan.line(bead)) for bead in plan.beads)

    return await ports.store.read(read)


def _plan(conn: Connection, run: str) -> _Plan:
    _rows.run_row(conn, run)
    newest = blobs.newest(conn, run, Beads.kind)
    if newest is None:
        return _Plan((), (), {})
    beads = Beads.parse(blobs.get_blob(conn, newest.ref.sha256)).beads
    query = sa.select(t.bead_attempts).where(b.run_id == run).order_by(b.bead, b.n)
    attempts = tuple(_attempt(row) for row in conn.execute(query))
    return _Plan(beads, attempts, status(beads, attempts))


def _attempt(row: Any) -> Attempt:
    return Attempt(
        bead=row.bead,
        n=row.n,
        bead_sha=row.bead_sha,
        state=AttemptState(row.state),
        visit=row.visit_id,
        start_commit=row.start_commit,
        end_commit=row.end_commit,
        tree=row.tree,
        note=row.note,
        sessions=tuple(row.sessions),
        proof=row.proof,
        started=datetime.fromisoformat(row.started),
        ended=datetime.fromisoformat(row.ended) if row.ended else None,
    )


async def show(ports: Ports, run: str, bead: str, *, actor: Actor) -> views.BeadView:
    """The bead with every attempt, its evidence, the checks and the diff. Raises NotFound."""
    require(actor, Permission.READ)
    view, repository, span = await ports.store.read(lambda conn: _view(conn, run, bead))
    return view.model_copy(update={"diff": await patch(repository, *span)})


def _view(conn: Connection, run: str, bead: str) -> tuple[views.BeadView, str, tuple[str, str]]:
    plan = _plan(conn, run)
    found = next((x for x in plan.beads if x.id == bead), None)
    if found is None:
        raise NotFound(f"{run} has no bead {bead}", code="BEAD_NOT_FOUND", next=f"beadmill bead list {run}")
    mine = [a for a in plan.attempts if a.bead == bead]
    proven = next((a for a in reversed(mine) if a.state == AttemptState.DONE), mine[-1] if mine else None)
    view = views.BeadView(
        **plan.line(found),
        bead=found.model_dump(mode="json"),
        tries=tuple(_try(a, found.sha) for a in mine),
        spend=_spend(conn, [token for a in mine for token in a.sessions]),
        evidence=_evidence(proven),
        checks=_checks(conn, run, bead),
        diff="",
    )
    span = (proven.start_commit, proven.end_commit) if proven else ("", "")
    work = _rows.run_row(conn, run).work
    return view, work.get("repository", ""), span


def _spend(conn: Connection, tokens: Sequence[str]) -> views.Spend:
    s = t.sessions.c
    return _rows.total(_rows.spend_by(conn, s.token, s.token.in_(tokens)).values())


def _try(attempt: Attempt, sha: str) -> views.AttemptView:
    return views.AttemptView(
        n=attempt.n,
        bead_sha=attempt.bead_sha,
        current=attempt.bead_sha == sha,
        state=attempt.state,
        start_commit=attempt.start_commit,
        end_commit=attempt.end_commit,
        note=attempt.note,
        sessions=attempt.sessions,
        proof=dict(attempt.proof),
        started=attempt.started.isoformat() if attempt.started else None,
        ended=attempt.ended.isoformat() if attempt.ended else None,
    )


def _evidence(attempt: Attempt | None) -> Json:
    return dict(attempt.proof) if attempt and attempt.proof else None


def _checks(conn: Connection, run: str, bead: str) -> tuple[views.CheckView, ...]:
    c = t.checks.c
    query = sa.select(t.checks).where(c.run_id == run, c.bead == bead).order_by(c.id)
    return tuple(
        views.CheckView(
            purpose=r.purpose,
            command=r.command,
            commit=r.commit_sha,
            exit=r.exit,
            seconds=r.seconds,
            output=r.output,
            at=r.at,
        )
        for r in conn.execute(query)
    )


async def replan(
    ports: Ports, run: str, changes: Sequence[Change], *, etag: str | None, actor: Actor, note: str = "", key: str = ""
) -> tuple[views.BeadLine, ...]:
    """A new version of the plan that is being built: beads edited, added, split, skipped, taken up again, reordered, all
    of it or nothing. Answers with the plan. ``etag`` is the sha256 of the version that was looked at.

    Raises Missing without it, Stale when another version holds, Conflict when the run is not paused, a bead is done or
    an agent works at it, NotFound, Invalid, Unprocessable with every problem of the result.
    """
    require(actor, Permission.DECIDE)
    told = [said(change) for change in changes]
    request = {"run": run, "changes": [c.model_dump(mode="json") for c in changes], "etag": etag, "note": note}

    def change(tx: Tx) -> int:
        here = _replan.standing(tx.conn, run)
        _same(here, etag)
        made = replanned(here.plan, changes, done=here.done)
        return _replan.save(tx, here, made, actor=actor, note=note, changes=told)

    def act(tx: Tx) -> None:
        once(tx, key, operation="beads.replan", actor=actor, request=request, now=tx.now, act=lambda: change(tx))

    await ports.store.write(act)
    return await listing(ports, run, actor=actor)


def _same(here: _replan.Standing, etag: str | None) -> None:
    if etag is None:
        raise Missing("say which version you looked at (If-Match)", code="IF_MATCH_REQUIRED", kept="your input")
    if etag != here.sha:
        raise Stale(
            "the plan was changed meanwhile",
            code="ARTIFACT_STALE",
            details={"row": here.row, "sha256": here.sha},
            kept="your input",
            next=f"compare: beadmill artifact diff {here.row}",
        )


async def patch(repository: str, start: str, end: str) -> str:
    """Commits live in the user's repository: its worktree shares the objects."""
    if not (repository and start and end) or start == end:
        return ""
    from beadmill.git.run import discover

    repo: Repo = await discover(await asyncio.to_thread(_resolved, repository))
    done = await repo.git("diff", "--no-color", "--no-ext-diff", "--no-textconv", start, end, ok=(0, 128))
    if done.code != 0:
        return ""
    text = done.out.decode(errors="replace")
    return text if len(text) <= DIFF else f"{text[:DIFF]}\n… cut: the whole diff has {len(text)} characters\n"


def _resolved(path: str) -> Any:
    from pathlib import Path

    return Path(path).resolve()
