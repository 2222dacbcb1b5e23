"""Who would sit: enough seats, of agents and models that are here. Asked before a start creates anything."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from beadmill.domain.sop import NodeDef
from beadmill.errors import BeadmillError, Invalid
from beadmill.operations.ports import Ports
from beadmill.settings import RunSettings, SeatConfig

COUNCILS = frozenset({"interview", "prd", "beads"})
ASKING = COUNCILS | {
    "agent",
    "scan",
    "setup",
    "build",
    "verify",
    "qa",
    "integrate",
    "pull_request",
}  # node kinds that ask an agent
PATIENCE = 15  # seconds a CLI may take to name its models


def check_seats(ports: Ports, settings: RunSettings, nodes: Collection[NodeDef], *, project: str) -> None:
    """A council needs two seats unless it is solo; whatever asks an agent needs one. Raises Invalid."""
    if not any(node.kind in ASKING for node in nodes):
        return
    seats, mode = settings.council.seats, settings.council.mode
    voting = any(node.kind in COUNCILS and (node.config.get("mode") or mode) == "council" for node in nodes)
    needed = 2 if voting else 1
    if len(seats) < needed:
        raise Invalid(
            f"the council has {len(seats)} of at least {needed} seats",
            code="SEATS",
            details={"seats": len(seats), "needed": needed, "mode": mode},
            kept="the ticket stays a draft",
            next=f"""beadmill project set {project} council.seats='["codex/gpt-5/high", "codex/gpt-5-mini"]'; """
            "with council.mode=solo one seat is enough",
        )
    known = set(ports.agents.names())
    missing = sorted({seat.agent for seat in sitting(settings)} - known)
    if missing:
        raise Invalid(
            f"no such agent: {', '.join(missing)}",
            code="AGENT_UNKNOWN",
            details={"missing": missing, "known": sorted(known)},
            kept="the ticket stays a draft",
            next="beadmill agent list",
        )


def sitting(settings: RunSettings) -> tuple[SeatConfig, ...]:
    others = (settings.implementer, settings.limits.fallback)
    return (*settings.council.seats, *(seat for seat in others if seat is not None))


async def check_models(ports: Ports, settings: RunSettings) -> None:
    """Models that their agent does not have, as far as it can tell: one of a provider it does not name is left to its
    first turn. Raises Invalid naming each."""
    wanted = [seat for seat in sitting(settings) if seat.model]
    agents = [name for name in dict.fromkeys(seat.agent for seat in wanted) if name in ports.agents.names()]
    lists = dict(zip(agents, await asyncio.gather(*(_models(ports, name) for name in agents)), strict=True))
    wrong = {seat.model: seat.agent for seat in wanted if _is_missing(seat.model, lists.get(seat.agent, ()))}
    if not wrong:
        return
    near = {model: get_close_matches(model, lists[agent], n=3) for model, agent in wrong.items()}
    raise Invalid(
        "; ".join(f"{agent} has no model {model!r}" for model, agent in wrong.items()),
        code="MODEL_UNKNOWN",
        details={"missing": sorted(wrong), "near": near},
        kept="the ticket stays a draft",
        next="; ".join(f"beadmill agent probe {agent}" for agent in dict.fromkeys(wrong.values())),
    )


def _is_missing(model: str, known: Sequence[str]) -> bool:
    provider, slash, _ = model.partition("/")
    return model not in known and any(one.startswith(f"{provider}{slash}") for one in known if slash)


async def _models(ports: Ports, name: str) -> Sequence[str]:
    """Empty = it does not say."""
    agent = ports.agents.load(name)
    if not agent.can.catalog:
        return ()
    try:
        async with asyncio.timeout(PATIENCE):
            return [model.id for model in await agent.models()]
    except (BeadmillError, OSError, TimeoutError):
        return ()
