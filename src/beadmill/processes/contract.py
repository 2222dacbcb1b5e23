"""Sessions as folders: what the daemon holds. The implementation is sessions.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from beadmill.domain.ended import Ended, Lost, Ran
from beadmill.processes.spec import AgentEvent, AgentTask, Batch, BoxSpec, Order


class Session(Protocol):
    """A folder: spec.json, events.jsonl, control socket, lock, owner.json, started, end.json."""

    token: str
    folder: Path

    def events(self, after: int = 0) -> AsyncIterator[tuple[int, AgentEvent]]:
        """Byte offset behind each event, then the event. Follows the file until the session ended."""
        ...

    async def order(self, order: Order) -> None:
        """Delivers to the runner's socket. An ended or lost session ignores orders."""
        ...

    def ended(self) -> Ended | Ran | Lost | None:
        """None while it runs (or was never started). Reads the disk on each call; raises nothing."""
        ...

    def live(self) -> bool:
        """True while anything of it may still run: its lock is held."""
        ...

    def left(self) -> bool:
        """It ended, yet something of it goes on that its runner could not end: ``stop`` has to prove it gone."""
        ...

    def wake(self) -> bool:
        """Lets a frozen runner go on; whether there was one."""
        ...

    async def wait(self) -> Ended | Ran | Lost:
        """Returns when it ended."""
        ...

    async def stop(self, reason: str) -> None:
        """Orders Stop, then kills, then sweeps by mark; returns only when nothing of it runs.

        Raises Unavailable (code STILL_RUNNING, details: processes) when that cannot be proven.
        """
        ...


class Servers(Protocol):
    """The servers that agents share; each is a session of its own, which no visit waits for."""

    def runs(self) -> set[str]:
        """Whose servers run now."""
        ...

    async def close(self, run: str, why: str) -> None:
        """Ends every server of the run. Raises Unavailable as ``Session.stop`` does."""
        ...


class Sessions(Protocol):
    """Same token, same session."""

    @property
    def servers(self) -> Servers: ...

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> Session:
        """Starts it when it was never started, re-attaches when it runs, reads its end when it ended.

        Raises Unavailable when the agent of the seat is not registered.
        """
        ...

    def find(self, token: str) -> Session | None:
        """The session of this token when its folder exists."""
        ...

    async def sweep_gone(self, token: str) -> None:
        """Ends what runs of a session whose folder does not exist (any more). Raises Unavailable as ``stop`` does."""
        ...
