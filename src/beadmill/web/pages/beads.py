"""The plan of work on the screen: the list, and one bead with everything that proves it."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.replan import Skip, Unskip
from beadmill.operations import artifacts, beads, changes, sessions, tickets, views
from beadmill.web.pages.forms import posted
from beadmill.web.pages.screen import On, PageRoute, back
from beadmill.web.pages.tickets import frame

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/tickets/{key}/beads")
async def listing(on: On, key: str) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found = await beads.listing(on.ports, ticket.run, actor=on.actor) if ticket.run else ()
    plan = await _plan(on, ticket.run) if found else None
    return await on.page("ticket/beads.html", beads_=found, plan=plan, **frame(ticket, "beads"))


async def _plan(on: On, run: str | None) -> views.ArtifactView | None:
    page = await artifacts.listing(on.ports, run=run or "-", kind=Beads.kind, actor=on.actor, limit=200)
    return await artifacts.show(on.ports, page.items[-1].row, actor=on.actor) if page.items else None


@router.post("/tickets/{key}/beads/{bead}/{do}")
async def change_one(on: On, key: str, bead: str, do: Literal["skip", "unskip"]) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    form = await posted(on.request)
    wish = Skip(do="skip", bead=bead) if do == "skip" else Unskip(do="unskip", bead=bead)
    await beads.replan(on.ports, ticket.run or "", [wish], etag=form.get("etag"), actor=on.actor, key=form.get("key"))
    return back(f"/tickets/{key}/beads")


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
