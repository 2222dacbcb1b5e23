from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from beadmill.artifacts.replan import Change
from beadmill.domain.machine import RunState
from beadmill.operations import beads, changes, councils, occurrences, runs, trail, views
from beadmill.operations.paging import Page
from beadmill.web.api.common import Body, Cursor, IfMatch, InPorts, Key, Limit, Who, route

router = APIRouter()


class Pause(Body):
    now: bool = False


class Retry(Body):
    note: str = ""
    choice: str = "retry"


class Replan(Body):
    """``changes`` in their order, all of them or none: {do: edit, bead, fields}, {do: add, fields, before}, {do: split,
    bead, into}, {do: skip, bead}, {do: unskip, bead}, {do: order, beads}."""

    changes: tuple[Change, ...] = Field(min_length=1)
    note: str = ""


class Rerun(Body):
    node: str
    comment: str = ""


class Reason(Body):
    reason: str = ""


@route(router, "runs.listing")
async def listing(
    *,
    ports: InPorts,
    actor: Who,
    ticket: str = "",
    project: str = "",
    state: RunState | None = None,
    cursor: Cursor = "",
    limit: Limit = None,
) -> Page[views.RunLine]:
    return await runs.listing(
        ports, actor=actor, ticket=ticket, project=project, state=state, cursor=cursor, limit=limit
    )


@route(router, "runs.show")
async def show(*, ports: InPorts, actor: Who, run: str) -> views.RunView:
    return await runs.show(ports, run, actor=actor)


@route(router, "runs.context")
async def context(*, ports: InPorts, actor: Who, run: str) -> views.ContextView:
    return await runs.context(ports, run, actor=actor)


@route(router, "runs.pause")
async def pause(*, ports: InPorts, actor: Who, key: Key, run: str, body: Pause | None = None) -> views.RunView:
    return await runs.pause(ports, run, now=bool(body and body.now), actor=actor, key=key)


@route(router, "runs.resume")
async def resume(*, ports: InPorts, actor: Who, key: Key, run: str) -> views.RunView:
    return await runs.resume(ports, run, actor=actor, key=key)


@route(router, "occurrences.listing")
async def errors(*, ports: InPorts, actor: Who, run: str) -> tuple[views.OccurrenceView, ...]:
    return await occurrences.listing(ports, run, actor=actor)


@route(router, "runs.retry")
async def retry(*, ports: InPorts, actor: Who, key: Key, run: str, body: Retry | None = None) -> views.RunView:
    wish = body or Retry()
    return await runs.retry(ports, run, choice=wish.choice, note=wish.note, actor=actor, key=key)


@route(router, "runs.rerun")
async def rerun(*, ports: InPorts, actor: Who, key: Key, run: str, body: Rerun) -> views.RunView:
    return await runs.rerun(ports, run, body.node, comment=body.comment, actor=actor, key=key)


@route(router, "runs.cancel")
async def cancel(*, ports: InPorts, actor: Who, run: str, body: Reason | None = None) -> views.RunView:
    return await runs.cancel(ports, run, reason=body.reason if body else "", actor=actor)


@route(router, "beads.listing")
async def bead_listing(*, ports: InPorts, actor: Who, run: str) -> tuple[views.BeadLine, ...]:
    return await beads.listing(ports, run, actor=actor)


@route(router, "beads.replan")
async def replan(
    *, ports: InPorts, actor: Who, key: Key, etag: IfMatch, run: str, body: Replan
) -> tuple[views.BeadLine, ...]:
    return await beads.replan(ports, run, body.changes, etag=etag, note=body.note, actor=actor, key=key)


@route(router, "beads.show")
async def bead(*, ports: InPorts, actor: Who, run: str, bead: str) -> views.BeadView:
    return await beads.show(ports, run, bead, actor=actor)


@route(router, "trail.listing")
async def trail_listing(*, ports: InPorts, actor: Who, run: str = "", ticket: str = "") -> views.TrailView:
    return await trail.listing(ports, run=run, ticket=ticket, actor=actor)


@route(router, "councils.show")
async def council(*, ports: InPorts, actor: Who, run: str, node: str, visit: int = 0) -> views.CouncilView:
    return await councils.show(ports, run, node, visit=visit, actor=actor)


class Patch(BaseModel):
    """A unified diff, "" before there is a candidate."""

    run: str
    diff: str


@route(router, "changes.diff")
async def diff(*, ports: InPorts, actor: Who, run: str) -> Patch:
    return Patch(run=run, diff=await changes.diff(ports, run, actor=actor))
