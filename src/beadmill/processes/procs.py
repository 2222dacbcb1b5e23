"""Who runs, and ending it for certain. Reads /proc; standard library only.

A process is known by pid, start time and boot id, and signalled through a pidfd opened before the check, so a reused
pid is never hit. A zombie counts as gone: it runs nothing and holds nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from beadmill.processes.environment import MARK_VARIABLE

TERM_GRACE: Final = 3.0  # seconds between TERM and KILL
KILL_GRACE: Final = 5.0  # seconds a killed process may take to disappear
SHELL: Final = "bwrap"  # ends with what it holds; ended first, it would take the rest along without a word
_POLL: Final = 0.02
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Proc:
    """One running process. ``start`` is in clock ticks since boot."""

    pid: int
    parent: int
    start: int
    command: str = ""


@cache
def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def look(pid: int) -> Proc | None:
    """None when it is gone or a zombie."""
    try:
        head, _, rest = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return None
    fields = rest.split()
    if fields[0] in "ZX":
        return None
    return Proc(pid, int(fields[1]), int(fields[19]), head.partition("(")[2])


def table() -> Mapping[int, Proc]:
    """Every process that runs now."""
    found = (look(int(name)) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - ten times faster
    return {p.pid: p for p in found if p is not None}


def below(roots: Iterable[int], everything: Mapping[int, Proc]) -> set[Proc]:
    """Descendants of ``roots``, without the roots."""
    children: dict[int, list[Proc]] = {}
    for proc in everything.values():
        children.setdefault(proc.parent, []).append(proc)
    found: set[Proc] = set()
    todo = list(roots)
    while todo:
        fresh = [p for p in children.get(todo.pop(), ()) if p not in found]
        found.update(fresh)
        todo.extend(p.pid for p in fresh)
    return found


def carrying(mark: str, everything: Mapping[int, Proc]) -> set[Proc]:
    """Processes started with this mark in their environment, and everything below them."""
    needle = f"\0{MARK_VARIABLE}={mark}\0".encode()
    marked = {p for p in everything.values() if needle in b"\0" + _environ(p.pid) + b"\0"}
    return marked | below((p.pid for p in marked), everything)


def _environ(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return b""


def of_mark(mark: str) -> set[Proc]:
    """All that runs of a session, seen from outside its runner. The caller itself is never part of it."""
    return {p for p in carrying(mark, table()) if p.pid != os.getpid()}


def of_runner(mark: str) -> set[Proc]:
    """All that runs of a session, seen from its runner: descendants (it is a subreaper) and carriers of its mark."""
    me, everything = os.getpid(), table()
    found = below((me,), everything) | carrying(mark, everything)
    return {p for p in found if p.pid != me}


def send(proc: Proc, number: int) -> None:
    """Signals exactly this process or nobody."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(proc.pid)
        try:
            now = look(proc.pid)
            if now is not None and now.start == proc.start:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


async def end_all(
    who: Callable[[], set[Proc]], *, grace: float | None = None, reap: Callable[[], None] = lambda: None
) -> tuple[Proc, ...]:
    """TERM, then KILL what is left, until a scan finds nobody. Returns who could not be ended."""
    grace = TERM_GRACE if grace is None else grace
    clock = asyncio.get_running_loop().time
    begun, told = clock(), set[Proc]()
    while left := who():
        late = clock() - begun
        if late > grace + KILL_GRACE:
            return tuple(sorted(left, key=lambda p: p.pid))
        for proc in left if late >= grace else {p for p in left - told if p.command != SHELL}:
            send(proc, signal.SIGKILL if late >= grace else signal.SIGTERM)
        told |= left
        await asyncio.sleep(_POLL)
        reap()
    return ()
