"""The files of one session folder and what they mean together. Standard library only.

spec.json (what to do) · lock (held by the runner while it lives) · started (written under the lock, first thing) ·
owner.json (who the runner is) · events.jsonl · control (socket) · end.json (last). Files 0600 in a folder 0700.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from beadmill.domain.ended import Ended, Lost, Ran
from beadmill.domain.values import Json
from beadmill.processes.wire import BadWire, decode_end

TEMPORARY = (".spec.json.", ".started.", ".owner.json.", ".end.json.")  # what write_json is at, by the file's name


class State(Enum):
    NEW = "new"  # never started: start it
    LIVE = "live"  # the lock is held
    ENDED = "ended"
    LOST = "lost"  # started, lock free, no end.json


def write_json(path: Path, value: Json, *, replace: bool = True) -> bool:
    """Atomic and durable. With ``replace=False`` the first writer wins; returns whether this call wrote it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=True)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path) -> Json:
    """None when it is not there or not whole: every file here is written atomically, so half a file is a foreign one."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def digest(path: Path) -> str:
    """Of its bytes; "" when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


@contextlib.contextmanager
def lock(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Whether the lock could be had at once; it is kept for the block. Close-on-exec, as every descriptor of ours."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """A shared probe: probes do not disturb each other, and a starting runner tries again."""
    if not (folder / "lock").exists():
        return False
    with lock(folder, shared=True) as free:
        return not free


def state(folder: Path) -> State:
    # The lock is read first: a runner that ends between the two reads is then seen by its end.json, not as lost.
    locked = is_locked(folder)
    if (folder / "end.json").exists():
        return State.ENDED
    if locked:
        return State.LIVE
    return State.LOST if (folder / "started").exists() else State.NEW


def end_of(folder: Path) -> Ended | Ran | Lost | None:
    """An end that cannot be read (a foreign hand, another release) says no more than that the session is over: lost."""
    match state(folder):
        case State.ENDED:
            try:
                return decode_end(read_json(folder / "end.json"))
            except (BadWire, AttributeError, TypeError, ValueError):
                return Lost()
        case State.LOST:
            return Lost()
        case _:
            return None
