"""Sessions and visits on the screen: what each was given, what it said, how a node went, how the council decided."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import NotFound
from beadmill.operations import artifacts, councils, runs, sessions, tickets, views
from beadmill.operations.ports import Ports
from beadmill.web.pages.screen import On, PageRoute, Screen
from beadmill.web.pages.tickets import frame

router = APIRouter(route_class=PageRoute, include_in_schema=False)
COUNCIL = ("interview", "prd", "beads")  # kinds of nodes


@router.get("/sessions/{token:path}")
async def session(on: On, token: str) -> Response:
    found = await sessions.show(on.ports, token, actor=on.actor)
    ticket = await sessions.ticket_of_run(on.ports, found.run)
    return await on.page(
        "session.html", session=found, ticket_key=ticket, topics=f"ticket:{ticket}" if ticket else "board"
    )


@router.get("/tickets/{key}/sessions")
async def listing(on: On, key: str, cursor: str = "") -> Response:
    """Every session of the run with its place in the plan and what it cost."""
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    run = ticket.run or "-"
    page = await sessions.listing(on.ports, run=run, actor=on.actor, cursor=cursor, limit=100)
    return await on.page("ticket/sessions.html", sessions=page, **frame(ticket, "sessions"))


# --- one node of the run ------------------------------------------------------------------------------------------
@router.get("/tickets/{key}/nodes/{node}")
async def node(on: On, key: str, node: str, visit: int = 0) -> Response:
    """Every visit of a node; of one of them its documents, its sessions and, in planning, its council."""
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    if ticket.current is None:
        raise NotFound(f"{key} has not started", code="NO_RUN", next="start it first")
    return await _node(on, ticket, ticket.current, node, visit)


async def _node(on: Screen, ticket: views.TicketView, run: views.RunView, node: str, number: int) -> Response:
    known = next((n for n in run.nodes if n.id == node), None)
    if known is None:
        raise NotFound(f"{run.id} has no node {node}", code="NODE_NOT_FOUND", next="look at the list of its nodes")
    visits = [v for v in run.visits if v.node == node]
    chosen = next((v for v in visits if v.n == number), visits[-1] if visits else None)
    values: dict[str, Any] = {"documents": (), "council": None, "sessions": (), "live_sessions": ()}
    if chosen is not None:
        values = await _visit(on.ports, on, chosen)
        if known.kind in COUNCIL:
            values["council"] = await councils.show(on.ports, run.id, node, visit=chosen.n, actor=on.actor)
    return await on.page(
        "ticket/node.html", of=known, visits=visits, chosen=chosen, **values, **frame(ticket, "", node=node)
    )


async def _visit(ports: Ports, on: Screen, visit: views.VisitView) -> dict[str, Any]:
    lines = (await artifacts.listing(ports, visit=visit.id, actor=on.actor, limit=200)).items
    told = (await sessions.listing(ports, visit=visit.id, actor=on.actor, limit=200)).items
    return {
        "documents": [line for line in lines if line.kind != "reply"],
        "council": None,
        "sessions": told,
        "live_sessions": [s for s in told if s.ended is None],
    }


@router.get("/runs/{run}")
async def run_page(on: On, run: str) -> Response:
    """A run on its own address: its visits in the order of time."""
    found = await runs.show(on.ports, run, actor=on.actor)
    return await on.page("run.html", run=found, topics=f"run:{run}")
