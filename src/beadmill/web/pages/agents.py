"""Agents on the screen: what is found of each CLI, its install as it runs, its models, and one real turn."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.operations import agents
from beadmill.web.pages.forms import posted
from beadmill.web.pages.screen import On, PageRoute, back

router = APIRouter(route_class=PageRoute, include_in_schema=False)
FRESH = 60  # seconds: while an install is told, the other agents are not asked again and again


@router.get("/agents")
async def listing(on: On) -> Response:
    found = await agents.listing(on.ports, actor=on.actor, within=FRESH if on.live else 0)
    return await on.page("agents.html", topics="agents", agents=found)


@router.post("/agents/{name}/install")
async def install(on: On, name: str) -> Response:
    """Starts it; the page then follows."""
    await agents.install(on.ports, name, actor=on.actor)
    return _to(name)


@router.post("/agents/{name}/cancel")
async def cancel(on: On, name: str) -> Response:
    await agents.cancel(on.ports, name, actor=on.actor)
    return _to(name)


@router.post("/agents/{name}/probe")
async def probe(on: On, name: str) -> Response:
    await agents.probe(on.ports, name, actor=on.actor)
    return _to(name)


@router.post("/agents/{name}/turn")
async def turn(on: On, name: str) -> Response:
    form = await posted(on.request)
    model, effort = form.get("model").strip(), form.get("effort").strip()
    await agents.turn(on.ports, name, model=model, effort=effort, actor=on.actor)
    return _to(name)


def _to(name: str) -> Response:
    return back(f"/agents#agent-{name}")
