"""daemon.lock and daemon.json: who serves a home, where, and the CLI's token. Standard library only: the CLI reads it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from beadmill.errors import Conflict, Unavailable
from beadmill.processes import procs


@dataclass(frozen=True, slots=True)
class Record:
    """daemon.json. ``start`` (ticks since boot) and ``boot`` make the pid unmistakable."""

    pid: int
    start: int
    boot: str
    instance: str
    port: int
    token: str
    version: str
    log: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def process(self) -> procs.Proc | None:
        """The very process that wrote this record; None when it is gone."""
        found = procs.look(self.pid) if self.boot == procs.boot_id() else None
        return found if found and found.start == self.start else None


def owned(home: Path) -> None:
    """Makes the home when it is not there, for its owner only. Raises Unavailable when it cannot be written."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)
        os.close(os.open(home / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        log_file(home).parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise _not_writable(home, error) from error


def _not_writable(home: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"the home {home} cannot be written: {error.strerror}",
        code="HOME_NOT_WRITABLE",
        kept="nothing was started, and nothing of yours was changed",
        next="make it writable and its disk not full, or set BEADMILL_HOME to another folder",
    )


def log_file(home: Path) -> Path:
    return home / "logs" / "daemon.log"


def held(home: Path) -> bool:
    """Some process has the daemon's lock: a daemon serves, starts or stops."""
    try:
        handle = os.open(home / "daemon.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def only_daemon(home: Path) -> Iterator[None]:
    """Holds ``daemon.lock``. Raises Conflict naming who holds it (exit 4)."""
    handle = os.open(home / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise running(home) from None
        yield
    finally:
        os.close(handle)


def running(home: Path) -> Conflict:
    record = read(home)
    who = f"process {record.pid} on {record.url}" if record else "another process that is just starting or stopping"
    return Conflict(
        f"a daemon already serves {home}: {who}",
        code="DAEMON_RUNNING",
        details={"pid": record.pid, "url": record.url, "instance": record.instance} if record else {},
        kept="the running daemon was not touched",
        next="beadmill open uses it; beadmill stop ends it",
    )


def read(home: Path) -> Record | None:
    """None when nobody has written one, or what lies there is not one."""
    try:
        return Record(**json.loads((home / "daemon.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write(home: Path, record: Record) -> None:
    """Atomic, readable by its owner only. For the holder of the lock. Raises Unavailable when there is no room."""
    fresh = home / ".daemon.json.new"
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(record), file)
        fresh.replace(home / "daemon.json")
    except OSError as error:
        raise _not_writable(home, error) from error


def forget(home: Path, instance: str) -> None:
    """Removes the record if it is still ours."""
    now = read(home)
    if now is not None and now.instance == instance:
        (home / "daemon.json").unlink(missing_ok=True)
