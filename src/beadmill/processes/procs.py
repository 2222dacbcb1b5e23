"""Who runs, and ending it for certain. Reads /proc; standard library only.

A process is known by pid, start time and boot id, and signalled through a pidfd opened before the check, so a reused
pid is never hit. A zombie counts as gone: it runs nothing and holds nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from beadmill.errors import Unavailable
from beadmill.processes.environment import MARK_VARIABLE, SESSION_VARIABLE

TERM_GRACE: Final = 3.0  # seconds between TERM and KILL
KILL_GRACE: Final = 5.0  # seconds a killed process may take to disappear
SHELL: Final = "bwrap"  # ends with what it holds; ended first, it would take the rest along without a word
STORM: Final = 200  # processes of one sweep; who starts that many gets no grace
_POLL: Final = 0.02
_ROUNDS: Final = 1_000  # of killing and burying our own children at one go
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Proc:
    """One running process. ``start`` is in clock ticks since boot, ``cpu`` in seconds, buried children included."""

    pid: int
    parent: int
    start: int
    command: str = ""
    cpu: float = field(default=0.0, compare=False)
    frozen: bool = field(default=False, compare=False)  # by SIGSTOP


def require() -> None:
    """Raises Unavailable where processes cannot be followed: no session could be proven to have ended."""
    if not (_PROC / "self/stat").exists() or not hasattr(os, "pidfd_open"):
        raise Unavailable(
            "this system has no /proc and pidfd, by which Beadmill follows the processes of its agents",
            code="NO_PROC",
            kept="nothing was started",
            next="run Beadmill on Linux: in a virtual machine, a container or WSL",
        )


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
    cpu = sum(map(int, fields[11:15])) / _TICKS
    return Proc(pid, int(fields[1]), int(fields[19]), head.partition("(")[2], cpu, fields[0] == "T")


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


def inside(found: Iterable[Proc]) -> set[Proc]:
    """Those that live among processes of their own, as in a box. Whom we may not look at counts."""
    return {proc for proc in found if _among(proc.pid) != _among(os.getpid())}


def _among(pid: int) -> str:
    try:
        return str((_PROC / str(pid) / "ns/pid").readlink())
    except OSError:
        return ""


def carrying(variables: Mapping[str, str], everything: Mapping[int, Proc]) -> set[Proc]:
    """Processes started with these in their environment, and everything below them. ``*`` ends a beginning."""
    needles = [f"\0{name}={value}".removesuffix("*").encode() for name, value in variables.items()]
    needles = [n if v.endswith("*") else n + b"\0" for n, v in zip(needles, variables.values(), strict=True)]
    marked: set[Proc] = set()
    for proc in everything.values():
        environment = b"\0" + _environ(proc.pid) + b"\0"
        if all(needle in environment for needle in needles):
            marked.add(proc)
    return marked | below((p.pid for p in marked), everything)


def _environ(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return b""


def of_mark(mark: str) -> set[Proc]:
    """All that runs of a session, seen from outside its runner. The caller itself is never part of it."""
    return {p for p in carrying({MARK_VARIABLE: mark}, table()) if p.pid != os.getpid()}


def of_token(token: str, home: str) -> set[Proc]:
    """The same for a session whose mark is lost, known by its token and by what the marks of its home begin with."""
    carried = {SESSION_VARIABLE: token, MARK_VARIABLE: f"{home}*"}
    return {p for p in carrying(carried, table()) if p.pid != os.getpid()}


def of_runner(mark: str) -> set[Proc]:
    """All that runs of a session, seen from its runner: descendants (it is a subreaper) and carriers of its mark."""
    me, everything = os.getpid(), table()
    found = below((me,), everything) | carrying({MARK_VARIABLE: mark}, everything)
    return {p for p in found if p.pid != me}


def cpu_of_runner(mark: str) -> float:
    """Seconds of processor time of all that its runner ever started; its own work is not in it."""
    buried = os.times()
    return sum(p.cpu for p in of_runner(mark)) + buried.children_user + buried.children_system


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
    who: Callable[[], set[Proc]],
    *,
    grace: float | None = None,
    reap: Callable[[], None] = lambda: None,
    kill: Callable[[], object] = lambda: None,
) -> tuple[Proc, ...]:
    """TERM, then KILL what is left, until a scan finds nobody. Returns who could not be ended.

    A frozen process is woken to hear the TERM. ``kill`` is called beside each KILL: ``kill_children`` of a runner.
    """
    import asyncio  # the command line looks at processes and ends none: it need not load this

    grace = TERM_GRACE if grace is None else grace
    clock = asyncio.get_running_loop().time
    begun, told = clock(), set[Proc]()
    while left := who():
        late = clock() - begun
        if late > grace + KILL_GRACE:
            return tuple(sorted(left, key=lambda p: p.pid))
        if late >= grace or len(told | left) > STORM:
            for proc in sorted(left, key=lambda p: p.command != SHELL):  # whose end is the end of all it holds
                send(proc, signal.SIGKILL)
            kill()
        else:
            for proc in {p for p in left - told if p.command != SHELL}:
                send(proc, signal.SIGTERM)
                send(proc, signal.SIGCONT)
        told |= left
        await asyncio.sleep(_POLL)
        reap()
    reap()  # the last ones: nobody promises that init buries them for us
    return ()


def kill_children(reap: Callable[[], None]) -> tuple[Proc, ...]:
    """Kills our own children, and theirs as they become ours, until none is left. Returns who would not go.

    Only for a subreaper that alone reaps. A process that forks and exits all the time is never there when a scan of
    /proc comes to its end; but it is always our child, and the pid of a child is its own until we bury it.
    """
    for _ in range(_ROUNDS):
        children = _children()
        if not children:
            return ()
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reap()
    return tuple(found for pid in _children() if (found := look(pid)) is not None)


def _children() -> list[int]:
    """Of all our threads, unburied ones included. Empty on a kernel that keeps no such list: the scan has to do."""
    try:
        lists = [(task / "children").read_text() for task in (_PROC / "self/task").iterdir()]
    except OSError:
        return []
    return [int(pid) for pid in " ".join(lists).split()]
