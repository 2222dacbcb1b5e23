from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field

from beadmill.domain.machine import TicketState
from beadmill.domain.values import Json
from beadmill.operations import interviews, tickets, views
from beadmill.operations.paging import Page
from beadmill.web.api.common import Body, Cursor, IfMatch, InPorts, Key, Limit, Who, route

router = APIRouter()


class NewTicket(Body):
    project: str
    title: str
    description: str = ""
    acceptance: str = ""
    priority: int = 3
    sop: str = "deliver"
    overrides: dict[str, Any] = Field(default_factory=dict)


class TicketChange(Body):
    title: str | None = None
    description: str | None = None
    acceptance: str | None = None
    priority: int | None = None
    sop: str | None = None
    overrides: dict[str, Any] | None = None


class Cancel(Body):
    """``delete``: what shall not be kept: ``content``, ``log``, ``ticket``."""

    reason: str = ""
    delete: list[Literal["content", "log", "ticket"]] = Field(default_factory=list)


class Answers(Body):
    """Per question id: ``free_text``, ``selected_option_ids``, or ``skipped`` with ``skip_reason``. ``edits`` changes
    answers of earlier batches."""

    answers: dict[str, Json]
    edits: dict[str, Json] = Field(default_factory=dict)


class Edits(Body):
    edits: dict[str, Json]


class SkipAll(Body):
    """``answers`` and ``edits`` count; everything else is skipped."""

    answers: dict[str, Json] = Field(default_factory=dict)
    edits: dict[str, Json] = Field(default_factory=dict)
    reason: str = ""


class Skips(Body):
    questions: list[str] = Field(default_factory=list)
    reason: str = ""


@route(router, "tickets.listing")
async def listing(
    *,
    ports: InPorts,
    actor: Who,
    project: str = "",
    column: views.Column | None = None,
    state: TicketState | None = None,
    search: str = "",
    sort: tickets.Sort = "updated",
    cursor: Cursor = "",
    limit: Limit = None,
) -> Page[views.TicketLine]:
    return await tickets.listing(
        ports,
        actor=actor,
        project=project,
        column=column,
        state=state,
        search=search,
        sort=sort,
        cursor=cursor,
        limit=limit,
    )


@route(router, "tickets.create", status_code=201)
async def create(*, ports: InPorts, actor: Who, key: Key, body: NewTicket) -> views.TicketView:
    return await tickets.create(ports, actor=actor, key=key, **body.model_dump())


@route(router, "tickets.show")
async def show(*, ports: InPorts, actor: Who, key: str) -> views.TicketView:
    return await tickets.show(ports, key, actor=actor)


@route(router, "tickets.edit")
async def edit(*, ports: InPorts, actor: Who, once: Key, key: str, body: TicketChange) -> views.TicketView:
    changes = body.model_dump(exclude_unset=True, exclude_none=True)
    return await tickets.edit(ports, key, changes, actor=actor, key=once)


@route(router, "tickets.start")
async def start(*, ports: InPorts, actor: Who, once: Key, key: str) -> views.TicketView:
    return await tickets.start(ports, key, actor=actor, key=once)


@route(router, "tickets.cancel")
async def cancel(*, ports: InPorts, actor: Who, key: str, body: Cancel | None = None) -> views.TicketView:
    wish = body or Cancel()
    return await tickets.cancel(ports, key, actor=actor, reason=wish.reason, delete=wish.delete)


@route(router, "interviews.show")
async def interview(*, ports: InPorts, actor: Who, key: str) -> views.InterviewView:
    return await interviews.show(ports, key, actor=actor)


@route(router, "interviews.answer")
async def answer(
    *, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: Answers
) -> views.InterviewView:
    return await interviews.answer(ports, key, body.answers, edits=body.edits, etag=etag, actor=actor, key=once)


@route(router, "interviews.skip")
async def skip(*, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: Skips) -> views.InterviewView:
    return await interviews.skip(ports, key, body.questions, reason=body.reason, etag=etag, actor=actor, key=once)


@route(router, "interviews.edit")
async def edit_answers(
    *, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: Edits
) -> views.InterviewView:
    return await interviews.edit(ports, key, body.edits, etag=etag, actor=actor, key=once)


@route(router, "interviews.skip_all")
async def skip_all(
    *, ports: InPorts, actor: Who, once: Key, etag: IfMatch, key: str, body: SkipAll | None = None
) -> views.InterviewView:
    given = (body or SkipAll()).model_dump()
    return await interviews.skip_all(ports, key, etag=etag, actor=actor, key=once, **given)
