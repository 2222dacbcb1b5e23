"""Agents: the coding-agent CLIs found on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from beadmill.agents.contract import Agent, Installed
from beadmill.domain.values import Actor, Permission
from beadmill.errors import BeadmillError, Refused
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
    agent = ports.agents.load(name)
    view = await _look(ports, name)
    models: tuple[str, ...] = ()
    if view.state == "ready":
        view, models = await _ask_models(agent, view)
    return views.ProbeView(**view.model_dump(), models=models)


async def _ask_models(agent: Agent, view: views.AgentView) -> tuple[views.AgentView, tuple[str, ...]]:
    try:
        async with asyncio.timeout(PATIENCE):
            return view, tuple(model.id for model in await agent.models())
    except (BeadmillError, OSError, TimeoutError) as error:
        return view.model_copy(update={"note": f"models: {_said(error)}"}), ()


async def _look(ports: Ports, name: str) -> views.AgentView:
    agent = ports.agents.load(name)
    try:
        async with asyncio.timeout(PATIENCE):
            found = await agent.detect()
    except Refused as error:
        return _view(agent, "refused", note=f"{error.message}. {error.next}".strip())
    except (BeadmillError, OSError, TimeoutError) as error:
        return _view(agent, "failed", note=_said(error))
    return _ready(agent, found) if found else _view(agent, "missing", note=f"beadmill agent install {name}")


def _ready(agent: Agent, found: Installed) -> views.AgentView:
    return _view(
        agent, "ready", path=str(found.path), version=found.version, signed_in=found.signed_in, note=found.note
    )


def _view(agent: Agent, state: Any, **values: Any) -> views.AgentView:
    found = {"path": "", "version": "", "signed_in": None, "note": "", **values}
    return views.AgentView(name=agent.name, state=state, can=asdict(agent.can), **found)


def _said(error: Exception) -> str:
    return f"no answer within {PATIENCE} s" if isinstance(error, TimeoutError) else str(error)
