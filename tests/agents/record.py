"""Records what a real CLI prints, for tests that read it without the CLI.

``BEADMILL_TEST_CLAUDE=… python -m tests.agents.record claude_code VERSION [CASE …]`` plays each case with the real CLI in
front of the scripted model and writes tests/agents/recorded/claude_code-VERSION/<case>.jsonl, free of paths and ports.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from beadmill.demo.model.server import ModelServer
from beadmill.domain.ended import SessionRef
from beadmill.domain.values import Access, Json, Seat
from tests.agents.bench_claude import KEY, TOKEN, at_claude
from tests.processes.session_world import World

RECORDED: Final = Path(__file__).parent / "recorded"
SCHEMA: Final = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}
WORK: Final[Sequence[Json]] = (
    {"say": "I look first"},
    {"shell": "echo hi"},
    {"shell": "echo oops; exit 3"},
    {"shell": "true"},
    {"reply": "all done"},
)
FAULTS: Final = (
    "auth", "quota", "rate", "overloaded", "internal", "bad_model", "context", "truncated", "refused", "transport",
    "garbled", "stall",
)  # fmt: skip
CASES: Final[Mapping[str, tuple[Sequence[Json], dict[str, Any]]]] = {
    "work": (WORK, {}),
    "schema": (({"reply": '{"v": "pass"}'},), {"schema": SCHEMA}),
    "schema_missed": (({"reply": "sorry"},), {"schema": SCHEMA}),
    "steps": (({"shell": "true"}, {"shell": "true"}, {"reply": "no"}), {"max_steps": 2}),
    "read_only": (({"write": {"path": "a", "content": "b"}}, {"reply": "I could not"}), {"access": Access.READ}),
    "lost": (({"reply": "no"},), {"resume": SessionRef("t", "01a22c63-0000-71a1-8002-88a640a5fc66")}),
    "limit": (({"limit": {"seconds": 7200}},), {}),
    "limit_with_a_key": (({"limit": {"seconds": 7200}},), {"auth": {"ANTHROPIC_API_KEY": KEY}}),
    "signed_out": (({"reply": "no"},), {"auth": {}}),
    "unpriced": (({"reply": "done"},), {"model": "a-model-nobody-knows"}),
    **{name: (({"fail": {"why": name}},), {}) for name in FAULTS},
}


async def record(case: str, root: Path) -> str:
    steps, given = CASES[case]
    more = dict(given)
    auth, model = more.pop("auth", {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN}), more.pop("model", "claude-sonnet-4-5")
    world, person = World(root), root / "person"
    person.mkdir()
    world.play(*steps)
    with ModelServer(world.scenario) as server:
        at_claude(world, person, env={"ANTHROPIC_BASE_URL": server.root, **auth})
        task = replace(world.task(**more), seat=Seat(world.agent, model))
        session = await world.start("t", task)
        await session.wait()
    world.close()
    text = (session.folder / "stdout.log").read_text(encoding="utf-8")
    return scrubbed(text, root)


def scrubbed(text: str, root: Path) -> str:
    text = text.replace(str(root), "/home/person").replace(str(root).replace("/", "-"), "-home-person")
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8900", text)


def main(name: str, version: str, *cases: str) -> None:
    folder = RECORDED / f"{name}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases or CASES:
        with tempfile.TemporaryDirectory() as root:
            text = asyncio.run(record(case, Path(root)))
        (folder / f"{case}.jsonl").write_text(text, encoding="utf-8")
        sys.stdout.write(f"{case}: {len(text.splitlines())} lines\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
