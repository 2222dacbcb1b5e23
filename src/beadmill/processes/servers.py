"""Servers that agents share, from the daemon's side: sessions of their own, one per run, workspace, access and settings."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from beadmill.domain.values import Json
from beadmill.processes import folder as files
from beadmill.processes import services
from beadmill.processes.alive import all_of
from beadmill.processes.folder import State
from beadmill.processes.session import FolderSession, folder_name, read_all
from beadmill.processes.spec import BoxSpec, Service
from beadmill.processes.wire import encode

WORD: Final = "server"  # the second part of a server's token
CLOSING: Final = 15.0  # seconds a server that closes may take until the next one is started
Begin: TypeAlias = Callable[[FolderSession, Service, BoxSpec], Awaitable[None]]


class Servers:
    """``root`` is the folder of their session folders, ``begin`` prepares and starts one."""

    def __init__(self, root: Path, begin: Begin) -> None:
        self.root, self._begin = root, begin

    async def choose(self, token: str, service: Service, box: BoxSpec, *, like: Json) -> Path:
        """The folder of the server for the session ``token``: the one that serves now, or the next.

        ``like`` are the settings that it must share. Raises Unavailable as ``attach`` does.
        """
        run = token.partition("/")[0] if "/" in token else ""
        same = hashlib.sha256(json.dumps([like, encode(box)], sort_keys=True).encode()).hexdigest()[:8]
        for n in itertools.count(1):
            its = f"{run}/{WORD}/{service.agent}-{service.access}-{same}/{n}"
            server = FolderSession(self.root / folder_name(its), its)
            if await self._serves(server, service, box):
                return server.folder
        raise AssertionError

    async def _serves(self, server: FolderSession, service: Service, box: BoxSpec) -> bool:
        match files.state(server.folder):
            case State.NEW:
                await self._begin(server, service, box)
                return True
            case State.LIVE if not services.closing(server.folder):
                return True
            case State.LIVE:  # its end is near, and two of them would share a home
                await services.until(lambda: not server.live(), CLOSING)
            case State.LOST:
                await server.stop("its runner is gone")
        return False

    def live(self) -> list[FolderSession]:
        found = self.root.glob(f"*{WORD}-*/lock")
        return [s for s in read_all(sorted(path.parent for path in found)) if is_server(s.token) and s.live()]

    def runs(self) -> set[str]:
        """Whose servers run now."""
        return {server.token.partition("/")[0] for server in self.live()}

    async def close(self, run: str, why: str) -> None:
        """Ends every server of the run. Raises Unavailable with all that could not be ended."""
        await all_of([s.stop(why) for s in self.live() if s.token.startswith(f"{run}/{WORD}/")])


def is_server(token: str) -> bool:
    return token.partition("/")[2].startswith(f"{WORD}/")
