"""How long the CLI and the daemon take to start, and what an idle and a busy daemon costs.

``python -m benchmarks.startup [--json] [--runs 20]``. Compare the figures within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from beadmill.demo import material
from beadmill.processes.forks import Forks
from beadmill.processes.starting import Programs, Starter
from benchmarks import world

BARS = {
    "python_ms": "an interpreter that does nothing, for comparison",
    "cli_version_ms": "≤ 150",
    "cli_ticket_list_ms": "≤ 400",
    "runner_program_ms": "a runner as a Python of its own, until it has ended",
    "runner_fork_ms": "the same by the fork server",
    "daemon_start_s": "≤ 1.5",
    "idle_mb": "≤ 150",
    "idle_core_percent": "≤ 2",
    "busy_mb": "with the runs of --runs at their first gate",
    "busy_core_percent": "",
}


def timed(argv: list[str], env: dict[str, str], times: int = 7) -> float:
    """Median in ms."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def runner_ms(starter: Starter, folder: Path, times: int = 9) -> float:
    """Median of runners that find their session started already: what is measured is coming to life."""
    folder.mkdir(exist_ok=True)
    (folder / "started").touch()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        starting = starter.start(folder, {"PATH": os.environ["PATH"]}, (), site=False)
        while starting.code() is None:
            time.sleep(0.0005)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


async def core_percent(daemon: world.Daemon, seconds: float = 10) -> float:
    cpu, wall = daemon.cpu_s(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (daemon.cpu_s() - cpu) / (time.perf_counter() - wall) * 100


async def measure(root: Path, runs: int) -> dict[str, Any]:
    place = await world.make(root, {"scripted": {"scenario": str(root / "scenario.json")}}, material.scenario())
    env = {**os.environ, "BEADMILL_HOME": str(place.home), "PYTHONPATH": str(world.SOURCE)}
    cli = [sys.executable, "-m", "beadmill.cli.main"]
    out: dict[str, Any] = {
        "python_ms": timed([sys.executable, "-c", "pass"], env),
        "cli_version_ms": timed([*cli, "--version"], env),
        "runner_program_ms": runner_ms(Programs(), root / "runner"),
        "runner_fork_ms": runner_ms(Forks(), root / "runner"),
    }
    daemon = world.Daemon(place.home)
    await daemon.start()  # the first start makes the database
    daemon.stop()
    out["daemon_start_s"] = await daemon.start()
    try:
        async with daemon.api() as api:
            await world.attach(api, place)
        out["cli_ticket_list_ms"] = timed([*cli, "ticket", "list"], env)
        await asyncio.sleep(3)
        out["idle_mb"], out["idle_core_percent"] = daemon.memory_mb(), await core_percent(daemon)
        async with daemon.api() as api:
            for n in range(1, runs + 1):
                await world.ticket(api, ["scripted/alpha", "scripted/beta", "scripted/gamma"], n=n)
        waiting = "select count(*) from gates where state = 'open'"
        await world.until(lambda: world.one(place.home, waiting) == runs, seconds=900)
        await asyncio.sleep(3)
        out["busy_mb"], out["busy_core_percent"] = daemon.memory_mb(), await core_percent(daemon)
    finally:
        daemon.stop()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(Path(folder), wanted.runs))
    world.show(result, BARS, as_json=wanted.json)


if __name__ == "__main__":
    main()
