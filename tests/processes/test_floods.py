"""A gigabyte of output costs neither memory nor disk nor the result."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.processes.session import FolderSession
from tests.processes.bad_agents import RESULT, STARTED
from tests.processes.bad_world import BadWorld, brief, ended, runner_of

GIGABYTE = 10**9
MEMORY = 160 * 2**20  # bytes a runner may ever hold: the longest line twice, and itself
DISK = 2 * 16 * 2**20 + 65 * 2**20  # stdout.log, stderr.log, events.jsonl


async def most_memory(session: FolderSession) -> int:
    """The high-water mark of the runner while it lives, in bytes."""
    runner, most = await runner_of(session), 0
    while session.ended() is None:
        most = max(most, high_water(runner.pid))
        await asyncio.sleep(0.02)
    return most


def high_water(pid: int) -> int:
    """0 when it is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.iterdir())


FLOODS = {
    "lines": f"yes '{'a line of output ' * 60}' | head -c {GIGABYTE}; echo; ",
    "one line": f"head -c {GIGABYTE} /dev/zero | tr '\\0' x; echo; ",
    "events": f'yes \'{{"type": "text", "text": "{"words " * 160}"}}\' | head -n {GIGABYTE // 4000}; ',
    "stderr": f"yes 'a line of errors' | head -c {GIGABYTE} >&2; ",
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_a_gigabyte_of_output_costs_neither_memory_nor_disk_nor_the_result(bad: BadWorld, flood: str) -> None:
    session = await bad.begin(STARTED + flood + RESULT, budget=timedelta(minutes=10))
    most, (end, _) = await asyncio.gather(most_memory(session), ended(session))
    assert brief(end) == "done"
    assert (most < MEMORY, size(session.folder) < DISK) == (True, True)
