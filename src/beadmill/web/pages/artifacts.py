"""One document on the screen: as people read it, as text to edit, and against an earlier version."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.artifacts.yaml import dump
from beadmill.errors import BeadmillError
from beadmill.operations import artifacts, sessions, views
from beadmill.web.pages.forms import posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back

router = APIRouter(route_class=PageRoute)


@router.get("/artifacts/{row}")
async def show(on: On, row: int, against: int | None = None, edit: int = 0) -> Response:
    return await _page(on, row, against=against, editing=bool(edit))


async def _page(
    on: Screen,
    row: int,
    *,
    against: int | None = None,
    editing: bool = False,
    text: str | None = None,
    error: BeadmillError | None = None,
) -> Response:
    found = await artifacts.show(on.ports, row, actor=on.actor)
    every = (await artifacts.listing(on.ports, run=found.run, kind=found.kind, actor=on.actor, limit=200)).items
    ticket = await sessions.ticket_of_run(on.ports, found.run)
    earlier = [line.row for line in every if line.version < found.version]
    other = against if against is not None else (earlier[-1] if earlier else None)
    same = views.DiffView(row=row, against=None, diff="")
    return await on.page(
        "artifact.html",
        status=error.status if error else 200,
        document=found,
        versions=every,
        compared=await artifacts.diff(on.ports, row, against=other, actor=on.actor) if other else same,
        editing=editing,
        text=(dump(found.document) if editing else found.text) if text is None else text,
        error=error,
        ticket_key=ticket,
        topics=f"ticket:{ticket}" if ticket else "board",
    )


@router.post("/artifacts/{row}")
async def save(on: On, row: int) -> Response:
    """A new version; the gate that shows it shows the new one. What was typed stays on a page that says what is wrong."""
    form = await posted(on.request)
    try:
        new = await artifacts.edit(on.ports, row, etag=form.get("etag") or None, text=form.get("text"), actor=on.actor)
    except BeadmillError as error:
        return await _page(on, row, editing=True, text=form.get("text"), error=error)
    return back(form.get("back"), f"/artifacts/{new.row}")
