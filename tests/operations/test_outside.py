from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.change import Change, ChangeRef, ChangeStatus
from beadmill.domain.values import GateKind, GateRequest, Outcome
from beadmill.engine.port import Visit, Work
from beadmill.errors import Unavailable
from beadmill.forges.contract import ChangeState, Comment
from beadmill.operations.outside import Outside
from beadmill.operations.ports import Ports
from beadmill.profile import Profile
from beadmill.settings import Settings
from beadmill.store import tables
from beadmill.store.journal import changes
from tests.engine.bench import Bench, one
from tests.engine.conftest import bench, store

__all__ = ["bench", "store"]


class Remote:
    """A forge that says one thing; only ``read`` is asked."""

    def __init__(self, status: ChangeStatus | None) -> None:
        self.status = status

    async def read(self, ref: ChangeRef) -> ChangeState:
        if self.status is None:
            raise Unavailable("the forge does not answer")
        return ChangeState(change(self.status), "")

    async def comments(self, ref: ChangeRef) -> AsyncIterator[Comment]:
        nothing: tuple[Comment, ...] = ()
        for comment in nothing:
            yield comment


def change(status: ChangeStatus) -> Change:
    return Change(ChangeRef(1), "", status, "t", "beadmill/T-1", "main", "abc")


async def waiting(bench: Bench, tmp_path: Path, status: ChangeStatus | None) -> Outside:
    """A run at its merge gate."""

    async def body(v: Visit, _: Any) -> Outcome:
        answer = await v.ask("merge-1", GateRequest(GateKind.MERGE, "Merge?", ("merge", "close", "request_changes")))
        return Outcome("ok", note=f"{answer.choice} by {answer.by}")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.gate_open()
    await bench.write(changes.put, "r1", change(ChangeStatus.OPEN), forge="local")
    engine: Any = bench.dispatcher
    settings = Settings(home=tmp_path)
    ports = Ports(
        *(settings, bench.store, engine, bench.sessions, None, {}),  # type: ignore[arg-type]
        profile=Profile(settings),
    )

    def forge(_: Work) -> Any:
        return Remote(status)

    return Outside(ports, forge)


@pytest.mark.parametrize(("status", "choice"), [(ChangeStatus.MERGED, "merge"), (ChangeStatus.CLOSED, "close")])
async def test_what_other_hands_did_answers_the_gate(
    bench: Bench, tmp_path: Path, status: ChangeStatus, choice: str
) -> None:
    outside = await waiting(bench, tmp_path, status)

    first, second = await outside.look(), await outside.look()

    d = tables.decisions
    rows = bench.rows(sa.select(d.c.choice, d.c.actor, d.c.note))
    assert (first, second) == (1, 0)
    assert [tuple(r) for r in rows] == [(choice, "system:beadmill", "done outside Beadmill")]


async def test_an_open_change_leaves_the_gate_to_the_person(bench: Bench, tmp_path: Path) -> None:
    outside = await waiting(bench, tmp_path, ChangeStatus.OPEN)

    assert (await outside.look(), bench.gate()["state"]) == (0, "open")


async def test_a_forge_that_does_not_answer_is_asked_less_and_less_often(bench: Bench, tmp_path: Path) -> None:
    outside = await waiting(bench, tmp_path, None)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            raise TimeoutError

    outside.pause = pause
    with pytest.raises(TimeoutError):
        await outside.serve()

    assert pauses == [60, 120, 240, 300, 300]


async def test_a_forge_that_is_gone_for_days_ends_nothing(bench: Bench, tmp_path: Path) -> None:
    outside = await waiting(bench, tmp_path, None)
    outside.failures = 5_000  # two weeks of tries
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        raise TimeoutError

    outside.pause = pause
    with pytest.raises(TimeoutError):
        await outside.serve()

    assert pauses == [300]
