"""Finding, starting and stopping the daemon of a home."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from beadmill.errors import BeadmillError, NotFound, Unavailable
from beadmill.processes import procs
from beadmill.processes.detach import Detached, detached
from beadmill.web import record
from beadmill.web.record import Record

PATIENCE: Final = 30.0  # seconds a daemon may take to serve: a migration of a large home is part of it
STOP: Final = 40.0  # seconds: 3 for the streams, 30 for children, some to spare
LOOK: Final = 0.02
TAIL: Final = 15  # lines of the log shown when it does not come up

Say = Callable[[str], None]


def find(home: Path) -> Record | None:
    """The daemon that serves this home now."""
    found = record.read(home)
    return found if found and found.process else None


def ensure(home: Path, *, say: Say, port: int | None = None) -> Record:
    """The daemon of this home, started when there is none. Raises Unavailable with where its log is."""
    found = find(home)
    if found is not None:
        return found
    if record.held(home):
        say("Waiting for the daemon that is just starting …")
        return _wait(home, None)
    say("Starting the daemon …")
    started = time.monotonic()
    ready = _wait(home, _launch(home, port))
    say(f"The daemon serves {ready.url} (process {ready.pid}, {time.monotonic() - started:.1f} s).")
    return ready


def _launch(home: Path, port: int | None) -> Detached:
    record.owned(home)
    argv = [sys.executable, "-m", "beadmill.cli.main", "start", "--foreground"]
    argv += [] if port is None else ["--port", str(port)]
    return detached(argv, env={**os.environ, "BEADMILL_HOME": str(home)}, log=record.log_file(home))


def _wait(home: Path, child: Detached | None) -> Record:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = find(home)
        if found is not None and (child is None or found.pid == child.pid or child.poll() is not None):
            return found
        if child is not None and child.poll() is not None and not record.held(home):
            raise _not_up(home, f"it ended with code {child.poll()}")
        time.sleep(LOOK)
    raise _not_up(home, f"it did not serve within {PATIENCE:.0f} s")


def _not_up(home: Path, why: str) -> Unavailable:
    log = record.log_file(home)
    lines = log.read_text(errors="replace").splitlines()[-TAIL:] if log.exists() else []
    return Unavailable(
        f"the daemon did not come up: {why}",
        code="DAEMON_NOT_UP",
        details={"log": str(log), "tail": lines},
        kept="nothing was changed",
        next=f"its log is {log}",
    )


def stop(home: Path, *, say: Say) -> bool:
    """False when none runs. Returns when it has let go of its lock; agents go on. Raises Unavailable."""
    found = _settled(home, say)
    if found is None:
        return False
    say(f"Stopping the daemon (process {found.pid}) …")
    process = found.process
    if process is not None:
        procs.send(process, signal.SIGTERM)
    until = time.monotonic() + STOP
    while time.monotonic() < until:
        if found.process is None and not record.held(home):
            return True
        time.sleep(LOOK)
    raise Unavailable(
        f"the daemon (process {found.pid}) still runs after {STOP:.0f} s",
        code="DAEMON_STUCK",
        kept="everything it has recorded",
        next=f"its log is {found.log}",
    )


def _settled(home: Path, say: Say) -> Record | None:
    """The daemon to stop. One that is just starting is waited for, one that is just stopping is let finish."""
    until = time.monotonic() + STOP
    told = False
    while (found := find(home)) is None and record.held(home):
        if time.monotonic() > until:
            raise Unavailable(
                f"a daemon has been starting or stopping for {STOP:.0f} s",
                code="DAEMON_BUSY",
                kept="everything it has recorded",
                next=f"its log is {record.log_file(home)}",
            )
        if not told:
            say("Waiting for the daemon that is just starting or stopping …")
        told = True
        time.sleep(LOOK)
    return found


def required(home: Path) -> Record:
    """Raises NotFound when no daemon runs."""
    found = find(home)
    if found is None:
        raise NotFound("no daemon runs", code="DAEMON_NOT_RUNNING", next="beadmill start")
    return found


def serve(*, port: int | None) -> None:
    """This process becomes the daemon."""
    gc.disable()  # the server enables it when it serves: what a start makes stays
    from beadmill.app import build
    from beadmill.settings import Settings
    from beadmill.web.server import serve as run

    run(Settings.read() if port is None else Settings.read(port=port), build)


def told(error: BeadmillError) -> list[str]:
    """What is printed of an error: message, kept, next, and the log's tail when it has one."""
    lines = [f"error: {error.message}"]
    lines += [f"  | {line}" for line in error.details.get("tail", ())]
    lines += [f"kept: {error.kept}"] if error.kept else []
    lines += [f"next: {error.next}"] if error.next else []
    return lines
