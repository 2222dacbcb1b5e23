"""Runners by fork, the daemon's side: one prepared process starts them in milliseconds instead of a new Python each.

The fork server ends when the last holder of its socket does, and takes no runner along. Without it, or with more than
a pipe holds, a runner is started as a program of its own; so is one whose server died before it told of an end.
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
from collections.abc import Callable, Mapping, Sequence
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
        def plainly() -> Starting:
            return self._plain.start(folder, env, known, site=site)

        head = json.dumps({"folder": str(folder), "env": dict(env)}).encode() + b"\n"
        if not site and len(head) < PIPE:
            with contextlib.suppress(OSError):
                return self._fork(folder, head + said(known, behind=len(head)), instead=plainly)
        return plainly()

    def _fork(self, folder: Path, words: bytes, *, instead: Callable[[], Starting]) -> Starting:
        """Raises OSError when the server is gone; the next start has a new one."""
        reading, writing = os.pipe()
        heard, report = os.pipe()
        started = Forked(heard, instead)
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
    """A runner that the server forked and buries: it tells the exit code through a pipe.

    A pipe that ends without a word says that the server is dead, not whether it had forked: ``instead`` then starts
    the runner once more. The lock of the session makes the second one harmless.
    """

    def __init__(self, heard: int, instead: Callable[[], Starting]) -> None:
        os.set_blocking(heard, False)
        self._heard = os.fdopen(heard, "rb", buffering=0)
        self._instead = instead
        self._code: int | None = None
        self._second: Starting | None = None

    def code(self) -> int | None:
        if not self._heard.closed:
            self._listen()
        return self._second.code() if self._second else self._code

    def _listen(self) -> None:
        word = self._heard.read()  # None: the server lives and has nothing to tell
        if word is None:
            return
        self._heard.close()
        if word:
            self._code = int(word)
        else:
            self._second = self._instead()

    def __del__(self) -> None:
        self._heard.close()


@functools.cache
def of_this_process() -> Forks:
    """One server does for all holders of sessions in a process."""
    return Forks()
