"""What could not be stopped, told whole: every process by pid and command. Standard library only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final

from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes.procs import Proc

CODE: Final = "STILL_RUNNING"


def still_running(token: str, left: Iterable[Proc]) -> Unavailable:
    """``left`` empty = its runner holds the lock and cannot be seen."""
    return _error([{"session": token, "pid": p.pid, "command": p.command} for p in left] or [{"session": token}])


def not_removed(token: str, containers: Iterable[str]) -> Unavailable:
    """``containers`` by name: podman or docker would not let go of them."""
    return _error([{"session": token, "command": name} for name in containers])


async def all_of(stops: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All are carried out, whatever becomes of each. Raises one Unavailable with everything that still runs."""
    failed = [e for e in await asyncio.gather(*stops, return_exceptions=True) if e is not None]
    other = next((e for e in failed if not (isinstance(e, Unavailable) and e.code == CODE)), None)
    if other is not None:
        raise other
    alive = [process for e in failed if isinstance(e, Unavailable) for process in e.details["processes"]]
    if alive:
        raise _error(alive)


def _error(alive: Sequence[Json]) -> Unavailable:
    names = ", ".join(f"{p['pid']} ({p['command']})" if "pid" in p else p.get("command", "its runner") for p in alive)
    tokens = list(dict.fromkeys(p["session"] for p in alive))
    who = f"session {tokens[0]} is" if len(tokens) == 1 else f"sessions {', '.join(tokens)} are"
    return Unavailable(
        f"{who} not stopped: still running {names}",
        code=CODE,
        details={"processes": list(alive)},
        kept="the session folders and the work in the trees",
        next="try again; when it stays so, end these processes first",
    )
