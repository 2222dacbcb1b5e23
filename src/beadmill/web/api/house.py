"""The installation: agents, SOPs, status, settings, the sign-in link."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from beadmill.operations import agents, logins, settings, sops, status, views
from beadmill.web.api.common import Body, InPorts, Key, Who, route

router = APIRouter()


class Lint(Body):
    name: str = ""
    text: str = ""


class Turn(Body):
    """The seat to try; empty = what the CLI uses by itself."""

    model: str = ""
    effort: str = ""


@route(router, "agents.listing")
async def agent_listing(*, ports: InPorts, actor: Who) -> tuple[views.AgentView, ...]:
    return await agents.listing(ports, actor=actor)


@route(router, "agents.install", status_code=202)
async def install(*, ports: InPorts, actor: Who, name: str) -> views.InstallView:
    return await agents.install(ports, name, actor=actor)


@route(router, "agents.progress")
async def progress(*, ports: InPorts, actor: Who, name: str) -> views.InstallView:
    return await agents.progress(ports, name, actor=actor)


@route(router, "agents.cancel")
async def cancel_install(*, ports: InPorts, actor: Who, name: str) -> views.InstallView:
    return await agents.cancel(ports, name, actor=actor)


@route(router, "agents.turn")
async def turn(*, ports: InPorts, actor: Who, name: str, body: Turn | None = None) -> views.TurnView:
    wanted = body or Turn()
    return await agents.turn(ports, name, model=wanted.model, effort=wanted.effort, actor=actor)


@route(router, "agents.probe")
async def probe(*, ports: InPorts, actor: Who, name: str) -> views.ProbeView:
    return await agents.probe(ports, name, actor=actor)


@route(router, "sops.listing")
async def sop_listing(*, ports: InPorts, actor: Who) -> tuple[views.SopLine, ...]:
    return await sops.listing(ports, actor=actor)


@route(router, "sops.check")
async def check(*, ports: InPorts, actor: Who, body: Lint) -> views.LintView:
    return await sops.check(ports, name=body.name, text=body.text, actor=actor)


@route(router, "sops.show")
async def sop(*, ports: InPorts, actor: Who, name: str) -> views.SopView:
    return await sops.show(ports, name, actor=actor)


@route(router, "status.show")
async def show(*, ports: InPorts, actor: Who) -> views.StatusView:
    return await status.show(ports, actor=actor)


@route(router, "logins.link", status_code=201)
async def link(*, ports: InPorts, actor: Who) -> views.LinkView:
    return await logins.link(ports, actor=actor)


class Changes(Body):
    """By dotted path; null inherits again. ``project`` or ``ticket`` says whose settings; without them it is the
    installation's."""

    changes: dict[str, Any]
    project: str = ""
    ticket: str = ""


@route(router, "settings.show")
async def shown(*, ports: InPorts, actor: Who, project: str = "", ticket: str = "") -> views.SettingsView:
    return await settings.show(ports, project=project, ticket=ticket, actor=actor)


@route(router, "settings.change")
async def change(*, ports: InPorts, actor: Who, key: Key, body: Changes) -> views.SettingsView:
    whose = {"project": body.project, "ticket": body.ticket}
    return await settings.change(ports, body.changes, **whose, actor=actor, key=key)


@route(router, "status.config")
async def config(*, ports: InPorts, actor: Who) -> views.ConfigView:
    return await status.config(ports, actor=actor)
