"""Agents: the coding-agent CLIs on this machine: what is found of each, installing them, and trying one."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

from beadmill.agents.contract import Agent, Installed
from beadmill.domain.values import Actor, Permission
from beadmill.errors import BeadmillError, NotFound, Refused
from beadmill.operations import _rows, _turn, desk, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require

SHOWN = 40  # lines of an install in a listing
PATIENCE = 15  # seconds one CLI may take to say its version or its models


async def listing(ports: Ports, *, actor: Actor, within: float = 0) -> tuple[views.AgentView, ...]:
    """Every registered executor and what is found of it, asked in parallel. What was found ``within`` the last seconds
    is not looked for again."""
    require(actor, Permission.READ)
    names = list(ports.agents.names())
    return tuple(await asyncio.gather(*(_known(ports, name, within) for name in names)))


async def probe(ports: Ports, name: str, *, actor: Actor) -> views.ProbeView:
    """Looks again, and asks the CLI for its models. Raises NotFound."""
    require(actor, Permission.READ)
    view = await _known(ports, name, 0)
    models: tuple[views.ModelView, ...] = ()
    if view.state == "ready":
        view, models = await _ask_models(ports.agents.load(name), view)
    ports.desk.models[name] = models
    return views.ProbeView(**{**view.model_dump(), "models": models})


async def turn(ports: Ports, name: str, *, actor: Actor, model: str = "", effort: str = "") -> views.TurnView:
    """One tiny real turn in a throw-away workspace, at most 90 s; it costs what the provider takes for it.

    A turn that fails is an answer, not an error. Raises NotFound.
    """
    require(actor, Permission.RUN)
    took = ports.desk.turns[name] = await _turn.take(ports, ports.agents.load(name), model, effort)
    return took


# --- installing ---------------------------------------------------------------------------------------------------
async def install(ports: Ports, name: str, *, actor: Actor) -> views.InstallView:
    """Starts an install into the data home, or joins the one that runs; ``agent.install`` events tell how it goes.
    Raises NotFound."""
    require(actor, Permission.ADMIN)
    return await _job_view(ports, ports.desk.install(ports.agents.load(name), store=ports.store, by=actor))


async def progress(ports: Ports, name: str, *, actor: Actor) -> views.InstallView:
    """The install that runs, or how the last one since the daemon's start ended. Raises NotFound."""
    require(actor, Permission.READ)
    return await _job_view(ports, _job(ports, name))


async def cancel(ports: Ports, name: str, *, actor: Actor) -> views.InstallView:
    """Ends a running install; what was installed before stays. Raises NotFound."""
    require(actor, Permission.ADMIN)
    job = _job(ports, name)
    await desk.cancel(job)
    return await _job_view(ports, job)


async def _job_view(ports: Ports, job: desk.Install) -> views.InstallView:
    seq = await ports.store.read(_rows.last_seq)  # before the lines: what comes between is told twice, never missed
    return job.view().model_copy(update={"seq": seq})


def _job(ports: Ports, name: str) -> desk.Install:
    job = ports.desk.installs.get(name)
    if job is None:
        raise NotFound(
            f"{name} was not installed since the daemon started", code="NO_INSTALL", next="beadmill agent list"
        )
    return job


# --- looking ------------------------------------------------------------------------------------------------------
async def _known(ports: Ports, name: str, within: float) -> views.AgentView:
    view = ports.desk.recall(name, within)
    if view is None:
        view = await _look(ports, name)
        ports.desk.remember(view)
    job = ports.desk.installs.get(name)
    known = {
        "install": job.view(job.said - SHOWN) if job else None,
        "models": ports.desk.models.get(name),
        "turn": ports.desk.turns.get(name),
    }
    return view.model_copy(update=known)


async def _look(ports: Ports, name: str) -> views.AgentView:
    agent = ports.agents.load(name)
    can = asdict(agent.can)
    try:
        async with asyncio.timeout(PATIENCE):
            found = await agent.detect()
    except Refused as error:
        return _view(name, "refused", can=can, note=error.message, next=error.next)
    except (BeadmillError, OSError, TimeoutError) as error:
        return _view(name, "failed", can=can, note=_said(error), next=f"beadmill agent probe {name}")
    if found is None:
        return _view(name, "missing", can=can, next=f"beadmill agent install {name}")
    return _view(name, "ready", can=can, **_found(found, ports.settings.home / "agents"))


def _found(found: Installed, ours: Path) -> dict[str, Any]:
    return {
        "path": str(found.path),
        "version": found.version,
        "signed_in": found.signed_in,
        "sign_in": found.sign_in,
        "ours": found.path.is_relative_to(ours.resolve()),
        "note": found.note,
    }


def _view(name: str, state: Any, **values: Any) -> views.AgentView:
    empty = {"path": "", "version": "", "signed_in": None, "sign_in": "", "ours": False, "note": "", "next": ""}
    return views.AgentView(name=name, state=state, **{**empty, **values})


async def _ask_models(agent: Agent, view: views.AgentView) -> tuple[views.AgentView, tuple[views.ModelView, ...]]:
    try:
        async with asyncio.timeout(PATIENCE):
            models = await agent.models()
    except (BeadmillError, OSError, TimeoutError) as error:
        return view.model_copy(update={"note": f"models: {_said(error)}"}), ()
    return view, tuple(views.ModelView(id=m.id, name=m.name, efforts=m.efforts or agent.can.efforts) for m in models)


def _said(error: Exception) -> str:
    return f"no answer within {PATIENCE} s" if isinstance(error, TimeoutError) else str(error)
