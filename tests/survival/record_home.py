"""Records a home: a run waiting at each kind of gate, and one whose command is at work. See homes.py.

``PYTHONPATH=<release>/src:. python -m tests.survival.record_home <name>``
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from typing import Any, Final

from beadmill.demo import material
from beadmill.demo.client import RestApi
from tests.deliver.daemon_world import DaemonWorld, until
from tests.survival import homes, slow

SOLO: Final[dict[str, Any]] = {
    "council": {"seats": ["scripted/gamma"], "mode": "solo", "interview_questions": 0},
    "parallel_tickets": 16,
}
OFF: Final = {"interview": "off", "prd": "off", "beads": "off", "setup": "off"}
QUIET: Final = {**SOLO, "gates": OFF}
TICKETS: Final[dict[str, dict[str, Any]]] = {  # the kind of the gate at which each waits → what it overrides
    "interview": {**SOLO, "council": {**SOLO["council"], "interview_questions": 5}},
    "approve": {**SOLO, "gates": {**OFF, "prd": "required"}},
    "question": QUIET,
    "blocked": {**QUIET, "build": {"attempts": 1}},
    "merge": QUIET,
    "budget": {**QUIET, "budget": {"tokens": 100}},
}
LATER: Final = "2999-01-01T00:00:00.000000+00:00"


def replies() -> list[dict[str, Any]]:
    """By the key of the ticket: one asks, one fails."""
    keys = {kind: f"ticket: DEMO-{n} " for n, kind in enumerate(TICKETS, 1)}
    first = {"template": "coding", "subject": "^temperature-scales try 1$", "turn": "1"}
    return [
        {"match": {**first, "text": keys["question"]}, "steps": [{"ask": {"question": "Kelvin, too?"}}]},
        {"match": {"template": "coding", "text": keys["blocked"]}, "steps": [{"reply": "I have no idea."}]},
    ]


async def begin(world: DaemonWorld, api: RestApi) -> None:
    await api.call("projects.add", body={"path": str(world.place.checkout), "short": material.SHORT})
    for overrides in TICKETS.values():
        new = {"project": material.SHORT, **material.ticket(), "overrides": overrides}
        made = await api.call("tickets.create", body=new)
        await api.call("tickets.start", key=made["key"], once=made["key"])
    made = await api.call("tickets.create", body={"project": material.SHORT, **material.ticket(), "sop": "slow"})
    await api.call("tickets.start", key=made["key"], once=made["key"])


def waiting(world: DaemonWorld) -> bool:
    """Each at its gate, and the slow one at work."""
    query = "select ticket.key, gates.kind from gates join runs on runs.id = gates.run_id join tickets ticket on ticket.id = runs.ticket_id where gates.state = 'open'"
    gates = sorted(world.rows(query))
    return gates == [(f"DEMO-{n}", kind) for n, kind in enumerate(TICKETS, 1)] and len(world.tokens()) > len(TICKETS)


async def record(name: str) -> None:
    homes.clear()
    world = await DaemonWorld.make(homes.ROOT)
    scenario = json.loads(world.place.scenario.read_text())
    scenario["replies"][:0] = replies()
    world.place.scenario.write_text(json.dumps(scenario))
    await world.start()
    slow.publish(world)
    async with world.api() as api:
        await begin(world, api)
    await until(lambda: waiting(world), seconds=900)
    world.terminate()
    for session in world.sessions().all():
        if session.live():
            session._kill_runner()
            await session.wait()
            await session.stop("recorded")
    with closing(sqlite3.connect(world.place.home / "beadmill.db")) as conn:
        conn.execute("update gates set lapse_at = ? where lapse_at is not null", (LATER,))
        conn.commit()
    homes.HOMES.mkdir(exist_ok=True)
    homes.pack(homes.HOMES / f"{name}.tar.xz")
    homes.clear()


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
