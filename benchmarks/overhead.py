"""What orchestration adds: the wall time of a whole run ÷ its critical path of agent and command time.

``python -m benchmarks.overhead [--turn 60] [--json]``: every scripted reply takes ``--turn`` seconds. The critical path is
the union of the times in which an agent or a command of the run worked, by the runner's own clock; the person answers at
once. A run holds about 25 turns one behind the other, so a full measurement with 60 s takes half an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beadmill.demo import material
from benchmarks import world

if TYPE_CHECKING:
    from collections.abc import Iterator

BARS = {"wall_by_critical_path": "≤ 1.05 for turns of one minute"}


def slow(seconds: float) -> dict[str, Any]:
    """The demo's scenario, in which the model thinks before each reply."""
    made = material.scenario()
    for reply in made["replies"]:
        reply["steps"].insert(0, {"wait": seconds})
    return made


def intervals(home: Path) -> Iterator[tuple[datetime, datetime]]:
    """When agents and commands worked, by the session folders."""
    for folder in (home / "sessions").iterdir():
        end = json.loads((folder / "end.json").read_text())
        rows = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        worked = end.get("worked") or sum(r["seconds"] for r in end.get("results", ()))
        over = datetime.fromisoformat(rows[-1]["at"])
        yield over - timedelta(seconds=worked), over


def union(found: list[tuple[datetime, datetime]]) -> float:
    total, covered = 0.0, datetime.min.replace(tzinfo=found[0][0].tzinfo)
    for begin, end in sorted(found):
        begin_ = max(begin, covered)
        if end > begin_:
            total += (end - begin_).total_seconds()
            covered = end
    return total


async def measure(root: Path, seconds: float) -> dict[str, Any]:
    place = await world.make(root, {"scripted": {"scenario": str(root / "scenario.json")}}, slow(seconds))
    daemon = world.Daemon(place.home)
    await daemon.start()
    try:
        async with daemon.api() as api:
            await world.attach(api, place)
            began = time.perf_counter()
            key = await world.ticket(api, ["scripted/alpha", "scripted/beta", "scripted/gamma"])
            await world.through(api, place.home, key)
            wall = time.perf_counter() - began
        cpu = daemon.cpu_s()
    finally:
        daemon.stop()
    found = list(intervals(place.home))
    path = union(found)
    return {
        "turn_s": seconds,
        "sessions": len(found),
        "wall_s": wall,
        "critical_path_s": path,
        "wall_by_critical_path": wall / path,
        "added_s": wall - path,
        "daemon_cpu_s": cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turn", type=float, default=60.0, help="seconds of one turn")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(Path(folder), wanted.turn))
    world.show(result, BARS, as_json=wanted.json)


if __name__ == "__main__":
    main()
