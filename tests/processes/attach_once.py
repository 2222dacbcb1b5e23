"""A daemon of its own that attaches one shell command: ``attach_once.py HOME TOKEN SCRIPT``. For crashes and races."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from beadmill.domain.command import CommandSpec
from beadmill.processes.sessions import FolderSessions
from beadmill.processes.spec import Batch, BoxSpec


async def main(home: Path, token: str, script: str) -> None:
    sandboxes = {"host": "beadmill.workspaces.sandboxes.host:HostSandbox"}
    sessions = FolderSessions(home / "sessions", adapters={}, sandboxes=sandboxes)
    batch = Batch((CommandSpec(mode="shell", script=script),), home / "workspace" / "tree")
    session = await sessions.attach(token, batch, BoxSpec("host", home / "workspace"))
    await session.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
