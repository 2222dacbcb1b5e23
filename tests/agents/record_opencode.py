"""``python -m tests.agents.record_opencode``: makes recorded/opencode-<version>/ again from the real OpenCode.

Each case is a turn's server-sent events, one JSON object per line, and behind them {"type": "newest", "message": …}, what
the adapter reads last. Paths and the model's address are placeholders.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from beadmill.agents import registry
from beadmill.agents._http import Client
from beadmill.domain.values import Access, Json
from beadmill.processes.folder import read_json
from beadmill.processes.services import READY, until
from beadmill.processes.spec import AgentTask
from tests.agents.bench_opencode import Shared, at_opencode, configuration
from tests.processes.session_world import World

RECORDED: Final = Path(__file__).parent / "recorded"
SCHEMA: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ASK: Final = {"ask": {"question": "Which colour?", "options": ["red", "blue"]}}
KINDS: Final = (
    "server.connected",
    "message.",
    "session.status",
    "session.idle",
    "session.error",
    "question.",
    "permission.",
)
CASES: Final[dict[str, tuple[Sequence[Json], dict[str, Any]]]] = {
    "turn": (({"say": "I look first"}, {"shell": "echo hi"}, {"reply": "all done"}), {}),
    "failing-tool": (({"shell": "echo no >&2; exit 3"}, {"reply": "it failed"}), {}),
    "tool-not-offered": (({"shell": "echo hi"}, {"reply": "I may not"}), {"access": Access.READ}),
    "schema": (({"reply": '{"n": 3}'},), {"schema": SCHEMA}),
    "question": ((ASK,), {"questions": True}),
    "auth": (({"fail": {"why": "auth"}},), {}),
    "overloaded": (({"fail": {"why": "overloaded"}},), {}),
    "truncated": (({"fail": {"why": "truncated"}},), {}),
}


async def record(world: World, shared: Shared, name: str, folder: Path) -> None:
    steps, wanted = CASES[name]
    task = replace(world.task(), **wanted)
    await _client(world, task)
    client = await _client(world, task)
    await asyncio.sleep(12)  # what a server that has just been started loads anew, nobody hears
    world.play(*steps)
    rows: list[Json] = []
    where = urlencode({"directory": str(world.tree)})
    listening = asyncio.create_task(_listen(client, where, rows))
    assert await until(lambda: bool(rows), READY)  # server.connected
    end = await world.run(name, task)
    await asyncio.sleep(0.5)
    listening.cancel()
    conversation = end.session.conversation
    _, newest = await client.call("GET", f"/session/{conversation}/message?limit=1&{where}")
    mine = [row for row in rows if row["properties"].get("sessionID") == conversation]
    message = newest[-1] if isinstance(newest, list) and newest else None
    lines = [json.dumps(row) for row in [*mine, {"type": "newest", "message": message}]]
    text = "\n".join(lines).replace(str(shared.workspace), "/workspace").replace(shared.model.url, "http://model/v1")
    (folder / f"{name}.jsonl").write_text(text + "\n")


async def _client(world: World, task: AgentTask) -> Client:
    """Of the server that such a task gets, warm."""
    session = await world.start(f"warm-{uuid.uuid4().hex}", task)
    await session.wait()
    server = Path(read_json(session.folder / "server.json")["folder"])
    address = read_json(server / "address.json")
    return Client(address["url"], user="opencode", password=address["password"])


async def _listen(client: Client, where: str, rows: list[Json]) -> None:
    async for row in client.events(f"/event?{where}", silence=60):
        if str(row.get("type")).startswith(KINDS):
            rows.append(row)  # noqa: PERF401 - they are wanted while it listens


async def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="opencode-record-"))
    world, shared = World(root / "world"), Shared(root)
    with shared.model:
        (shared.config / "opencode.json").write_text(json.dumps(configuration(shared.model.url)))
        at_opencode(world, shared)
        found = await registry.load("opencode", shared.options).detect()
        assert found is not None
        folder = RECORDED / f"opencode-{found.version}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in CASES:
            await record(world, shared, name, folder)
        for server in world.sessions.servers.live():
            await server.stop("recorded")


if __name__ == "__main__":
    asyncio.run(main())
