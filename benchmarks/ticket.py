"""One whole ticket (three seats, two beads) with a model that answers at once: what Beadmill and the agents cost.

``python -m benchmarks.ticket [--agent opencode] [--json]``. The CLI is the real one, its model is scripted on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beadmill.demo import clis
from beadmill.demo.model.server import ModelServer
from benchmarks import two_beads, world

if TYPE_CHECKING:
    from collections.abc import Mapping

SEATS = ("alpha", "beta", "gamma")
BARS = {
    "wall_s": "LoopTroop 0.3.3 on the same kind of machine: 21.5",
    "model_calls": "LoopTroop: 79, of which 35 for titles",
    "prompt_characters": "LoopTroop: 303,000",
    "memory_mb": "LoopTroop, idle: 260",
}


async def measure(root: Path, agent: str) -> dict[str, Any]:
    options: dict[str, Mapping[str, str]] = {"scripted": {"scenario": str(root / "scenario.json")}}
    if agent != "scripted":
        options[agent] = await clis.options(agent, root / "home" / agent)
    place = await world.make(root, options, two_beads.scenario())
    daemon = world.Daemon(place.home)
    with ExitStack() as stack:
        server = stack.enter_context(ModelServer(place.scenario))
        if agent != "scripted":
            clis.CLIS[agent].point_at(root / "home" / agent, server)
        await daemon.start()
        try:
            async with daemon.api() as api:
                await world.attach(api, place)
                began = time.perf_counter()
                key = await world.ticket(api, [f"{agent}/{seat}" for seat in SEATS])
                await world.through(api, place.home, key)
                wall = time.perf_counter() - began
            memory, cpu = daemon.memory_mb(), daemon.cpu_s()
        finally:
            daemon.stop()
    assert world.one(place.home, "select state from changes") == "merged"
    return {"agent": agent, "wall_s": wall, "model_calls": len(server.seen), **_costs(place.home, memory, cpu)}


def _costs(home: Path, memory: float, cpu: float) -> dict[str, Any]:
    used = [json.loads(path.read_text()).get("used", {}) for path in (home / "sessions").glob("*/end.json")]
    stages: Counter[str] = Counter()
    query = "select s.template, length(b.data) from sessions s join blobs b on b.sha256 = s.prompt_sha"
    for template, size in world.rows(home, query):
        stages[template] += size
    return {
        "sessions": world.one(home, "select count(*) from sessions where kind = 'agent'"),
        "commands": world.one(home, "select count(*) from sessions where kind = 'batch'"),
        "daemon_cpu_s": cpu,
        "runners_cpu_s": sum(u.get("own_cpu_s", 0) for u in used),
        "agents_cpu_s": sum(u.get("agent_cpu_s", 0) for u in used),
        "memory_mb": memory,
        "agent_peak_mb": max(u.get("agent_peak_mb", 0) for u in used),
        "prompt_characters": sum(stages.values()),
        "prompt_characters_by_stage": dict(stages.most_common()),
        "disk_mb": _disk(home),
    }


def _disk(home: Path) -> float:
    found = (Path(folder) / name for folder, _, names in os.walk(home) for name in names)
    return sum(path.lstat().st_size for path in found) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--agent", default="opencode", choices=["scripted", *clis.CLIS])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:  # Codex refuses to work below a temporary folder
        result = asyncio.run(measure(Path(folder), wanted.agent))
    stages = result.pop("prompt_characters_by_stage") if not wanted.json else None
    world.show(result, BARS, as_json=wanted.json)
    for stage, size in (stages or {}).items():
        world.show({f"  {stage}": size}, {}, as_json=False)


if __name__ == "__main__":
    main()
