"""A world whose seats are taken by an agent with a server."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, Final

from beadmill.domain.ended import Replied
from beadmill.processes.folder import read_json
from beadmill.processes.session import FolderSession
from beadmill.processes.sessions import Adapter
from tests.processes.bad_world import STARTER
from tests.processes.session_world import World

AGENT: Final = "tests.processes.shared_agent:SharedAgent"


class SharedWorld(World):
    starter = STARTER

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.agent = "shared"
        self.serves()

    def serves(self, *, idle: float = 60, **options: Any) -> None:
        """From now on the agent is like this; servers that run are what they were."""
        self.adapters["shared"] = Adapter(AGENT, {"idle": idle, **options}, server_idle=idle)
        self.sessions = self.open()

    async def begin(self, script: str, token: str = "run/code.1/a#0/1", **more: Any) -> FolderSession:
        return await self.start(token, self.task(script, **more))

    async def pid(self, token: str = "run/code.1/a#0/1", **more: Any) -> str:
        """Of the server that a turn of this token got."""
        end = await (await self.begin("true", token, **more)).wait()
        assert isinstance(end, Replied), end
        return end.text

    @property
    def server(self) -> FolderSession:
        (server,) = self.sessions.servers.live()
        return server


def kill_runner(session: FolderSession) -> None:
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
