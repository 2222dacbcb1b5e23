from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from beadmill.domain.values import Json
from beadmill.errors import Invalid
from beadmill.operations import qa, views
from beadmill.web.api.common import Body, IfMatch, InPorts, Key, Who, route

router = APIRouter()
BARE = "default-src 'none'; sandbox"  # a file is never a page of ours


class Results(Body):
    """Item id → outcome (pending, pass, fail, waive, improvement) with note, observation, reason, links, group and
    improvement. ``revision`` is what you have read."""

    results: dict[str, Json] = Field(default_factory=dict)
    revision: int


class Submission(Body):
    revision: int


class Skip(Body):
    revision: int
    reason: str = ""


@route(router, "qa.show")
async def show(*, ports: InPorts, actor: Who, key: str) -> views.QaView:
    return await qa.show(ports, key, actor=actor)


@route(router, "qa.save")
async def save(*, ports: InPorts, actor: Who, key: str, body: Results) -> views.QaView:
    return await qa.save(ports, key, body.results, revision=body.revision, actor=actor)


@route(router, "qa.submit")
async def submit(*, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: Submission) -> views.QaView:
    return await qa.submit(ports, key, etag=etag, revision=body.revision, actor=actor, key=once)


@route(router, "qa.skip")
async def skip(*, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: Skip) -> views.QaView:
    return await qa.skip(ports, key, etag=etag, revision=body.revision, reason=body.reason, actor=actor, key=once)


FileName = Annotated[str, Query(min_length=1, max_length=1000, description="the file's name, not a path")]


@route(router, "qa.upload", status_code=201)
async def upload(
    *, request: Request, ports: InPorts, actor: Who, key: str, item: str, name: FileName
) -> views.EvidenceView:
    """The body is the file itself."""
    try:
        return await qa.upload(ports, key, item, name=name, chunks=request.stream(), actor=actor)
    except ClientDisconnect as error:
        raise Invalid("the upload was cut off", code="UPLOAD_CUT", kept="nothing of the file") from error


@route(router, "qa.evidence", response_class=Response)
async def evidence(*, ports: InPorts, actor: Who, key: str, file: str) -> Response:
    one, pieces = await qa.evidence(ports, key, file, actor=actor)
    how = "inline" if one.inline else "attachment"
    headers = {
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(one.name, safe='')}",
        "Content-Length": str(one.size),
        "Content-Security-Policy": BARE,
    }
    return StreamingResponse(pieces, media_type=one.media, headers=headers)


@route(router, "qa.remove")
async def remove(*, ports: InPorts, actor: Who, key: str, file: str) -> views.QaView:
    return await qa.remove(ports, key, file, actor=actor)
