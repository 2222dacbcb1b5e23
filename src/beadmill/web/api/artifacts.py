from __future__ import annotations

from fastapi import APIRouter, Response

from beadmill.domain.values import Json
from beadmill.operations import artifacts, views
from beadmill.operations.paging import Page
from beadmill.web.api.common import Body, Cursor, IfMatch, InPorts, Key, Limit, Who, route

router = APIRouter()


class Edit(Body):
    """Either the text a person edited, or the same as JSON. ``approve``: save and approve in one action."""

    text: str | None = None
    document: Json = None
    approve: bool = False
    note: str = ""


@route(router, "artifacts.listing")
async def listing(
    *,
    ports: InPorts,
    actor: Who,
    run: str = "",
    ticket: str = "",
    kind: str = "",
    visit: str = "",
    cursor: Cursor = "",
    limit: Limit = None,
) -> Page[views.ArtifactLine]:
    return await artifacts.listing(
        ports, actor=actor, run=run, ticket=ticket, kind=kind, visit=visit, cursor=cursor, limit=limit
    )


@route(router, "artifacts.show")
async def show(*, ports: InPorts, actor: Who, row: int, response: Response) -> views.ArtifactView:
    view = await artifacts.show(ports, row, actor=actor)
    response.headers["ETag"] = f'"{view.sha256}"'
    return view


@route(router, "artifacts.raw", response_class=Response)
async def raw(*, ports: InPorts, actor: Who, row: int) -> Response:
    data, sha = await artifacts.raw(ports, row, actor=actor)
    return Response(data, media_type="application/json", headers={"ETag": f'"{sha}"'})


@route(router, "artifacts.diff")
async def diff(*, ports: InPorts, actor: Who, row: int, against: int | None = None) -> views.DiffView:
    return await artifacts.diff(ports, row, against=against, actor=actor)


@route(router, "artifacts.check")
async def check(*, ports: InPorts, actor: Who, row: int, body: Edit) -> views.CheckedView:
    return await artifacts.check(ports, row, text=body.text, document=body.document, actor=actor)


@route(router, "artifacts.edit")
async def edit(
    *, ports: InPorts, actor: Who, key: Key, etag: IfMatch, row: int, body: Edit, response: Response
) -> views.EditedView:
    view = await artifacts.edit(
        ports,
        row,
        etag=etag,
        text=body.text,
        document=body.document,
        approve=body.approve,
        note=body.note,
        actor=actor,
        key=key,
    )
    response.headers["ETag"] = f'"{view.sha256}"'
    return view
