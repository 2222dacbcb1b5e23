"""What sessions that share a server know of it, and it of them: files in the server's session folder. Standard library
only.

use (a lock: shared while a session uses the server, exclusive and kept once the server closes) · address.json (where it
listens, once it does) · users/ (a file per session, locked while that session's runner lives: what conversation is its).
A lock goes with its process, so a session that was killed counts no longer, and its conversation is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from beadmill.domain.ended import Failed, Why
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes import control
from beadmill.processes import folder as files
from beadmill.processes.folder import State
from beadmill.processes.spec import Stop

READY: Final = 90.0  # seconds a server may take until it listens: a cold one on a busy machine takes ten
PROBE: Final = 2.0  # seconds: the server's own look at the lock takes microseconds
LET_GO: Final = 10.0  # seconds a server may take to end a conversation whose session is gone
FIRST: Final = 60.0  # seconds a server waits at least for its first session
LOOK: Final = 0.5  # seconds between two looks of a server at its users
_POLL: Final = 0.02


class NotBegun(Exception):
    """The server went before anything was sent: nothing happened, so the turn may simply start over."""


def address_of(server: Path) -> Json:
    """None until it listens."""
    return files.read_json(server / "address.json")


def note_address(server: Path, address: Json) -> None:
    files.write_json(server / "address.json", address)


def closing(server: Path) -> bool:
    """Nobody can use it any more."""
    return (server / "closing").exists()


def _user(server: Path, token: str) -> Path:
    return server / "users" / f"{hashlib.sha256(token.encode()).hexdigest()[:24]}.json"


def _take(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


# --- a session that uses it
@dataclass(slots=True)
class Use:
    """A session's hold on its server, for as long as its runner lives."""

    server: Path
    token: str
    clean: bool = True  # False: a conversation of ours may still run there
    _handles: list[int] = field(default_factory=list)

    async def begin(self) -> Json:
        """Its address. Raises NotBegun when it closed or died, Unavailable when it could not start."""
        await self._share()
        self._handles.append(handle := _open(_user(self.server, self.token)))
        fcntl.flock(handle, fcntl.LOCK_EX)
        self.holds("")
        patience = time.monotonic() + READY
        while (address := address_of(self.server)) is None:
            self._gone()
            if time.monotonic() > patience:
                raise Unavailable(f"the server did not listen within {READY:g} s", code="SERVER")
            await asyncio.sleep(_POLL)
        if files.state(self.server) is not State.LIVE:
            raise NotBegun
        return address

    async def _share(self) -> None:
        self._handles.append(handle := _open(self.server / "use"))
        patience = time.monotonic() + PROBE
        while not _take(handle, fcntl.LOCK_SH):
            if closing(self.server) or time.monotonic() > patience:
                raise NotBegun
            await asyncio.sleep(_POLL)

    def _gone(self) -> None:
        """Raises when a server that never listened is over."""
        match files.end_of(self.server):
            case None:
                return
            case Failed() as end:
                raise Unavailable(end.message, code="AGENT_MISSING" if end.why is Why.MISSING else "SERVER")
            case _:
                raise NotBegun

    def holds(self, conversation: str) -> None:
        """Names what runs there for us, before it does."""
        path = _user(self.server, self.token)
        path.write_text(f'{{"conversation": "{conversation}"}}', encoding="utf-8")

    async def close(self) -> None:
        """Behind an unclean end the server goes too: nothing of ours may run on."""
        if not self._handles:
            return
        if self.clean:
            _user(self.server, self.token).unlink(missing_ok=True)
        elif files.state(self.server) is State.LIVE:
            await control.deliver(self.server, Stop("a conversation could not be ended"))
            await until(lambda: files.state(self.server) is not State.LIVE, LET_GO)
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()


def _forget(user: Path) -> None:
    user.unlink(missing_ok=True)


# --- the server
@dataclass(slots=True)
class Keeper:
    """The server's side: ends what dead sessions left there, and says when nobody needs the server any more."""

    server: Path
    idle: float  # seconds
    release: Callable[[str], Awaitable[bool]]  # ends a conversation; True = it provably does not run
    _use: int = -1

    async def keep(self) -> None:
        """Returns once nobody used the server for long enough; from then on nobody can."""
        self._use = _open(self.server / "use")
        used = time.monotonic()
        while True:
            for path in self._left():
                await self._release(path)
            if not _take(self._use, fcntl.LOCK_EX):
                used = time.monotonic()
            elif time.monotonic() - used >= self._patience:
                (self.server / "closing").touch(mode=0o600)
                return
            else:
                fcntl.flock(self._use, fcntl.LOCK_UN)
            await asyncio.sleep(min(LOOK, max(self.idle / 4, _POLL)))

    @property
    def _patience(self) -> float:
        """Whoever had it started is given time to come."""
        return self.idle if (self.server / "users").exists() else max(self.idle, FIRST)

    def _left(self) -> Iterator[Path]:
        """Files of sessions whose runner is gone."""
        for path in sorted((self.server / "users").glob("*.json")):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                if _take(file.fileno(), fcntl.LOCK_EX):
                    yield path

    async def _release(self, path: Path) -> None:
        left = files.read_json(path) or {}
        conversation = str(left.get("conversation") or "")
        if not conversation or await self.release(conversation):
            _forget(path)


# --- the daemon, about a session whose runner is gone
async def let_go(server: Path, token: str) -> bool:
    """True once nothing of this session runs on the server: it ended the conversation, or is gone itself."""
    path = _user(server, token)
    return await until(lambda: not path.exists() or files.state(server) is not State.LIVE, LET_GO)


async def until(holds: Callable[[], bool], seconds: float) -> bool:
    patience = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > patience:
            return False
        await asyncio.sleep(_POLL)
    return True
