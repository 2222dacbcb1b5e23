"""Agents: the coding-agent CLIs found on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from beadmill.agents.contract import Agent, Installed
from beadmill.domain.values import Actor, Permission
from beadmill.errors import BeadmillError, NotFound, Refused
from beadmill.operations import views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require

PATIENCE = 15  # seconds one CLI may take to say its version or its models


async def listing(ports: Ports, *, actor: Actor) -> tuple[views.AgentView, ...]:
    """Every registered executor and what is found of it, asked in parallel."""
    require(actor, Permission.READ)
    names = list(ports.agents.names())
    return tuple(await asyncio.gather(*(_look(ports, name) for name in names)))


async def install(ports: Ports, name: str, *, actor: Actor) -> views.AgentView:
    """Raises NotFound, Unavailable with the exact command that failed."""
    require(actor, Permission.ADMIN)
    agent = ports.agents.load(name)
    return _ready(agent, await agent.install())


async def probe(ports: Ports, name: str, *, actor: Actor) -> views.ProbeView:
    """Looks again, and asks the CLI for its models. Raises NotFound."""
    require(actor, Permission.READ)
    view = await _look(ports, name)
    models: tuple[str, ...] = ()
    if view.state == "ready":
        view, models = await _ask_models(ports.agents.load(name), view)
    return views.ProbeView(**view.model_dump(), models=models)


async def _ask_models(agent: Agent, view: views.AgentView) -> tuple[views.AgentView, tuple[str, ...]]:
    try:
        async with asyncio.timeout(PATIENCE):
            return view, tuple(model.id for model in await agent.models())
    except (BeadmillError, OSError, TimeoutError) as error:
        return view.model_copy(update={"note": f"models: {_said(error)}"}), ()


async def _look(ports: Ports, name: str) -> views.AgentView:
    try:
        agent = ports.agents.load(name)
        async with asyncio.timeout(PATIENCE):
            found = await agent.detect()
    except NotFound:
        raise
    except Refused as error:
        return _view(name, "refused", note=f"{error.message}. {error.next}".strip())
    except (BeadmillError, OSError, TimeoutError) as error:
        return _view(name, "failed", note=_said(error))
    can = asdict(agent.can)
    return _ready(agent, found) if found else _view(name, "missing", note=f"beadmill agent install {name}", can=can)


def _ready(agent: Agent, found: Installed) -> views.AgentView:
    known = {"path": str(found.path), "version": found.version, "signed_in": found.signed_in, "note": found.note}
    return _view(agent.name, "ready", can=asdict(agent.can), **known)


def _view(name: str, state: Any, **values: Any) -> views.AgentView:
    found = {"path": "", "version": "", "signed_in": None, "note": "", "can": {}, **values}
    return views.AgentView(name=name, state=state, **found)


def _said(error: Exception) -> str:
    return f"no answer within {PATIENCE} s" if isinstance(error, TimeoutError) else str(error)
