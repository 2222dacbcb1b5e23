"""What was kept, brought back; what is not needed any more, removed."""

from __future__ import annotations

from fastapi import APIRouter

from beadmill.operations import undo, views
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
