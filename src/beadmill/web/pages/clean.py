"""Free disk space on the screen: what could go, checkboxes, and the report of what went."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.operations import clean, views
from beadmill.operations.clean import Ages
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.screen import On, PageRoute, Screen

router = APIRouter(route_class=PageRoute, include_in_schema=False)
FIELDS = ("logs_days", "undo_days", "backups")


@router.get("/settings/space")
async def space(on: On) -> Response:
    """Asked again by its own form when an age is typed."""
    params = on.request.query_params
    return await _space(on, Posted({name: (params[name],) for name in params}))


async def _space(on: Screen, given: Posted, done: views.CleanedView | None = None) -> Response:
    view = await clean.preview(on.ports, ages=_ages(given), actor=on.actor)
    typed = {name: given.get(name) for name in FIELDS}
    return await on.page("space.html", view=view, typed=typed, done=done)


def _ages(given: Posted) -> Ages:
    """What is no number counts as nothing typed: then all of it stays."""
    logs, undo, backups = (int(text) if text.isdecimal() else None for text in map(given.get, FIELDS))
    return Ages(logs, undo, backups or None)


@router.post("/settings/space")
async def free(on: On) -> Response:
    """Each checkbox is ``<mark> <id>`` as it was shown; what asks counts only with its own confirmation."""
    form = await posted(on.request)
    chosen = [value.partition(" ") for value in form.all("item")]
    wanted = {id_: mark for mark, _space, id_ in chosen}
    lose = bool(form.get("lose"))
    done = await clean.apply(on.ports, wanted, ages=_ages(form), lose=lose, actor=on.actor)
    return await _space(on, form, done)
