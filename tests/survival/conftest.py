"""A disk that is soon full, and a home whose daemon is a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.deliver.daemon_world import DaemonWorld
from tests.engine.conftest import bench, store
from tests.survival.disk import Disk

__all__ = ["bench", "store"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """12 MB. Only root may mount it; for others the same faults are injected in test_parts_on_a_full_disk."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "tmpfs", str(where)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield Disk(where)
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[DaemonWorld]:
    made = await DaemonWorld.make(tmp_path / "world")
    yield made
    if made.process is not None and not made.dead:
        made.kill()
