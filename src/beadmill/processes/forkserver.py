"""The fork server: has imported what a runner needs, and forks one whenever it is asked. Standard library only.

``python -I -S -c "…; main()" <source> <socket>``. A request is one byte with three descriptors: what the runner reads,
where it writes, and last where its exit code goes. What it reads begins with its folder and its environment; only the child
reads that, so nothing of one session is ever in the memory of the next. The end of the socket is the end of the server.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from beadmill.processes import runner
from beadmill.processes.environment import MARK_VARIABLE, SESSION_VARIABLE
from beadmill.processes.starting import ASK

MOST: Final = 8  # descriptors of one request


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as control:
        gc.freeze()  # a fork then copies no page for the sake of the collector
        Server(control, _run).serve()


class Server:
    """``child`` is what a fork does with the descriptors of its request, without the last; it never comes back."""

    def __init__(self, control: socket.socket, child: Callable[..., NoReturn]) -> None:
        self._control, self._child = control, child
        self._reports: dict[int, int] = {}

    def serve(self) -> None:
        woken, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waking)
        asked = self._control.fileno()
        while True:
            ready, _, _ = select.select([asked, woken], [], [])
            if woken in ready:
                os.read(woken, 512)
                self._bury()
            if asked in ready:
                word, handles, _, _ = socket.recv_fds(self._control, 1, MOST)
                if word != ASK:
                    return
                self._fork(*handles)

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                report = self._reports.pop(found[0])
                with contextlib.suppress(OSError):  # the daemon that asked need not listen any more
                    os.write(report, str(os.waitstatus_to_exitcode(found[1])).encode())
                os.close(report)

    def _fork(self, *handles: int) -> None:
        pid = os.fork()
        if pid == 0:
            self._child(*handles[:-1])
        *given, self._reports[pid] = handles
        for handle in given:
            os.close(handle)


def _run(words: int, log: int) -> NoReturn:
    """The child: becomes a runner as if it had been started as one. What it raises is in its log."""
    code = 1
    try:
        _leave(words, log)
        head = json.loads(sys.stdin.buffer.readline())
        take_environment(head["env"])
        sys.argv = ["-c", head["folder"]]
        runner.main()
        code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)  # never back into the server's loop


def _leave(words: int, log: int) -> None:
    os.setsid()
    leave((words, log, log))


def leave(standard: tuple[int, int, int]) -> None:
    """Nothing of the server stays: neither its signals nor its descriptors, but for the three given ones."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for wanted, handle in enumerate(standard):
        os.dup2(handle, wanted)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def take_environment(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    _show({name: env[name] for name in (SESSION_VARIABLE, MARK_VARIABLE) if name in env})


def _show(marks: Mapping[str, str]) -> None:
    """Writes the marks where /proc/<pid>/environ shows them: a sweep must find a runner as it finds any process."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # env_start and env_end of proc(5), counted behind the command
    shown = b"\0".join(os.fsencode(f"{name}={value}") for name, value in marks.items())
    ctypes.memmove(start, shown[: end - start - 1].ljust(end - start, b"\0"), end - start)
