"""Servers that agents share end with their run."""

from __future__ import annotations

from typing import Any

from beadmill.domain.values import Outcome
from beadmill.engine.port import Visit
from tests.engine.bench import Bench, NoServers, agent_task, one


class Remembered(NoServers):
    def __init__(self, *runs: str) -> None:
        self.running, self.closed = set(runs), list[str]()

    def runs(self) -> set[str]:
        return self.running

    async def close(self, run: str, why: str) -> None:
        self.closed.append(run)
        self.running.discard(run)


async def asks(v: Visit, _: Any) -> Outcome:
    await v.agent("code", agent_task)
    return Outcome("ok")


async def test_servers_end_with_their_run_and_not_before(bench: Bench) -> None:
    bench.sessions.servers = servers = Remembered("r1", "nobody's")
    bench.node("n", asks)
    async with bench.daemon():
        await bench.start(one("n"), run="r1")
        await bench.started(1)
        await bench.until(lambda: servers.closed == ["nobody's"])
        bench.sessions.reply("r1/")
        await bench.until(lambda: servers.closed == ["nobody's", "r1"])
    assert bench.run_state() == "completed"
