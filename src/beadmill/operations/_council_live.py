"""Rows → one council as it is now: every seat in every phase, from its sessions, its questions and its events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.base import KINDS
from beadmill.artifacts.council import CouncilDrafts, CouncilRefined, CouncilVotes, Coverage
from beadmill.artifacts.rubric import MEANINGS
from beadmill.council.domains import Name
from beadmill.council.seats import seats
from beadmill.domain.price import Source
from beadmill.domain.values import Json
from beadmill.errors import Blocked
from beadmill.operations import _rows, views
from beadmill.operations.runs import graph_of
from beadmill.settings import RunSettings
from beadmill.store import blobs
from beadmill.store import tables as t

DOMAINS: tuple[Name, ...] = ("interview", "prd", "beads")  # node kinds that hold a council
LEFT = (CouncilDrafts.kind, CouncilVotes.kind, CouncilRefined.kind, Coverage.kind)
ALONE = ("live", "refine", "cover", "expand", "fix")  # phases of the winner, in their order
SEAT = re.compile(r"(draft|vote)/seat-(\d+)/")
TOLD = {"council.drafted": "draft", "council.ballot": "vote"}  # what a seat has done, as it is told


@dataclass(frozen=True, slots=True)
class _Seen:
    """Of one visit: its sessions and open questions by (phase, seat), how each seat ended so far."""

    visit: str
    sessions: Sequence[Any]
    asks: frozenset[tuple[str, int]]
    told: Mapping[tuple[str, int], tuple[str, str]]

    def turn(self, phase: str, seat: int, label: str) -> views.SeatTurn:
        mine = [row for row in self.sessions if _place(self.visit, row.token) == (phase, seat)]
        since = next((row.started for row in mine if row.ended is None), None)
        state, error = self.told.get((phase, seat), ("pending", ""))
        if (phase, seat) in self.asks:
            state, error = "asks", ""
        elif since is not None:
            state, error = "working", ""
        return views.SeatTurn(
            seat=seat, label=label, state=state, error=error, since=since, sessions=len(mine), spend=_spend(mine)
        )


def view(conn: Connection, run: Any, node: str, number: int) -> views.CouncilView | None:
    """None when ``node`` holds no council, or has not begun."""
    definition = graph_of(run.sop_body).nodes.get(node)
    domain = next((kind for kind in DOMAINS if definition is not None and definition.kind == kind), None)
    if definition is None or domain is None:
        return None
    visit = _visit(conn, run.id, node, number)
    if visit is None:
        return None
    settings = RunSettings.model_validate(run.settings)
    labels = _labels(settings, solo=definition.config.get("mode") == "solo")
    left = {kind: _document(conn, visit.id, kind) for kind in LEFT}
    seen = _Seen(visit.id, _sessions(conn, visit.id), _asks(conn, visit.id), _told(conn, visit.id))
    return views.CouncilView(
        run=run.id,
        node=node,
        visit=visit.id,
        domain=domain,
        quorum=min(settings.council.quorum, len(labels)),
        solo=len(labels) == 1,
        phases=_phases(seen, labels, left),
        drafts=left[CouncilDrafts.kind],
        votes=left[CouncilVotes.kind],
        refined=left[CouncilRefined.kind],
        coverage=left[Coverage.kind],
        meanings=MEANINGS[domain],
    )


def _visit(conn: Connection, run: str, node: str, number: int) -> Any:
    v = t.visits.c
    query = sa.select(t.visits).where(v.run_id == run, v.node == node).order_by(v.n.desc()).limit(1)
    return conn.execute(query.where(v.n == number) if number else query).first()


def _labels(settings: RunSettings, *, solo: bool) -> tuple[str, ...]:
    try:
        sitting = seats(settings)
    except Blocked:  # no seat was chosen: the gate says so
        return ()
    alone = solo or settings.council.mode == "solo"
    return tuple(str(seat) for seat in (sitting[:1] if alone else sitting))


# --- phases -------------------------------------------------------------------------------------------------------
def _phases(seen: _Seen, labels: Sequence[str], left: Mapping[str, Json]) -> tuple[views.PhaseView, ...]:
    drafted = _outcomes("draft", (left[CouncilDrafts.kind] or {}).get("drafts", ()), "seat")
    voted = _outcomes("vote", (left[CouncilVotes.kind] or {}).get("ballots", ()), "voter")
    stored = {**drafted, **voted}
    newer = {at: said for at, said in seen.told.items() if stored.get(at, ("",))[0] != said[0]}  # a retry goes on
    known = _Seen(seen.visit, seen.sessions, seen.asks, stored | newer)
    names = ["draft", *(["vote"] if len(labels) > 1 else [])]
    every = [views.PhaseView(name=n, seats=tuple(known.turn(n, s, x) for s, x in enumerate(labels))) for n in names]
    winner = (left[CouncilVotes.kind] or left[CouncilRefined.kind] or {}).get("winner")
    alone = [_alone(known, name, winner) for name in ALONE]
    return (*every, *(phase for phase in alone if phase is not None))


def _outcomes(phase: str, records: Sequence[Json], key: str) -> dict[tuple[str, int], tuple[str, str]]:
    return {(phase, int(one[key])): (str(one["outcome"]), str(one["error"])) for one in records}


def _alone(seen: _Seen, name: str, winner: int | None) -> views.PhaseView | None:
    """A phase that one seat has for itself; None while it has no session."""
    mine = [row for row in seen.sessions if _place(seen.visit, row.token)[0] == name]
    if not mine:
        return None
    since = next((row.started for row in mine if row.ended is None), None)
    failed = (mine[0].end or {}).get("type") != "Replied"
    state = "working" if since else "failed" if failed else "completed"
    turn = views.SeatTurn(
        seat=winner or 0, label=mine[0].seat, state=state, since=since, sessions=len(mine), spend=_spend(mine)
    )
    return views.PhaseView(name=name, seats=(turn,))


def _place(visit: str, name: str) -> tuple[str, int]:
    """Phase and seat of a session's token, or of a gate's id; the seat is -1 where the winner works alone."""
    rest = name.removeprefix(f"{visit}/")
    if (found := SEAT.match(rest)) is not None:
        return found[1], int(found[2]) - 1
    return re.split(r"[-/]", rest, maxsplit=1)[0], -1


# --- rows ---------------------------------------------------------------------------------------------------------
def _sessions(conn: Connection, visit: str) -> Sequence[Any]:
    """The newest first."""
    s = t.sessions.c
    query = sa.select(t.sessions).where(s.visit_id == visit, s.kind == "agent")
    return list(conn.execute(query.order_by(s.started.desc(), s.token.desc())))


def _spend(rows: Sequence[Any]) -> views.Spend:
    return _rows.total(
        views.Spend(
            tokens=row.input + row.cached + row.output,
            cost_usd=row.cost_usd,
            unpriced=int(row.cost_source == Source.UNPRICED),
            agent_seconds=row.seconds,
        )
        for row in rows
    )


def _asks(conn: Connection, visit: str) -> frozenset[tuple[str, int]]:
    g = t.gates.c
    query = sa.select(g.id).where(g.visit_id == visit, g.state == _rows.OPEN, g.kind == "question")
    return frozenset(_place(visit, row[0]) for row in conn.execute(query))


def _told(conn: Connection, visit: str) -> dict[tuple[str, int], tuple[str, str]]:
    """The newest word of each seat."""
    e = t.events.c
    run = visit.partition("/")[0]
    query = sa.select(e.kind, e.data).where(e.run_id == run, e.visit_id == visit, e.kind.in_(TOLD)).order_by(e.seq)
    return {
        (TOLD[kind], int(data["seat"])): (str(data["outcome"]), str(data.get("error", "")))
        for kind, data in conn.execute(query)
    }


def _document(conn: Connection, visit: str, kind: str) -> Json:
    a = t.artifacts.c
    query = sa.select(a.sha256).where(a.visit_id == visit, a.kind == kind).order_by(a.id.desc()).limit(1)
    sha = conn.execute(query).scalar()
    return None if sha is None else _parsed(kind, blobs.get_blob(conn, sha))


def _parsed(kind: str, data: bytes) -> Json:
    return KINDS[kind].parse(data).model_dump(mode="json")
