"""One tiny real turn of an agent, through the real runner, in a workspace that is thrown away."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from beadmill.agents.contract import Agent
from beadmill.domain.ended import Ended, Failed, Lapsed, Limited, Lost, Ran, Replied, Why
from beadmill.domain.price import Source
from beadmill.domain.values import Access, Brief, Seat, Usage
from beadmill.engine.turns import NEXT
from beadmill.errors import BeadmillError
from beadmill.operations import views
from beadmill.operations.ports import Ports
from beadmill.processes.spec import AgentTask, BoxSpec, Policy
from beadmill.store.db import stamp

DEADLINE: Final = timedelta(seconds=90)
WAYS: Final = ("home", "tmp", "empty")  # what every workspace has
TEXT: Final = (
    "Beadmill task: probe | ticket:  | subject:  | seat:  | turn: \n\n"
    "This is a test of the connection. Reply with the single word OK. Use no tools and write nothing.\n"
)


async def take(ports: Ports, agent: Agent, model: str, effort: str) -> views.TurnView:
    name = f"{agent.name}-{uuid.uuid4().hex[:12]}"
    workspace = ports.settings.workspace_root / "probes" / name
    seat = Seat(agent.name, model, effort)
    task = AgentTask(seat, Brief("probe", TEXT), Access.NONE, workspace / "empty", DEADLINE, DEADLINE)
    token = f"probe/{name}"
    try:
        await asyncio.to_thread(_make, workspace)
        session = await ports.sessions.attach(token, task, await _box(ports, workspace))
        return await _told(ports, agent, seat, await session.wait())
    except BeadmillError as error:
        return _view(agent, model, end=Failed.__name__, why=error.code, message=error.message, next=error.next)
    finally:
        if (left := ports.sessions.find(token)) is not None:  # also one that could not start
            await left.stop("the probe is over")
            await asyncio.to_thread(shutil.rmtree, left.folder, ignore_errors=True)
        await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)


async def _box(ports: Ports, workspace: Path) -> BoxSpec:
    """As a run would have it. Raises Unavailable when the sandbox that the settings name does not work."""
    wish = ports.profile.now()
    chosen = await ports.choose(wish.sandbox, image=wish.sandbox_image)
    return BoxSpec(
        chosen.name, workspace, Policy(readable=tuple(Path(p) for p in wish.readable), image=wish.sandbox_image)
    )


def _make(workspace: Path) -> None:
    for name in WAYS:
        (workspace / name).mkdir(parents=True, mode=0o700)


async def _told(ports: Ports, agent: Agent, seat: Seat, end: Ended | Ran | Lost) -> views.TurnView:
    assert not isinstance(end, Ran)
    usage = Usage() if isinstance(end, Lost) else end.usage
    at = ports.store.clock()
    price = await asyncio.to_thread(ports.prices.of, end, agent=seat.agent, model=seat.model, at=at)
    return _view(
        agent,
        price.model,
        end=type(end).__name__,
        ok=isinstance(end, Replied),
        text=end.text.strip()[:500] if isinstance(end, Replied) else "",
        seconds=0.0 if isinstance(end, Lost) else end.worked.total_seconds(),
        usage=usage,
        usd=price.usd,
        source=price.source,
        **await _why(agent, end),
    )


async def _why(agent: Agent, end: Ended | Lost) -> dict[str, str]:
    match end:
        case Failed(why=why, message=message):
            return {"why": why, "message": message, "next": await _remedy(agent, why)}
        case Limited(until=until, message=message):
            return {
                "why": "limit",
                "message": message,
                "next": f"try again after {until}" if until else "try again later",
            }
        case Lapsed():
            message = f"no reply within {DEADLINE.total_seconds():.0f} s"
            return {"why": "deadline", "message": message, "next": "look at the network and at the provider's status"}
        case Replied():
            return {}
        case _:
            return {"why": "stopped", "message": "the turn was stopped", "next": "try again"}


async def _remedy(agent: Agent, why: Why) -> str:
    if why is Why.AUTH:
        found = await agent.detect()
        if found is not None and found.sign_in:
            return f"sign in: {found.sign_in}"
    return NEXT.get(why, "look at what the CLI says, then try again")


def _view(
    agent: Agent,
    model: str,
    *,
    end: str,
    ok: bool = False,
    text: str = "",
    seconds: float = 0.0,
    usage: Usage | None = None,
    usd: float | None = None,
    source: str = Source.NOTHING,
    why: str = "",
    message: str = "",
    next: str = "",  # noqa: A002 - the envelope's word
) -> views.TurnView:
    used = usage or Usage()
    return views.TurnView(
        agent=agent.name,
        at=stamp(datetime.now(UTC)),
        ok=ok,
        end=end,
        text=text,
        seconds=seconds,
        model=model,
        input=used.input,
        cached=used.cached,
        output=used.output,
        cost_usd=usd,
        cost_source=source,
        why=why,
        message=message,
        next=next,
    )
