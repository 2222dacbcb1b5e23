"""Rules that the syntax tree of every module keeps. The first tests show that each rule can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.house.rules import breaks_replay, broad_handlers, starts_processes, writes_journal
from tests.house.source import Module, modules

Rule = Callable[[Module], Iterator[str]]
BORDERS = {  # the root of a task group, a request handler, a job, a plugin call: nobody else catches everything
    "app.py": 2,  # the engine's thread: what ends it ends the daemon; a service that fails starts again
    "engine/dispatch.py": 2,  # a job: node code that fails blocks its visit, and a block that cannot be written waits
    "engine/watch.py": 1,  # a job: a session that cannot be stopped or booked is tried again
    "processes/runner.py": 1,  # a plugin call: whatever an adapter does, an end comes out of it
}


def found(rule: Rule, *, allowed: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> list[str]:
    checked = [m for m in modules() if not m.within(*allowed) and (not only or m.within(*only))]
    return [f"{module.name}:{line}" for module in checked for line in rule(module)]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (starts_processes, "import subprocess"),
        (starts_processes, "from asyncio import create_subprocess_exec"),
        (starts_processes, "import os\nos.execvp('sh', [])"),
        (starts_processes, "import asyncio\nasyncio.create_subprocess_shell('ls')"),
        (writes_journal, "sa.update(tables.runs)"),
        (writes_journal, "r, q = tables.runs, tables.projects\nx.run(update(r).values())"),
        (writes_journal, "from beadmill.store.tables import visits as v\nv.delete()"),
        (writes_journal, "tables.bead_attempts.insert()"),
        (writes_journal, "sa.text('update visits set state = 1')"),
        (writes_journal, "conn.execute('INSERT INTO gates VALUES (1)')"),
        (broad_handlers, "try:\n    x()\nexcept Exception:\n    pass"),
        (broad_handlers, "try:\n    x()\nexcept:\n    pass"),
        (broad_handlers, "try:\n    x()\nexcept (ValueError, BaseException):\n    pass"),
        (broad_handlers, "with contextlib.suppress(Exception):\n    pass"),
        (breaks_replay, "async def f():\n    await asyncio.gather()"),
        (breaks_replay, "async def f():\n    async with asyncio.TaskGroup() as g:\n        pass"),
        (breaks_replay, "try:\n    x()\nexcept BaseException:\n    pass"),
        (breaks_replay, "async def f(v: Visit):\n    try:\n        await v.step()\n    finally:\n        x()"),
        (breaks_replay, "async def f(v: Visit):\n    async with x:\n        await v.step()"),
    ],
)
def test_a_rule_sees_what_breaks_it(rule: Rule, text: str) -> None:
    assert len(list(rule(Module("sample.py", text)))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (starts_processes, "from beadmill.processes.spec import Batch"),
        (
            writes_journal,
            "sa.select(tables.runs); sa.update(tables.projects); runs.update({}); d.update(r=tables.runs)",
        ),
        (writes_journal, "x = 'update the visits page'"),
        (broad_handlers, "try:\n    x()\nexcept ValueError:\n    pass"),
        (broad_handlers, "try:\n    x()\nexcept BaseException:\n    y()\n    raise"),
        (breaks_replay, "async def act(path: Path):\n    async with x:\n        await y()"),
        (breaks_replay, "async def f(v: Visit):\n    await v.map()"),
    ],
)
def test_a_rule_leaves_good_code_alone(rule: Rule, text: str) -> None:
    assert list(rule(Module("sample.py", text))) == []


def test_only_processes_and_git_start_processes() -> None:
    assert found(starts_processes, allowed=("processes/", "git/", "agents/scripted_cli.py")) == []


def test_only_the_journal_writes_what_runs_are_made_of() -> None:
    assert found(writes_journal, allowed=("store/journal/", "store/migrations/")) == []


def test_broad_handlers_stand_at_the_borders_only() -> None:
    counts = {m.name: len(list(broad_handlers(m))) for m in modules()}
    assert {name: count for name, count in counts.items() if count} == BORDERS


def test_durable_code_is_parallel_by_the_visit_only_and_holds_nothing_open() -> None:
    assert found(breaks_replay, only=("nodes/", "council/")) == []
