"""Records the streams that test_acp_stream.py reads: ``python -m tests.agents.record_acp [agent] [case…]``.

Runs the real CLIs in front of the scripted model and keeps what they print, with paths and ports replaced and without
the descriptions and lists of commands that are for a person's eyes.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from beadmill.agents import acp_cli, registry
from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import Replied, SessionRef
from beadmill.domain.values import Access, Json
from tests.agents import bench_acp
from tests.processes.session_world import World

RECORDED: Final = Path(__file__).parent / "recorded"
OPTIONS: Final = {"copilot": bench_acp.copilot_options, "opencode_acp": bench_acp.opencode_options}
TURN: Final = ({"say": "I look first"}, {"shell": "echo hi"}, {"reply": "all done"})
WHYS: Final = ("auth", "bad_model", "context", "refused", "truncated", "garbled", "transport", "internal", "overloaded", "quota", "rate")  # fmt: skip
CASES: Final[Mapping[str, Sequence[Json]]] = {
    "turn": TURN,
    "resumed": TURN,
    "not_allowed": TURN,
    "limit": ({"limit": {"seconds": 7200}},),
    **{why: ({"fail": {"why": why}},) for why in WHYS},
}
ENDLESS: Final = {
    "opencode_acp": {"transport", "internal", "overloaded", "quota", "rate", "limit"}
}  # it never gives up


async def record(agent: str, case: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.play(*CASES[case])
        with ModelServer(world.scenario) as model:
            options: dict[str, Any] = dict(OPTIONS[agent](model.url, Path(folder) / "nobody"))
            access = Access.WRITE
            if case == "not_allowed":  # without its own rules the CLI asks us, and hears no
                options |= {"limited_argv": [], "limited_env": {}}
                access = Access.READ
            world.adapters[agent], world.agent = registry.adapter(agent, options), agent
            world.sessions = world.open()
            task = replace(world.task(access=access), budget=timedelta(minutes=5), idle=timedelta(minutes=3))
            session = await world.start("t", task)
            end = await session.wait()
            if case == "resumed":
                assert isinstance(end, Replied)
                task = replace(task, resume=SessionRef("t", end.session.conversation))
                session = await world.start("t2", task)
                end = await session.wait()
        sys.stdout.write(f"{agent} {case}: {end}\n")
        text = (session.folder / "stdout.log").read_text()
    cli = acp_cli.describe(agent, {})
    place = RECORDED / f"{agent}-{cli.verified}"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{case}.jsonl").write_text(scrubbed(text.replace(folder, "/world")))


def scrubbed(text: str) -> str:
    text = "".join(line for line in text.splitlines(keepends=True) if '"available_commands_update"' not in line)
    for pattern, instead in (
        (r"127\.0\.0\.1:\d+", "127.0.0.1:1"),
        (r'"/[^"]*/node_modules/', '"/node_modules/'),
        (r'"description": ?"(?:[^"\\]|\\.)*",? ?', ""),
    ):
        text = re.sub(pattern, instead, text)
    return text.replace(",}", "}")


async def main(names: Sequence[str]) -> None:
    wanted = set(names)
    for agent in OPTIONS:
        for case in CASES:
            chosen = not wanted or (agent in wanted and (case in wanted or not wanted & set(CASES)))
            if chosen and case not in ENDLESS.get(agent, ()):
                await record(agent, case)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
