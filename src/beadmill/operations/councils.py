"""Councils: what the seats of one are doing and did, and what seats achieved over all councils of a project."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from beadmill.council import record as fold
from beadmill.domain.values import Actor, Permission
from beadmill.errors import NotFound
from beadmill.operations import _council_held, _council_live, _rows, views
from beadmill.operations._council_held import Found
from beadmill.operations.ports import Ports
from beadmill.operations.projects import project_row
from beadmill.operations.rules import require

MOST = 500  # councils that a record looks back over


async def show(ports: Ports, run: str, node: str, *, actor: Actor, visit: int = 0) -> views.CouncilView:
    """The council of a planning node; ``visit`` 0 = its newest visit. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _live(conn, run, node, visit))


def _live(conn: Connection, run: str, node: str, visit: int) -> views.CouncilView:
    row = _rows.run_row(conn, run)
    found = _council_live.view(conn, row, node, visit)
    if found is None:
        raise NotFound(
            f"{run} has no council at {node}",
            code="NO_COUNCIL",
            next="name a planning node that has begun: beadmill run show",
        )
    return found


async def record(ports: Ports, short: str, *, actor: Actor) -> views.CouncilRecord:
    """What the seats of a project's councils achieved. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _record(conn, short))


def _record(conn: Connection, short: str) -> views.CouncilRecord:
    project = project_row(conn, short)
    found, more = _council_held.found(conn, project.id, most=MOST)
    spent = _council_held.spent(conn, found)
    sums = fold.summed(one.held for one in found)
    return views.CouncilRecord(
        project=project.short,
        seats=tuple(_seat(label, one, spent.get(label, views.Spend())) for label, one in sums.items()),
        councils=tuple(_held(one) for one in found),
        more=more,
        definitions=dict(fold.DEFINITIONS),
    )


def _seat(label: str, one: fold.Sum, spend: views.Spend) -> views.SeatRecord:
    return views.SeatRecord(
        label=label,
        councils=one.councils,
        drafts=dict(one.drafts),
        stood={name: n for name, n in one.stood.items() if n},
        wins={name: n for name, n in one.wins.items() if n},
        votes=len(one.given),
        mean=one.mean,
        adopted=one.adopted,
        brought=one.brought,
        approved=one.approved,
        merged=one.merged,
        spend=spend,
    )


def _held(one: Found) -> views.HeldView:
    votes = one.held.votes
    parts = fold.parts(one.held)
    return views.HeldView(
        ticket=one.ticket,
        run=one.run,
        node=one.node,
        visit=one.visit,
        domain=one.held.drafts.domain,
        winner=next((p.label for p in parts if p.won), None),
        tie_break=votes.tie_break if votes else "",
        created=one.created,
        seats=_parts(parts),
    )


def _parts(parts: Sequence[fold.Part]) -> tuple[views.SeatPart, ...]:
    return tuple(
        views.SeatPart(
            seat=p.seat,
            label=p.label,
            outcome=p.outcome,
            won=p.won,
            mean=sum(p.given) / len(p.given) if p.given else None,
            adopted=p.adopted,
            brought=len(p.brought),
            approved=len(p.approved),
            merged=len(p.merged),
        )
        for p in parts
    )
