"""Secrets of the daemon's own environment reach neither an agent nor the books."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill.domain.values import Brief, Outcome
from beadmill.engine.port import Visit
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from tests.engine.bench import Bench, agent_task, one

CANARY = "canary-0123456789"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_TOKEN", CANARY)


async def test_a_bug_that_says_a_secret_does_not_tell_it_at_the_gate(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        raise ValueError(f"no access with {CANARY}\0")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        gate = await bench.gate_open("blocked")

    assert CANARY not in str(dict(gate))
    assert gate["title"] == "Beadmill itself failed: ValueError: no access with [redacted]\ufffd"


async def test_a_brief_that_holds_a_secret_is_sent_and_kept_without_it(bench: Bench) -> None:
    async def body(v: Visit, _: Any) -> Outcome:
        await v.agent("code", lambda: replace(agent_task(), brief=Brief("t", f"use {CANARY}")))
        return Outcome("ok")

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"))
        await bench.state("n.1", "parked")

    work = bench.sessions.one("code").work
    assert isinstance(work, AgentTask)
    kept = [bytes(row.data) for row in bench.rows(sa.select(tables.blobs.c.data))]
    assert (work.brief.text, kept) == ("use [redacted]", [b"use [redacted]"])
