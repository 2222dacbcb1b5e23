"""Events and logs: a stream for whoever accepts one, a page of JSON or the plain file for everybody else."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import PlainTextResponse

from beadmill.operations import events, sessions, views
from beadmill.operations.paging import Page
from beadmill.web import stream
from beadmill.web.api.common import Cursor, InPorts, Limit, Who, route

router = APIRouter()


@route(router, "events.since", response_model=views.EventsView)
async def since(
    *,
    request: Request,
    ports: InPorts,
    actor: Who,
    topics: Annotated[str, Query(description="board, run:<id>, ticket:<key>, all; separated by commas")] = "board",
    since: Annotated[int, Query(ge=0, description="events behind this sequence number")] = 0,
) -> Response | views.EventsView:
    """``Accept: application/json`` reads one page; anything else follows as server-sent events."""
    wanted = [topic for topic in topics.split(",") if topic]
    events.where(wanted)
    if "application/json" in request.headers.get("accept", ""):
        return await events.since(ports, topics=wanted, seq=since, actor=actor)
    streams = request.app.state.web.streams
    release = streams.reserve(await stream.ticket_of_topics(ports, wanted))
    source = stream.follow(ports, wanted, stream.cursor(request.headers, since), actor=actor)
    return stream.EventStream(source, closing=streams.closing, release=release)


@route(router, "sessions.listing")
async def listing(
    *,
    ports: InPorts,
    actor: Who,
    run: str = "",
    visit: str = "",
    live: bool = False,
    cursor: Cursor = "",
    limit: Limit = None,
) -> Page[views.SessionLine]:
    return await sessions.listing(ports, actor=actor, run=run, visit=visit, live=live, cursor=cursor, limit=limit)


@route(router, "sessions.log", response_class=Response)
async def log(
    *,
    request: Request,
    ports: InPorts,
    actor: Who,
    token: str,
    after: Annotated[int, Query(ge=0, description="byte offset")] = 0,
) -> Response:
    """``Accept: text/event-stream`` follows in batches; anything else downloads what is there as JSON lines."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        return await _download(ports, actor, token, after)
    part = await sessions.log(ports, token, after=after, most=1, actor=actor)
    streams = request.app.state.web.streams
    release = streams.reserve(await stream.ticket_of_session(ports, token))
    source = stream.tail(ports, token, stream.cursor(request.headers, part.start), actor=actor)
    return stream.EventStream(source, closing=streams.closing, release=release)


async def _download(ports: InPorts, actor: Who, token: str, after: int) -> Response:
    """At most 1 MB at a time; ``X-Next`` is the byte to go on from."""
    part = await sessions.log(ports, token, after=after, actor=actor)
    text = "".join(f"{line}\n" for line in part.lines)
    headers = {"X-Next": str(part.end), "X-Ended": str(part.ended).lower()}
    return PlainTextResponse(text, media_type="application/x-ndjson", headers=headers)


@route(router, "sessions.show")
async def show(*, ports: InPorts, actor: Who, token: str) -> views.SessionView:
    return await sessions.show(ports, token, actor=actor)
