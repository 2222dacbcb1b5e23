from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from beadmill.operations import councils, projects, views
from beadmill.operations.paging import Page
from beadmill.web.api.common import Body, Cursor, InPorts, Key, Limit, Who, route

router = APIRouter()


class NewProject(Body):
    path: str
    name: str = ""
    short: str = ""
    base: str = ""
    forge: str = ""
    forge_url: str = ""
    overrides: dict[str, Any] = Field(default_factory=dict)


class ProjectChange(Body):
    name: str | None = None
    base: str | None = None
    forge: str | None = None
    forge_url: str | None = None
    overrides: dict[str, Any] | None = None
    trust: bool = False


@route(router, "projects.listing")
async def listing(*, ports: InPorts, actor: Who, cursor: Cursor = "", limit: Limit = None) -> Page[views.ProjectView]:
    return await projects.listing(ports, actor=actor, cursor=cursor, limit=limit)


@route(router, "projects.add", status_code=201)
async def add(*, ports: InPorts, actor: Who, key: Key, body: NewProject) -> views.ProjectView:
    return await projects.add(ports, actor=actor, key=key, **body.model_dump())


@route(router, "projects.show")
async def show(*, ports: InPorts, actor: Who, short: str) -> views.ProjectView:
    return await projects.show(ports, short, actor=actor)


@route(router, "projects.change")
async def change(*, ports: InPorts, actor: Who, key: Key, short: str, body: ProjectChange) -> views.ProjectView:
    return await projects.change(ports, short, actor=actor, key=key, **body.model_dump())


@route(router, "projects.remove")
async def remove(*, ports: InPorts, actor: Who, short: str) -> views.Done:
    return await projects.remove(ports, short, actor=actor)


@route(router, "councils.record")
async def council(*, ports: InPorts, actor: Who, short: str) -> views.CouncilRecord:
    return await councils.record(ports, short, actor=actor)
