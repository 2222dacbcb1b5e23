"""The board: what waits for a person first. In an empty home, the first steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.operations import agents, gates, projects, tickets, views
from beadmill.operations.paging import Page
from beadmill.web.pages.screen import On, PageRoute, Screen

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ORDER: tuple[views.Column, ...] = ("needs_input", "todo", "in_progress", "done")
MOST = 50  # cards in a column
assert set(ORDER) == set(get_args(views.Column))


@router.get("/")
async def board(on: On, project: str = "", search: str = "") -> Response:
    known = await projects.listing(on.ports, actor=on.actor, limit=200)
    if not known.items:
        return await first_steps(on)
    columns = {name: await _column(on, name, project, search) for name in ORDER}
    waiting = await gates.listing(on.ports, actor=on.actor, limit=200)
    return await on.page(
        "board.html",
        columns=columns,
        asks=_by_ticket(waiting.items),
        projects=known.items,
        project=project,
        search=search,
    )


async def _column(on: Screen, name: views.Column, project: str, search: str) -> Page[views.TicketLine]:
    sort: tickets.Sort = "priority" if name == "todo" else "updated"
    return await tickets.listing(
        on.ports, actor=on.actor, column=name, project=project, search=search, sort=sort, limit=MOST
    )


def _by_ticket(waiting: Sequence[views.GateLine]) -> Mapping[str, Sequence[views.GateLine]]:
    out: dict[str, list[views.GateLine]] = {}
    for gate in waiting:
        out.setdefault(gate.ticket or "", []).append(gate)
    return out


async def first_steps(on: Screen) -> Response:
    """Shown instead of an empty board, and at /welcome."""
    found = await agents.listing(on.ports, actor=on.actor)
    return await on.page("welcome.html", agents=found, given={}, error=None)


@router.get("/welcome")
async def welcome(on: On) -> Response:
    return await first_steps(on)


@router.get("/waiting")
async def waiting(on: On) -> Response:
    """The number beside "Waiting for you", asked again after every gate event."""
    return on.part("parts/waits.html", waits=await gates.waiting(on.ports, actor=on.actor))
