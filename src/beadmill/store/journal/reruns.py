"""A rerun: a new run in which everything upstream of the target is kept, and nothing of the target or later (rule 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain import flow
from beadmill.domain.flow import Key, Past
from beadmill.domain.machine import RunState, VisitState
from beadmill.domain.sop import Graph
from beadmill.domain.values import Actor, Json, VisitRef
from beadmill.errors import Conflict, NotFound
from beadmill.store import tables
from beadmill.store.db import Tx
from beadmill.store.journal import moves, runs, tokens

r, v, a, b, c = tables.runs, tables.visits, tables.artifacts, tables.bead_attempts, tables.changes


def rerun(
    tx: Tx,
    run: str,
    graph: Graph,
    target: str,
    *,
    new_run: str,
    actor: Actor,
    comment: str = "",
    work: Mapping[str, Json] | None = None,
) -> None:
    """``comment`` says why, to the target; ``work`` are facts that the new run has of its own. The old run is superseded. Raises NotFound (no such node), Conflict (still live, or its change is merged)."""
    refuse(tx.conn, run, graph, target)
    row = moves.run_row(tx, run)
    keep = flow.kept(graph, tokens.past(tx.conn, run), target)
    runs.end(tx, run, RunState.SUPERSEDED, actor=actor)
    runs.start(
        tx,
        run=new_run,
        ticket_id=row["ticket_id"],
        project_id=row["project_id"],
        sop=row["sop"],
        body=row["sop_body"],
        graph=graph,
        settings=row["settings"],
        work={**row["work"], **(work or {})},
        actor=actor,
        parent=run,
    )
    _copy_visits(tx, run, new_run, keep)
    _stand_for(tx, run, new_run, keep, _copy_artifacts(tx, run, new_run, keep))
    _copy_attempts(tx, run, new_run, keep)
    tokens.apply(tx, new_run, graph, _restart(graph, tokens.past(tx.conn, new_run), target), comment=comment)
    moves.project(tx, new_run, actor=actor)


def _restart(graph: Graph, kept: Sequence[Past], target: str) -> flow.Moves:
    return flow.send_back(graph, kept, target) if kept else flow.begin(graph)


def refuse(conn: Connection, run: str, graph: Graph, target: str) -> None:
    """Raises NotFound and Conflict as ``rerun`` does; nothing is changed."""
    state = conn.execute(sa.select(r.c.state).where(r.c.id == run)).scalar()
    if state is None:
        raise NotFound(f"There is no run {run}", code="RUN_NOT_FOUND")
    if target not in graph.nodes:
        raise NotFound(
            f"The SOP has no node {target}", code="NODE_NOT_FOUND", next=f"its nodes: {', '.join(graph.nodes)}"
        )
    if state == RunState.ACTIVE:
        raise Conflict("The run is still going on", code="RUN_ACTIVE", next="send it back, or cancel it first")
    if state == RunState.SUPERSEDED:
        raise Conflict("Another run took over already", code="RUN_SUPERSEDED", next="rerun that one")
    if conn.execute(sa.select(c.c.state).where(c.c.run_id == run)).scalar() == "merged":
        raise Conflict("Its change is merged: a new ticket is the way on", code="CHANGE_MERGED")


def kept(conn: Connection, run: str, graph: Graph, target: str) -> tuple[str, ...]:
    """Ids of the visits that a rerun from ``target`` keeps."""
    return tuple(tokens.visit_id(run, key) for key in flow.kept(graph, tokens.past(conn, run), target))


def _copy_visits(tx: Tx, old: str, new: str, keep: Sequence[Key]) -> None:
    for key in keep:
        row = dict(tx.run(sa.select(v).where(v.c.id == tokens.visit_id(old, key))).mappings().one())
        row |= {
            "id": tokens.visit_id(new, key),
            "run_id": new,
            "state": VisitState.KEPT,
            "owner": None,
            "wake_at": None,
            "made": [],
            "came_from": [tokens.visit_id(new, _key(x)) for x in row["came_from"]],
        }
        tx.run(sa.insert(v).values(**row))


def _key(visit: str) -> Key:
    ref = VisitRef.parse(visit)
    return ref.node, ref.n


def _copy_artifacts(tx: Tx, old: str, new: str, keep: Sequence[Key]) -> dict[int, int]:
    """Old row → new row."""
    copied: dict[int, int] = {}
    ids = {tokens.visit_id(old, key): tokens.visit_id(new, key) for key in keep}
    rows = tx.run(sa.select(a).where(a.c.run_id == old, a.c.visit_id.in_(ids)).order_by(a.c.id)).mappings().all()
    for row in rows:
        values = {k: x for k, x in row.items() if k != "id"}
        fresh = values | {"run_id": new, "visit_id": ids[row["visit_id"]], "parent": row["id"]}
        copied[row["id"]] = int(tx.run(sa.insert(a).values(**fresh).returning(a.c.id)).scalar_one())
    return copied


def _stand_for(tx: Tx, old: str, new: str, keep: Sequence[Key], copied: dict[int, int]) -> None:
    """The kept visits stand for the copies of what they stood for."""
    for key in keep:
        made = tx.run(sa.select(v.c.made).where(v.c.id == tokens.visit_id(old, key))).scalar_one()
        mine = [copied[row] for row in made if row in copied]
        tx.run(sa.update(v).where(v.c.id == tokens.visit_id(new, key)).values(made=mine))


def _copy_attempts(tx: Tx, old: str, new: str, keep: Sequence[Key]) -> None:
    ids = {tokens.visit_id(old, key): tokens.visit_id(new, key) for key in keep}
    rows = tx.run(sa.select(b).where(b.c.run_id == old, b.c.visit_id.in_(ids))).mappings().all()
    for row in rows:
        key = new + str(row["key"]).removeprefix(old)
        tx.run(sa.insert(b).values(**dict(row) | {"run_id": new, "visit_id": ids[row["visit_id"]], "key": key}))
