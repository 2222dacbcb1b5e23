"""An agent whose CLI is a server: it listens on loopback, and runs shell scripts that its sessions send it.

``drive`` sends the brief's last line; the script's processes are the server's children and carry the session's mark.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from beadmill.agents.contract import Capabilities, Installed, Model, Say, ServerIO, SessionIO, quiet
from beadmill.domain.ended import Ended, Failed, Replied, SessionRef, Why
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes.environment import marks
from beadmill.processes.services import NotBegun
from beadmill.processes.spec import AgentTask, Service
from tests.processes import shared_server


class SharedAgent:
    name = "shared"
    can = Capabilities()
    auth_paths: tuple[Path, ...] = ()

    def __init__(self, options: Mapping[str, Json]) -> None:
        self.server_idle = float(options["idle"])
        self._boot = float(options.get("boot") or 0)
        self._missing = bool(options.get("missing"))
        self._port = 0

    async def detect(self) -> Installed | None:
        return None

    async def install(self, say: Say = quiet) -> Installed:
        raise NotImplementedError

    async def models(self) -> Sequence[Model]:
        return ()

    async def serve(self, service: Service, io: ServerIO) -> str:
        if self._missing:
            raise Unavailable("there is no such server", code="AGENT_MISSING")
        argv = [sys.executable, "-I", "-S", shared_server.__file__, str(self._boot)]
        child = await io.spawn(argv, env={}, cwd=io.workspace)
        try:
            async for line in child.lines():
                if line.startswith(b"listening"):
                    self._port = int(line.split()[1])
                    io.listens({"port": self._port})
            return f"the server exited with {await child.wait()}"
        finally:
            await child.terminate()

    async def release(self, conversation: str) -> bool:
        said: Json = await call(self._port, {"end": conversation})
        return said == {"ended": True} and isinstance(said, dict)

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        use = io.use
        assert use is not None
        port = (await use.begin())["port"]
        script = task.brief.text.rsplit("\n", 1)[-1]
        use.holds(io.token)
        use.clean = False
        try:
            said = await call(port, {"run": script, "as": io.token, "env": marks(token=io.token, mark=io.mark)})
        except asyncio.CancelledError:
            use.clean = await call(port, {"end": io.token}) == {"ended": True}
            raise
        except ConnectionRefusedError as error:
            raise NotBegun from error
        except OSError as error:
            return Failed(session=SessionRef(io.token), why=Why.TRANSPORT, message=str(error), continuable=True)
        use.clean = True
        return Replied(session=SessionRef(io.token, io.token), text=str(said["pid"]))


async def call(port: int, body: Json) -> Json:
    """Raises OSError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(json.dumps(body).encode() + b"\n")
    line = await reader.readline()
    writer.close()
    if not line:
        raise ConnectionResetError("the server is gone")
    return json.loads(line)
