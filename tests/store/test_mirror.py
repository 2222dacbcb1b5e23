from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.artifacts.base import KINDS
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.relevant_files import RelevantFile, RelevantFiles
from beadmill.domain.values import SYSTEM, ArtifactRef, GateKind, GateRequest, Outcome
from beadmill.engine.port import Visit
from beadmill.store import blobs, tables
from beadmill.store.db import Tx
from beadmill.store.journal import gates
from beadmill.store.mirror import Mirror
from tests.engine.bench import ME, Bench, one


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


async def test_an_edit_that_is_taken_back_is_mirrored_too(bench: Bench, tmp_path: Path) -> None:
    def doc(path: str) -> RelevantFiles:
        return RelevantFiles(ticket_id="T-1", files=(RelevantFile(path=path),))

    async def body(v: Visit, _: Any) -> Outcome:
        ref = await v.put(doc("first.py"), by=SYSTEM)
        await v.ask("go", GateRequest(GateKind.APPROVE, "Go?", ("yes",), shows=(ref,)))
        return Outcome("ok")

    def edit(tx: Tx, path: str) -> None:
        kind, row, sha = tx.run(sa.select(tables.gates.c.shows)).scalar_one()[0]
        old = ArtifactRef(kind, sha, row)
        new = blobs.put_document(tx, doc(path), run="r1", visit="r1/n.1", author="me", parent=old.row)
        gates.rebind(tx, "r1/n.1/go#0", old, new, actor=ME)

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
    for path in ("second.py", "first.py"):
        await bench.write(edit, path)
    await Mirror(bench.store, tmp_path / "home").catch_up()

    assert "first.py" in (tmp_path / "home" / "runs" / "r1" / "relevant_files.yaml").read_text()


async def test_a_document_of_another_release_is_mirrored_as_it_is(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.put(RelevantFiles(ticket_id="T-1"), by=SYSTEM)
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.until(lambda: bench.run_state() == "completed")
    monkeypatch.setitem(KINDS, "relevant_files", Beads)

    assert await Mirror(bench.store, tmp_path / "home").catch_up() == 1
    assert (tmp_path / "home" / "runs" / "r1" / "relevant_files.json").exists()
