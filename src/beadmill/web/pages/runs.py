"""Runs and SOPs on the screen."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.operations import runs, sops
from beadmill.web.pages.screen import On, PageRoute

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/runs")
async def listing(on: On, project: str = "", cursor: str = "") -> Response:
    page = await runs.listing(on.ports, actor=on.actor, project=project, cursor=cursor)
    return await on.page("runs.html", runs=page, project=project)


@router.get("/runs/{run}/context")
async def context(on: On, run: str) -> Response:
    """What every session was given, part by part, with sums per visit."""
    found = await runs.context(on.ports, run, actor=on.actor)
    return await on.page("context.html", context=found, topics=f"run:{run}")


@router.get("/sops")
async def library(on: On) -> Response:
    return await on.page("sops.html", sops=await sops.listing(on.ports, actor=on.actor))


@router.get("/sops/{name}")
async def sop(on: On, name: str) -> Response:
    found = await sops.show(on.ports, name, actor=on.actor)
    lint = await sops.check(on.ports, name=name, actor=on.actor)
    return await on.page("sop.html", sop=found, lint=lint)
