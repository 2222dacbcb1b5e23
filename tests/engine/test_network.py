"""Which network a session gets: none is for commands alone, an allow-list for agents too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from beadmill.processes.spec import AgentTask, Batch, BoxSpec
from tests.engine.bench import Bench, ManualSession, agent_task, one

HOSTS = ("example.org",)


async def one_command(v: Visit, _: Any) -> Outcome:
    await v.command("check", lambda: Batch((), Path("/")))
    return Outcome("ok")


async def one_turn(v: Visit, _: Any) -> Outcome:
    await v.agent("look", agent_task)
    return Outcome("ok")


@pytest.mark.parametrize(
    ("setting", "body", "policy"),
    [
        ("on", one_turn, ("on", ())),
        ("on", one_command, ("on", ())),
        ("off", one_turn, ("on", ())),
        ("off", one_command, ("off", ())),
        ("allow-list", one_turn, ("allow-list", HOSTS)),
        ("allow-list", one_command, ("allow-list", HOSTS)),
    ],
)
async def test_the_setting_decides_by_who_works(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, setting: str, body: Any, policy: tuple[object, ...]
) -> None:
    boxes: list[BoxSpec] = []
    real = bench.sessions.attach

    async def attach(token: str, work: AgentTask | Batch, box: BoxSpec) -> ManualSession:
        boxes.append(box)
        return await real(token, work, box)

    monkeypatch.setattr(bench.sessions, "attach", attach)
    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"), network=setting, allow_hosts=[*HOSTS])
        await bench.started(1)
    assert [(box.policy.network, box.policy.hosts) for box in boxes] == [policy]
