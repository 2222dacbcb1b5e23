"""The plan of work on the screen: the list, and one bead with everything that proves it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.operations import artifacts, beads, changes, sessions, tickets, views
from beadmill.web.pages.screen import On, PageRoute
from beadmill.web.pages.tickets import frame

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/tickets/{key}/beads")
async def listing(on: On, key: str) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found = await beads.listing(on.ports, ticket.run, actor=on.actor) if ticket.run else ()
    return await on.page("ticket/beads.html", beads_=found, **frame(ticket, "beads"))


@router.get("/tickets/{key}/beads/{bead}")
async def one(on: On, key: str, bead: str) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found = await beads.show(on.ports, ticket.run or "", bead, actor=on.actor)
    told = {
        s.token: s for s in (await sessions.listing(on.ports, run=ticket.run or "", actor=on.actor, limit=200)).items
    }
    return await on.page("ticket/bead.html", bead=found, told=told, **frame(ticket, "beads"))


@router.get("/tickets/{key}/change")
async def change(on: On, key: str) -> Response:
    """State, text, evidence and diff of the whole change."""
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found: dict[str, views.ArtifactView] = {}
    for kind in ("pull_request_report", "integration_report", "final_test_report", "merge_report"):
        page = await artifacts.listing(on.ports, run=ticket.run or "-", kind=kind, actor=on.actor, limit=200)
        if page.items:
            found[kind] = await artifacts.show(on.ports, page.items[-1].row, actor=on.actor)
    patch = await changes.diff(on.ports, ticket.run, actor=on.actor) if ticket.run else ""
    return await on.page("ticket/change.html", found=found, patch=patch, **frame(ticket, "change"))
