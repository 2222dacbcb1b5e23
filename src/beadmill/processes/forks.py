"""Runners by fork, the daemon's side: one prepared process starts them in milliseconds instead of a new Python each.

The fork server ends when the last holder of its socket does, and takes no runner along. Without it, or with more than
a pipe holds, a runner is started as a program of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.processes.environment import allowed
from beadmill.processes.starting import ASK, PIPE, SOURCE, Buried, Programs, Starter, Starting, log_of, said

SERVE: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from beadmill.processes.forkserver import main; main()"
ROOM_VARIABLE: Final = "BEADMILL_ROOM"
ROOM: Final = "." * 4_096  # of the environment as /proc shows it: a runner's marks are written there


class Forks:
    """Starter over one fork server, which the first start brings up and each start replaces when it is gone.

    ``program`` starts the server, ``plain`` the runners that it cannot start.
    """

    def __init__(self, program: str = SERVE, *, plain: Starter | None = None) -> None:
        self._program, self._plain = program, plain or Programs()
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._server: Buried | None = None

    def start(self, folder: Path, env: Mapping[str, str], known: Sequence[str], *, site: bool) -> Starting:
        head = json.dumps({"folder": str(folder), "env": dict(env)}).encode() + b"\n"
        if not site and len(head) < PIPE:
            with contextlib.suppress(OSError):
                return self._fork(folder, head + said(known, behind=len(head)))
        return self._plain.start(folder, env, known, site=site)

    def _fork(self, folder: Path, words: bytes) -> Starting:
        """Raises OSError when the server is gone; the next start has a new one."""
        reading, writing = os.pipe()
        heard, report = os.pipe()
        started = Forked(heard)
        with open(writing, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor
            try:
                with self._lock, log_of(folder) as log:
                    socket.send_fds(self._ready(), [ASK], [reading, log, report])
            finally:
                os.close(reading)
                os.close(report)
            pipe.write(words)
        return started

    def _ready(self) -> socket.socket:
        if self._control is None or self._server is None or self._server.code() is not None:
            self.close()
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._server = self._serve(theirs.fileno())
        return self._control

    def _serve(self, handle: int) -> Buried:
        server = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", self._program, str(SOURCE), str(handle)],
            cwd="/",
            env={**allowed(os.environ), ROOM_VARIABLE: ROOM},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(handle,),
            start_new_session=True,
        )
        return Buried(server)

    def close(self) -> None:
        """Ends the server; runners go on."""
        if self._control is not None:
            self._control.close()

    def __del__(self) -> None:
        self.close()


class Forked:
    """A runner that the server forked and buries: it tells the exit code through a pipe."""

    def __init__(self, heard: int) -> None:
        os.set_blocking(heard, False)
        self._heard = os.fdopen(heard, "rb", buffering=0)
        self._code: int | None = None

    def code(self) -> int | None:
        if self._code is None and not self._heard.closed:
            with contextlib.suppress(BlockingIOError):
                word = self._heard.read()
                if word is not None:
                    self._heard.close()
                    self._code = int(word) if word else None
        return self._code

    def __del__(self) -> None:
        self._heard.close()


@functools.cache
def of_this_process() -> Forks:
    """One server does for all holders of sessions in a process."""
    return Forks()
