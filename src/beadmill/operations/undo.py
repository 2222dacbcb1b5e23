"""Undo: the states that were kept before something destructive, looked at and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.machine import Hold, RunState, VisitState
from beadmill.domain.values import Actor, Event, GateKind, Json, Permission
from beadmill.engine.port import Work
from beadmill.errors import Conflict
from beadmill.git.kept import Kept
from beadmill.operations import _rows, views
from beadmill.operations.beads import patch
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import known, once
from beadmill.operations.rules import require
from beadmill.store import tables as t
from beadmill.workspaces import states
from beadmill.workspaces.tree import acting, read_marker

g, s, v = t.gates.c, t.sessions.c, t.visits.c


async def listing(ports: Ports, ticket: str, *, actor: Actor) -> tuple[views.UndoLine, ...]:
    """The newest first; empty before the ticket has started. Raises NotFound."""
    require(actor, Permission.READ)
    work = await _work(ports, ticket)
    if work is None:
        return ()
    found = await states.listing(work.repository, ticket)
    return tuple(views.UndoLine(**_fields(state, work)) for state in reversed(found))


def _fields(state: Kept, work: Work) -> dict[str, Any]:
    place = Path(state.place) if state.place else None
    inside = place is not None and place.is_relative_to(work.workspace)
    named = place.relative_to(work.workspace).as_posix() if place and inside else state.place
    return {
        "ref": state.ref,
        "n": state.n,
        "when": state.when.isoformat() if state.when else None,
        "why": state.why,
        "place": named.removesuffix("/tree"),
        "head": state.head,
        "files": len(state.files),
        "size": state.size,
        "left_out": state.left_out,
    }


async def _work(ports: Ports, ticket: str) -> Work | None:
    """Of the ticket's current run; None before it has started. Raises NotFound."""

    def read(conn: Connection) -> Work | None:
        row = _rows.ticket_row(conn, ticket)
        return Work(**_rows.run_row(conn, row.run_id).work) if row.run_id else None

    return await ports.store.read(read)


async def show(ports: Ports, ticket: str, n: int, *, actor: Actor) -> views.UndoView:
    """One state with its patch against the commit it stood on. Raises NotFound."""
    require(actor, Permission.READ)
    work = await _started(ports, ticket)
    state = await states.one(work.repository, ticket, n)
    touched = tuple(views.UndoFile(path=file.path, how=file.how, size=file.size) for file in state.files)
    diff = await patch(work.repository, state.head, state.commit)
    return views.UndoView(**_fields(state, work), touched=touched, diff=diff)


async def _started(ports: Ports, ticket: str) -> Work:
    work = await _work(ports, ticket)
    if work is None:
        raise Conflict(f"{ticket} has not started", code="NO_RUN", next=f"beadmill ticket start {ticket}")
    return work


async def restore(
    ports: Ports, ticket: str, n: int, *, actor: Actor, branch: str = "", key: str = ""
) -> views.RestoredView:
    """Brings a state back into the ticket's worktree, behind an undo ref of what is there; with ``branch``, as a new
    branch instead, and nothing else changes.

    Raises NotFound, Conflict while something works in the worktree, when it is gone, or when beads that count as done
    would be taken off its branch; Refused for a bad name.
    """
    require(actor, Permission.RUN)
    request: Json = {"ticket": ticket, "n": n, "branch": branch}
    what = "undo.restore"
    done = await ports.store.read(lambda conn: known(conn, key, operation=what, actor=actor, request=request))
    if done is not None:
        return views.RestoredView(**done)
    work = await _started(ports, ticket)
    state = await states.one(work.repository, ticket, n)
    if branch:
        commit = await states.as_branch(work.repository, work.workspace, state, branch)
        made = views.RestoredView(n=n, branch=branch, commit=commit)
    else:
        made = await _into(ports, ticket, work, state, key=key)
    return await _booked(ports, ticket, made, request=request, actor=actor, key=key)


async def _booked(
    ports: Ports, ticket: str, made: views.RestoredView, *, request: Json, actor: Actor, key: str
) -> views.RestoredView:
    said = made.model_dump(mode="json")

    def act(tx: Any) -> Json:
        tx.emit(Event("undo.restored", said), ticket=ticket, actor=actor)
        return said

    await ports.store.write(
        lambda tx: once(
            tx, key, operation="undo.restore", actor=actor, request=request, now=tx.now, act=lambda: act(tx)
        )
    )
    return made


async def _into(ports: Ports, ticket: str, work: Work, state: Kept, *, key: str) -> views.RestoredView:
    tree = read_marker(Path(work.workspace), "tree")
    if tree is None or not tree.there:
        raise Conflict(
            f"the worktree of {ticket} is gone",
            code="TREE_GONE",
            kept=f"the state, behind {state.ref}",
            next=f"beadmill undo restore {ticket} {state.n} --branch <name>",
        )
    await ports.store.read(lambda conn: _idle(conn, ticket))
    async with acting(tree):  # whoever begins to work there waits for this lock first
        ended = await ports.store.read(lambda conn: _idle(conn, ticket))
        kept = await states.into(ports.trees, tree, state, ended=ended, key=f"restore {key}" if key else "")
    return views.RestoredView(n=state.n, tree=tree.path, commit=await ports.trees.head(tree), kept=kept)


def _idle(conn: Connection, ticket: str) -> bool:
    """Whether the run has ended. Raises Conflict unless it has, or is paused or blocked and nothing of it works."""
    run = _rows.run_row(conn, _rows.ticket_row(conn, ticket).run_id)
    mine = sa.select(t.runs.c.id).where(t.runs.c.ticket_id == run.ticket_id)
    live = conn.execute(sa.select(s.token).where(s.run_id.in_(mine), s.ended.is_(None))).scalar()
    if live is None and run.state != RunState.ACTIVE:
        return True
    held = run.hold != Hold.NONE
    at_work = [VisitState.RUNNING] if held else [VisitState.RUNNING, VisitState.READY]
    acts = conn.execute(sa.select(v.id).where(v.run_id == run.id, v.state.in_(at_work))).first() is not None
    blocked = sa.select(g.id).where(g.run_id == run.id, g.state == "open", g.kind == GateKind.BLOCKED)
    still = held or conn.execute(blocked).first() is not None
    if still and not acts and live is None:
        return False
    raise Conflict(
        f"{run.id} works in that folder, or may at any moment",
        code="WORKING",
        details={"run": run.id, "session": live or ""},
        kept="nothing was changed",
        next=f"beadmill run pause {run.id}, wait until its turn has ended, then try again; or use --branch <name>",
    )
