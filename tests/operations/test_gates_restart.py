"""Answers after a restart: what was done before the gate is not done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from house_for_tests import OWNER, served, until

from beadmill.operations import gates, projects, runs, tickets
from beadmill.store import tables as t

SOP = """
format: 1
title: Lines
description: One line before a person's yes, one after it.
start: before
nodes:
  - {id: before, kind: script, config: {script: "echo before >> lines.txt"}, ends: [failed]}
  - {id: human, kind: gate, config: {title: Go on?}, ends: [rejected]}
  - {id: after, kind: script, config: {script: "echo after >> lines.txt"}, ends: [ok, failed]}
edges:
  - {from: before, outcome: ok, to: human}
  - {from: human, outcome: approved, to: after}
"""


def publish(tx: Any) -> None:
    made = tx.run(sa.insert(t.definitions).values(kind="sop", name="lines").returning(t.definitions.c.id)).scalar_one()
    version = {"version": 1, "state": "published", "body": SOP, "sha256": ""}
    tx.run(sa.insert(t.definition_versions).values(definition_id=made, created=tx.now, **version))


async def test_c76_a_script_before_a_gate_runs_once_when_the_gate_is_approved_after_a_restart(
    tmp_path: Path, repo: Path
) -> None:
    home = tmp_path / "home"
    async with served(home) as house:
        ports = house.ports
        await ports.store.write(publish)
        await projects.add(ports, str(repo), short="API", actor=OWNER)
        ticket = await tickets.create(ports, "API", title="T", sop="lines", overrides={"sandbox": "host"}, actor=OWNER)
        await tickets.start(ports, ticket.key, actor=OWNER)
        waiting = await until(ports, ticket.key, lambda found: found.waits > 0)
    async with served(home) as house:
        gate = waiting.current.gates[0]
        await gates.answer(house.ports, gate.id, "approved", etag=gate.etag, actor=OWNER)
        await until(house.ports, ticket.key, lambda found: found.state == "completed")
        visits = [(v.node, v.n, v.state) for v in (await runs.show(house.ports, gate.run, actor=OWNER)).visits]
    assert visits == [("before", 1, "done"), ("human", 1, "done"), ("after", 1, "done")]
    (written,) = home.glob("workspaces/*/*/tree/lines.txt")
    assert written.read_text().split() == ["before", "after"]
