from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from beadmill.artifacts.relevant_files import RelevantFile, RelevantFiles
from beadmill.domain.values import SYSTEM, Outcome
from beadmill.engine.port import Visit
from beadmill.store.mirror import Mirror
from tests.engine.bench import Bench, one


async def test_documents_are_mirrored_as_files_once_and_readable_by_their_owner_only(
    bench: Bench, tmp_path: Path
) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.put(RelevantFiles(ticket_id="T-1", files=(RelevantFile(path="a.py"),)), by=SYSTEM)
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")
    mirror = Mirror(bench.store, tmp_path / "home")

    first, second = await mirror.catch_up(), await mirror.catch_up()

    path = tmp_path / "home" / "runs" / "r1" / "relevant_files.yaml"
    assert (first, second) == (1, 0)
    assert "path: a.py" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
