"""Who may act on a repository: one flock per repository, and lock files that dead git processes left behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

from beadmill.errors import Unavailable

_held: ContextVar[tuple[tuple[str, int], ...]] = ContextVar("_held", default=())
OLD = 600.0  # seconds after which a lock counts as left behind where the holders of a file cannot be listed


def inherited() -> tuple[int, ...]:
    """The file descriptors that a git process started now must keep open."""
    return tuple(fd for _, fd in _held.get())


@asynccontextmanager
async def locked(path: Path, *, within: float = 300.0) -> AsyncIterator[None]:
    """Holds the flock of ``path``; held already by this context, it is a no-op.

    Raises Unavailable when somebody else keeps it longer than ``within`` seconds.
    """
    if any(name == str(path) for name, _ in _held.get()):
        yield
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _take(fd, path, within)
        token = _held.set((*_held.get(), (str(path), fd)))
        try:
            yield
        finally:
            _held.reset(token)
    finally:
        os.close(fd)  # a git process that still runs keeps the lock through its own copy


async def _take(fd: int, path: Path, within: float) -> None:
    end, pause = time.monotonic() + within, 0.002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Unavailable(
                    f"another git act kept this repository busy for {within:.0f} s",
                    code="REPOSITORY_BUSY",
                    details={"lock": str(path)},
                    next="Wait for it, or look for a git process that hangs, then try again.",
                ) from None
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        else:
            return


def sweep(locks: Iterable[Path], *, tree: Path, git_dir: Path) -> tuple[Path, ...]:
    """Removes those of ``locks`` that no living process can own. Call it while holding the repository's flock.

    A lock file is somebody's when a process has it open, or when a git process works in ``tree`` (git closes the file
    while hooks and editors run).
    """
    there = [lock for lock in locks if lock.exists()]
    if not there:
        return ()
    gone = tuple(lock for lock in there if not _owned(lock, tree, git_dir))
    for lock in gone:
        lock.unlink(missing_ok=True)
    return gone


def _owned(lock: Path, tree: Path, git_dir: Path) -> bool:
    if not Path("/proc/self/fd").is_dir():
        return time.time() - lock.stat().st_mtime < OLD
    return any(_uses(process, lock, tree, git_dir) for process in Path("/proc").iterdir() if process.name.isdigit())


def _uses(process: Path, lock: Path, tree: Path, git_dir: Path) -> bool:
    try:
        if any(_link(fd) == str(lock) for fd in (process / "fd").iterdir()):
            return True
        name = (process / "comm").read_text()
        if not name.startswith("git"):
            return False
        where = Path(_link(process / "cwd"))
        return where.is_relative_to(tree) or os.fsencode(git_dir) in (process / "cmdline").read_bytes()
    except OSError:  # it ended while we looked, or it belongs to somebody else
        return False


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
