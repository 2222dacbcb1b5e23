"""A kept state of a ticket on the screen: what it holds, and the ways to bring it back."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import BeadmillError
from beadmill.operations import tickets, undo
from beadmill.web.pages.forms import posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back
from beadmill.web.pages.tickets import frame

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/tickets/{key}/undo/{n}")
async def state(on: On, key: str, n: int, branch: str = "") -> Response:
    return await _state(on, key, n, done=branch)


async def _state(
    on: Screen, key: str, n: int, *, done: str = "", given: str = "", error: BeadmillError | None = None
) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found = await undo.show(on.ports, key, n, actor=on.actor)
    return await on.page(
        "ticket/undo.html",
        status=error.status if error else 200,
        state=found,
        done=done,
        given=given,
        error=error,
        **frame(ticket, "history"),
    )


@router.post("/tickets/{key}/undo/{n}/restore")
async def restore(on: On, key: str, n: int) -> Response:
    form = await posted(on.request)
    branch = form.get("branch").strip()
    try:
        await undo.restore(on.ports, key, n, branch=branch, actor=on.actor, key=form.get("key"))
    except BeadmillError as error:
        return await _state(on, key, n, given=branch, error=error)
    return back(f"/tickets/{key}/undo/{n}?branch={branch}" if branch else f"/tickets/{key}/history#undo")
