"""An agent that runs any program and reads its lines like those of a real CLI: for programs that misbehave.

Loaded by dotted path inside the runner, as an adapter of somebody else would be. The scripts below are what it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.agents._lines import follow
from beadmill.agents.contract import Capabilities, Installed, Model, SessionIO
from beadmill.agents.scripted import ScriptedStream
from beadmill.domain.ended import Ended
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentTask

STARTED: Final = """echo '{"type": "start", "conversation": "c"}'; """
RESULT: Final = """echo '{"type": "result", "text": "done"}'; """
FAILURE: Final = """echo '{"type": "failure", "why": "overloaded", "message": "at capacity"}'; """
FOREVER: Final = "sleep 300; sleep 300; "


class BadAgent:
    """Options: ``shell`` or ``python`` = the program · ``grace`` = seconds between its result and its end."""

    name = "bad"
    can = Capabilities()
    auth_paths: tuple[Path, ...] = ()

    def __init__(self, options: Mapping[str, Json]) -> None:
        self.options = options

    async def detect(self) -> Installed | None:
        return None

    async def install(self) -> Installed:
        raise NotImplementedError

    async def models(self) -> Sequence[Model]:
        return ()

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        python = self.options.get("python")
        argv = [sys.executable, "-I", "-S", "-c", python] if python else ["/bin/sh", "-c", self.options["shell"]]
        child = await io.spawn(argv, env={}, stdin=task.brief.text.encode())
        return await follow(child, ScriptedStream(io.token), io, grace=self.options["grace"])
