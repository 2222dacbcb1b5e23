from __future__ import annotations

from dataclasses import replace
from typing import Any

from beadmill.domain.change import Change, ChangeRef, ChangeStatus
from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from beadmill.store.journal import changes
from tests.engine.bench import Bench, one


async def test_what_is_put_or_settled_twice_is_told_once(bench: Bench) -> None:
    async def body(_v: Visit, _: Any) -> Outcome:
        return Outcome("ok")

    bench.node("n", body)
    await bench.start(one("n"))
    change = Change(ChangeRef(1), "url", ChangeStatus.OPEN, "title", "b", "main", "head")
    for made in (change, change, replace(change, head="next"), replace(change, head="next")):
        await bench.write(changes.put, "r1", made, forge="local")
    for _ in range(2):
        await bench.write(changes.settle, "r1", "merged", merge_sha="abc")

    assert bench.events("change.") == ["change.put", "change.put", "change.merged"]
