"""Agents on the screen: what is found of each CLI, and one look again that also asks for its models."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import BeadmillError
from beadmill.operations import agents
from beadmill.web.pages.screen import On, PageRoute

router = APIRouter(route_class=PageRoute)


@router.get("/agents")
async def listing(on: On) -> Response:
    found = await agents.listing(on.ports, actor=on.actor)
    return await on.page("agents.html", agents=found, probed=None, error=None)


@router.post("/agents/{name}/{act}")
async def ask(on: On, name: str, act: str) -> Response:
    """probe: looks again; install: runs the install, and says the command that failed."""
    probed, error = None, None
    try:
        if act == "install":
            await agents.install(on.ports, name, actor=on.actor)
        probed = await agents.probe(on.ports, name, actor=on.actor)
    except BeadmillError as found:
        error = found
    status = error.status if error else 200
    every = await agents.listing(on.ports, actor=on.actor)
    return await on.page("agents.html", status=status, agents=every, probed=probed, error=error)
