"""Runs: watch, hold, retry, send back, rerun, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill import sops
from beadmill.domain.machine import RunState
from beadmill.domain.sop import Graph
from beadmill.domain.values import Actor, Permission, VisitRef
from beadmill.engine.port import Work
from beadmill.errors import Conflict, Refused
from beadmill.operations import _context, _rows, views
from beadmill.operations._prompts import frozen
from beadmill.operations._rewind import rewind
from beadmill.operations.occurrences import checked
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import known, once
from beadmill.operations.rules import require
from beadmill.processes.alive import all_of
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import budgets, reruns, tokens
from beadmill.store.journal import gates as gate_journal
from beadmill.store.journal import runs as journal
from beadmill.store.journal import visits as visit_journal


async def listing(
    ports: Ports,
    *,
    actor: Actor,
    ticket: str = "",
    project: str = "",
    state: RunState | None = None,
    cursor: str = "",
    limit: int | None = None,
) -> Page[views.RunLine]:
    """Newest first."""
    require(actor, Permission.READ)
    most = bounded(limit)
    columns = [(t.runs.c.created, True), (t.runs.c.id, True)]
    query = _rows.run_query().order_by(t.runs.c.created.desc(), t.runs.c.id.desc()).limit(most + 1)
    for column, value in ((t.tickets.c.key, ticket), (t.projects.c.short, project), (t.runs.c.state, state)):
        query = query.where(column == value) if value else query
    if cursor:
        query = query.where(beyond(columns, decode(cursor, 2)))

    def read(conn: Connection) -> Page[views.RunLine]:
        rows, after = cut(list(conn.execute(query)), most, ["created", "id"])
        return Page(items=tuple(_rows.run_line(row) for row in rows), next=after)

    return await ports.store.read(read)


async def show(ports: Ports, run: str, *, actor: Actor) -> views.RunView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: view(conn, run))


def view(conn: Connection, run: str) -> views.RunView:
    seq = _rows.last_seq(conn)  # read first: an event that is newer is then seen twice, never missed
    row = _rows.run_row(conn, run)
    visits = _visits(conn, run)
    return views.RunView(
        **_rows.run_fields(row),
        settings=row.settings,
        work=row.work,
        nodes=_rail(row, visits),
        visits=tuple(visits),
        gates=tuple(_rows.open_gates(conn, t.gates.c.run_id == run)),
        beads=_rows.bead_counts(conn, [run]).get(run, views.BeadCount()),
        budget=_budget(conn, run),
        change=_change(conn, run),
        seq=seq,
    )


def _visits(conn: Connection, run: str) -> list[views.VisitView]:
    s = t.sessions.c
    spent = _rows.spend_by(conn, s.visit_id, s.run_id == run)
    query = sa.select(t.visits).where(t.visits.c.run_id == run).order_by(t.visits.c.created, t.visits.c.id)
    return [_visit(row, spent.get(row.id, views.Spend())) for row in conn.execute(query)]


def _visit(row: Any, spend: views.Spend) -> views.VisitView:
    return views.VisitView(
        id=row.id,
        node=row.node,
        n=row.n,
        state=row.state,
        phase=row.phase,
        outcome=row.outcome,
        note=row.note,
        comment=row.comment,
        wake_at=row.wake_at,
        made=tuple(row.made),
        created=row.created,
        started=row.started,
        ended=row.ended,
        spend=spend,
    )


def _rail(row: Any, visits: Sequence[views.VisitView]) -> tuple[views.NodeView, ...]:
    """The nodes of the SOP this run pins, in its order, each with its newest visit."""
    graph = graph_of(row.sop_body)
    out: list[views.NodeView] = []
    for node in graph.nodes.values():
        mine = [v for v in visits if v.node == node.id]
        last = max(mine, key=lambda v: v.n) if mine else None
        out.append(
            views.NodeView(
                id=node.id,
                kind=node.kind,
                title=node.title or node.id,
                state=last.state if last else "waiting",
                visits=len(mine),
                outcome=last.outcome if last else None,
                spend=_rows.total(v.spend for v in mine),
                started=last.started if last else None,
                ended=last.ended if last else None,
            )
        )
    return tuple(out)


def _budget(conn: Connection, run: str) -> views.BudgetView:
    found = budgets.spending(conn, run)
    now = found.spent
    return views.BudgetView(
        state=now.state,
        what=now.what,
        share=now.share,
        **found.limits.model_dump(),
        unpriced=found.unpriced,
        blind=now.unpriced,
    )


def _change(conn: Connection, run: str) -> views.ChangeView | None:
    row = conn.execute(sa.select(t.changes).where(t.changes.c.run_id == run)).first()
    if row is None:
        return None
    return views.ChangeView(
        forge=row.forge,
        number=row.number,
        url=row.url,
        branch=row.branch,
        base=row.base,
        head=row.head,
        state=row.state,
        merge_sha=row.merge_sha,
    )


async def context(ports: Ports, run: str, *, actor: Actor) -> views.ContextView:
    """What each session was given, part by part, and what the provider billed for it. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _context.context(conn, run))


# --- acts ---------------------------------------------------------------------------------------------------------
async def pause(ports: Ports, run: str, *, actor: Actor, now: bool = False, key: str = "") -> views.RunView:
    """Running turns end, then nothing is activated. ``now`` stops the sessions at once; their work is kept."""
    require(actor, Permission.RUN)

    def act(tx: Tx) -> list[str]:
        if now:
            return list(journal.fence(tx, run, actor=actor, reason="paused"))
        journal.pause(tx, run, actor=actor)
        return []

    fenced = await _once(ports, key, "runs.pause", {"run": run, "now": now}, actor=actor, act=act)
    await _stop(ports, fenced, "paused")
    return await show(ports, run, actor=actor)


async def resume(ports: Ports, run: str, *, actor: Actor, key: str = "") -> views.RunView:
    require(actor, Permission.RUN)

    def act(tx: Tx) -> str:
        journal.resume(tx, run, actor=actor)
        return run

    await _once(ports, key, "runs.resume", {"run": run}, actor=actor, act=act)
    ports.engine.ring()
    return await show(ports, run, actor=actor)


async def retry(
    ports: Ports, run: str, *, actor: Actor, choice: str = "retry", note: str = "", key: str = ""
) -> views.RunView:
    """Answers every open blocked gate of the run with ``choice``; what waits for a provider's limit asks again now.

    Raises Conflict when there is neither, Unprocessable for a note that is none.
    """
    require(actor, Permission.RUN)
    checked(note)

    def act(tx: Tx) -> list[str]:
        gates = _rows.open_gates(tx.conn, t.gates.c.run_id == run, t.gates.c.kind == "blocked")
        woken = visit_journal.wake_now(tx, run, actor=actor)
        if not gates and not woken:
            _rows.run_row(tx.conn, run)
            raise Conflict(
                f"nothing of {run} is blocked or waits for a provider",
                code="NOT_BLOCKED",
                kept="everything",
                next=f"beadmill run show {run}",
            )
        for gate in gates:
            mine = f"{key or 'retry'}:{gate.id}"
            gate_journal.answer(
                tx, gate.id, choice=choice, etag=gate.etag, payload=None, note=note, key=mine, actor=actor
            )
        return [gate.id for gate in gates]

    await _once(ports, key, "runs.retry", {"run": run, "choice": choice, "note": note}, actor=actor, act=act)
    ports.engine.ring()
    return await show(ports, run, actor=actor)


async def send_back(
    ports: Ports,
    run: str,
    target: str,
    *,
    actor: Actor,
    comment: str = "",
    gate: str = "",
    etag: str | None = None,
    key: str = "",
) -> views.RunView:
    """What lies behind ``target`` is superseded, and proven stopped before visit n+1 of ``target`` starts.

    With ``gate``, its ETag must be the current one. Raises Missing, Stale, Conflict, NotFound.
    """
    require(actor, Permission.DECIDE if gate else Permission.RUN)

    def act(tx: Tx) -> str:
        if gate:
            gate_journal.bound(tx, gate_journal.row_of(tx, gate), etag)
        tokens.send_back(tx, run, _graph(tx.conn, run), target, comment=comment, actor=actor, gate=gate, key=key)
        return run

    request = {"run": run, "target": target, "gate": gate, "comment": comment}
    await _once(ports, key, "runs.send_back", request, actor=actor, act=act)
    ports.engine.ring()
    return await show(ports, run, actor=actor)


def _graph(conn: Connection, run: str) -> Graph:
    return graph_of(_rows.run_row(conn, run).sop_body)


@lru_cache(maxsize=64)
def graph_of(body: str) -> Graph:
    """A run pins its text, so one parse serves every look at it."""
    return sops.load(body, name="run").graph


async def rerun(ports: Ports, run: str, node: str, *, actor: Actor, comment: str = "", key: str = "") -> views.RunView:
    """A live run goes back to ``node``; an ended one gets a successor in which everything upstream is kept."""
    require(actor, Permission.RUN)
    row = await ports.store.read(lambda conn: _rows.run_row(conn, run))
    if row.state == RunState.ACTIVE:
        return await _back(ports, run, node, actor=actor, comment=comment, key=key)
    request = {"run": run, "node": node}
    done = await ports.store.read(lambda conn: known(conn, key, operation="runs.rerun", actor=actor, request=request))
    if done is not None:
        return await show(ports, done, actor=actor)
    await ports.store.read(lambda conn: reruns.refuse(conn, run, _graph(conn, run), node))
    kept = await ports.store.read(lambda conn: reruns.kept(conn, run, _graph(conn, run), node))
    await rewind(ports, run, Work(**row.work), kept)

    def act(tx: Tx) -> str:
        new = _successor(tx.conn, run)
        work = {"prompts": frozen(ports, tx)}  # a new run: what was edited since counts
        reruns.rerun(tx, run, _graph(tx.conn, run), node, new_run=new, actor=actor, comment=comment, work=work)
        return new

    new = await _once(ports, key, "runs.rerun", request, actor=actor, act=act)
    ports.engine.ring()
    return await show(ports, new, actor=actor)


async def _back(ports: Ports, run: str, node: str, *, actor: Actor, comment: str, key: str) -> views.RunView:
    try:
        return await send_back(ports, run, node, actor=actor, comment=comment, key=key)
    except Refused as error:
        if error.code == "SEALED":
            error.next = f"beadmill run cancel {run}, then beadmill run rerun {run} {node}: what was made is kept"
        raise


def _successor(conn: Connection, run: str) -> str:
    """``KEY-r<n>``: the next free number of the family."""
    family, _, _ = run.rpartition("-r")
    taken = {i for (i,) in conn.execute(sa.select(t.runs.c.id).where(t.runs.c.id.startswith(f"{family}-r")))}
    return next(f"{family}-r{n}" for n in range(1, len(taken) + 2) if f"{family}-r{n}" not in taken)


async def cancel(ports: Ports, run: str, *, actor: Actor, reason: str = "") -> views.RunView:
    """The run is fenced, then proven stopped, then canceled, and its ticket with it."""
    require(actor, Permission.RUN)
    row = await ports.store.read(lambda conn: _rows.run_row(conn, run))
    if row.state == RunState.ACTIVE:
        await stop_and_cancel(ports, run, actor=actor, reason=reason)
    return await show(ports, run, actor=actor)


async def stop_and_cancel(ports: Ports, run: str, *, actor: Actor, reason: str) -> None:
    """The journal fences first, so nothing new starts; every visit is proven stopped; only then it is canceled.

    A stop that cannot be proven raises Unavailable and leaves the run fenced: cancel again.
    """
    fenced = await ports.store.write(lambda tx: journal.fence(tx, run, actor=actor, reason=reason))
    await _stop(ports, fenced, "canceled")
    await ports.sessions.servers.close(run, "canceled")
    await ports.store.write(lambda tx: journal.cancel(tx, run, actor=actor, reason=reason))


# --- helpers ------------------------------------------------------------------------------------------------------
async def _once(ports: Ports, key: str, operation: str, request: Any, *, actor: Actor, act: Any) -> Any:
    return await ports.store.write(
        lambda tx: once(tx, key, operation=operation, actor=actor, request=request, now=tx.now, act=lambda: act(tx))
    )


async def _stop(ports: Ports, visits: Sequence[str], why: str) -> None:
    await all_of([ports.engine.stop(VisitRef.parse(visit), why) for visit in visits])
