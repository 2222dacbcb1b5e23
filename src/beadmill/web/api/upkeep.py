"""What was kept, brought back; what is not needed any more, removed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from beadmill.operations import clean, undo, views
from beadmill.operations.clean import Ages
from beadmill.web.api.common import Body, InPorts, Key, Who, route

router = APIRouter()


class Restore(Body):
    """``branch``: as a new branch of this name instead of into the ticket's worktree."""

    branch: str = ""


@route(router, "undo.listing")
async def listing(*, ports: InPorts, actor: Who, key: str) -> tuple[views.UndoLine, ...]:
    return await undo.listing(ports, key, actor=actor)


@route(router, "undo.show")
async def show(*, ports: InPorts, actor: Who, key: str, n: int) -> views.UndoView:
    return await undo.show(ports, key, n, actor=actor)


@route(router, "undo.restore")
async def restore(
    *, ports: InPorts, actor: Who, once: Key, key: str, n: int, body: Restore | None = None
) -> views.RestoredView:
    return await undo.restore(ports, key, n, branch=body.branch if body else "", actor=actor, key=once)


Days = Annotated[int | None, Query(ge=0, description="Logs of runs that ended so many days ago may go; default: none.")]
UndoDays = Annotated[int | None, Query(ge=0, description="Undo refs of tickets merged so many days ago may go.")]
Copies = Annotated[int | None, Query(ge=1, description="So many copies of the database stay; default: all.")]


class Wanted(Body):
    """``items``: id → mark, as the preview gave them with the same ages. ``lose``: also what is on no ref."""

    items: dict[str, str]
    logs_days: int | None = Field(default=None, ge=0)
    undo_days: int | None = Field(default=None, ge=0)
    backups: int | None = Field(default=None, ge=1)
    lose: bool = False


@route(router, "clean.preview")
async def preview(
    *, ports: InPorts, actor: Who, logs_days: Days = None, undo_days: UndoDays = None, backups: Copies = None
) -> views.CleanView:
    return await clean.preview(ports, ages=Ages(logs_days, undo_days, backups), actor=actor)


@route(router, "clean.apply")
async def apply(*, ports: InPorts, actor: Who, body: Wanted) -> views.CleanedView:
    ages = Ages(body.logs_days, body.undo_days, body.backups)
    return await clean.apply(ports, body.items, ages=ages, lose=body.lose, actor=actor)
