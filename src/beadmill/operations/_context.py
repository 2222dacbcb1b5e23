"""What the sessions of a run were given, per stage: from the ledgers of their briefs, beside what the providers billed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import VisitRef
from beadmill.operations import _rows, views
from beadmill.store import tables as t

s, v = t.sessions.c, t.visits.c


def context(conn: Connection, run: str) -> views.ContextView:
    """Raises NotFound."""
    row = _rows.run_row(conn, run)
    query = sa.select(t.sessions).join(t.visits, v.id == s.visit_id).where(s.run_id == run, s.kind == "agent")
    found = conn.execute(query.order_by(v.created, v.id, s.started, s.token)).all()
    stages = tuple(_stage(visit, list(rows)) for visit, rows in groupby(found, key=lambda one: str(one.visit_id)))
    return views.ContextView(run=run, ticket=row.key or "", stages=stages, given=_sum(stage.given for stage in stages))


def _stage(visit: str, rows: Sequence[Any]) -> views.StageContext:
    ref = VisitRef.parse(visit)
    sessions = tuple(_session(row) for row in rows)
    given = _sum(session.given for session in sessions)
    return views.StageContext(visit=visit, node=ref.node, n=ref.n, sessions=sessions, given=given)


def _session(row: Any) -> views.SessionContext:
    parts = tuple(views.PartLine(**part) for part in row.ledger)
    told = row.input + row.cached > 0
    return views.SessionContext(
        token=row.token,
        template=row.template,
        subject=row.subject,
        seat=row.seat,
        ended=row.ended is not None,
        parts=parts,
        given=views.Given(
            estimated=sum(part.tokens for part in parts if not part.dropped),
            dropped=sum(part.tokens for part in parts if part.dropped),
            billed=row.input + row.cached if told else None,
            cached=row.cached if told else None,
        ),
    )


def _sum(given: Iterable[views.Given]) -> views.Given:
    every = list(given)
    billed = [one.billed for one in every if one.billed is not None]
    cached = [one.cached for one in every if one.cached is not None]
    return views.Given(
        estimated=sum(one.estimated for one in every),
        dropped=sum(one.dropped for one in every),
        billed=sum(billed) if billed else None,
        cached=sum(cached) if cached else None,
    )
