"""Four independent beads built at the same time ÷ one after the other: the wall time of the build stage.

``python -m benchmarks.parallel [--turn 20] [--parallel 4] [--json]``: each bead is one turn of ``--turn`` seconds; the whole
ticket runs to its merge both times. The stage is counted from its first activation to its end, so making and preparing
the lanes is in it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from benchmarks import four_beads, world

BARS = {"parallel_by_sequential": "≤ 0.35 for turns of 20 seconds"}


async def build_s(root: Path, turn: float, parallel: int) -> dict[str, Any]:
    await anyio.Path(root).mkdir()
    place = await world.make(root, {"scripted": {"scenario": str(root / "scenario.json")}}, four_beads.scenario(turn))
    daemon = world.Daemon(place.home)
    await daemon.start()
    try:
        async with daemon.api() as api:
            await world.attach(api, place)
            seats = ["scripted/alpha", "scripted/beta", "scripted/gamma"]
            key = await world.ticket(api, seats, build={"parallel": parallel})
            await world.through(api, place.home, key)
    finally:
        daemon.stop()
    assert world.one(place.home, "select state from changes") == "merged"
    assert world.one(place.home, "select count(*) from bead_attempts where state = 'done'") == len(four_beads.NAMES)
    tries = world.one(place.home, "select count(*) from bead_attempts")
    ((started, ended),) = world.rows(place.home, "select started, ended from visits where node = 'build'")
    return {"s": (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds(), "tries": tries}


async def measure(root: Path, turn: float, parallel: int) -> dict[str, Any]:
    one = await build_s(root / "sequential", turn, 1)
    many = await build_s(root / "parallel", turn, parallel)
    return {
        "turn_s": turn,
        "beads": len(four_beads.NAMES),
        "parallel": parallel,
        "sequential_s": one["s"],
        "parallel_s": many["s"],
        "tries": one["tries"] + many["tries"],
        "parallel_by_sequential": many["s"] / one["s"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turn", type=float, default=20.0, help="seconds of one turn")
    parser.add_argument("--parallel", type=int, default=4, help="beads at the same time")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(Path(folder), wanted.turn, wanted.parallel))
    world.show(result, BARS, as_json=wanted.json)


if __name__ == "__main__":
    main()
