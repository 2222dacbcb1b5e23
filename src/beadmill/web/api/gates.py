from __future__ import annotations

from fastapi import APIRouter, Response

from beadmill.domain.values import Json
from beadmill.operations import drafts, gates, views
from beadmill.operations.paging import Page
from beadmill.web.api.common import Body, Cursor, IfMatch, InPorts, Key, Limit, Who, route

router = APIRouter()


class Decision(Body):
    choice: str
    payload: Json = None
    note: str = ""


class Back(Body):
    target: str
    comment: str = ""


class Draft(Body):
    body: Json
    revision: int


@route(router, "gates.listing")
async def listing(
    *,
    ports: InPorts,
    actor: Who,
    project: str = "",
    ticket: str = "",
    kind: str = "",
    state: str = "open",
    cursor: Cursor = "",
    limit: Limit = None,
) -> Page[views.GateLine]:
    return await gates.listing(
        ports, actor=actor, project=project, ticket=ticket, kind=kind, state=state, cursor=cursor, limit=limit
    )


@route(router, "gates.answer")
async def answer(*, ports: InPorts, actor: Who, key: Key, etag: IfMatch, gate: str, body: Decision) -> views.GateView:
    return await gates.answer(
        ports, gate, body.choice, etag=etag, payload=body.payload, note=body.note, actor=actor, key=key
    )


@route(router, "gates.send_back")
async def send_back(*, ports: InPorts, actor: Who, key: Key, etag: IfMatch, gate: str, body: Back) -> views.RunView:
    return await gates.send_back(ports, gate, body.target, comment=body.comment, etag=etag, actor=actor, key=key)


@route(router, "gates.hold")
async def hold(*, ports: InPorts, actor: Who, gate: str) -> views.GateView:
    return await gates.hold(ports, gate, actor=actor)


@route(router, "gates.show")
async def show(*, ports: InPorts, actor: Who, gate: str, response: Response) -> views.GateView:
    view = await gates.show(ports, gate, actor=actor)
    response.headers["ETag"] = f'"{view.etag}"'
    return view


@route(router, "drafts.show")
async def draft(*, ports: InPorts, actor: Who, target: str) -> views.DraftView:
    return await drafts.show(ports, target, actor=actor)


@route(router, "drafts.save")
async def save(*, ports: InPorts, actor: Who, target: str, body: Draft) -> views.DraftView:
    return await drafts.save(ports, target, body.body, revision=body.revision, actor=actor)


@route(router, "drafts.discard")
async def discard(*, ports: InPorts, actor: Who, target: str, revision: int) -> views.DraftView:
    return await drafts.discard(ports, target, revision=revision, actor=actor)
