"""Stands outside of one container and ends it when its runner ends: podman and docker have no flag for that.

A program of its own, which imports nothing of ours: ``warden.py <runner's pid> <marker> <argv of the removal, JSON>
<argv of the run>…``. It is the parent of the CLI and of all that the CLI leaves behind, so whoever ends this process's
tree ends the container. ``marker`` is there for as long as a container of its name may be. What BEADMILL_BOX holds
goes into the container through file 3: so it is in no record that podman keeps.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

GRACE: Final = 2.0  # seconds from a TERM until the container is removed: less than a runner waits before it kills
REMOVAL: Final = 20.0  # seconds that the CLI may take to remove it
BOX: Final = "BEADMILL_BOX"
FAILED: Final = 125  # of podman and docker: of the CLI itself
CANNOT: Final = (FAILED, 126, 127)  # then what the CLI says, it says about the command
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_HEARD: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


class Warden:
    def __init__(self, runner: int, marker: Path, remove: list[str], *, ours: bool) -> None:
        """``ours``: what runs in the container is below us, and no daemon's."""
        self._runner, self._marker, self._remove, self._ours = runner, marker, remove, ours
        self._client = 0
        self._code: int | None = None
        self._until = float("inf")
        self._errors = _aside(os.memfd_create("errors"))

    def watch(self, argv: list[str], inside: str | None) -> int:
        """The exit code of the container, or what stands for it. ``inside`` None = nothing for file 3."""
        if os.getppid() != self._runner:
            return 1
        self._marker.touch()
        self._client = self._start(argv, inside)
        while self._code is None and time.monotonic() < self._until:
            self._hear()
        if self._code is None or self._code == FAILED or self._code < 0:  # who knows how far the CLI came
            self._end()
        else:
            self._marker.unlink(missing_ok=True)
        if self._code in CANNOT:
            os.lseek(self._errors, 0, os.SEEK_SET)
            os.write(2, os.read(self._errors, 65_536))
        return 137 if self._code is None else self._code if self._code >= 0 else 128 - self._code

    def _told(self) -> bool:
        return self._until < float("inf")

    def _start(self, argv: list[str], inside: str | None) -> int:
        """What podman says is kept apart: in a container its stderr is file 4."""
        actions: list[tuple[int, int, int]] = []
        if inside is not None:
            memory = _aside(os.memfd_create("box"))
            os.write(memory, inside.encode("utf-8", "surrogateescape"))
            os.lseek(memory, 0, os.SEEK_SET)
            said = _aside(os.dup(2))
            actions = [(os.POSIX_SPAWN_DUP2, *pair) for pair in ((said, 4), (memory, 3), (self._errors, 2))]
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsigmask=())
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)  # whoever writes to the container hears when it is gone
        return pid

    def _hear(self) -> None:
        told = signal.sigtimedwait(_HEARD, max(0.0, min(self._until - time.monotonic(), 3600.0)))
        if told is not None and told.si_signo != signal.SIGCHLD:
            grace = GRACE if os.getppid() == self._runner else 0.0
            self._until = min(self._until, time.monotonic() + grace)
        self._bury()

    def _bury(self) -> bool:
        """False = no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._client:
                self._code = os.waitstatus_to_exitcode(status)

    def _end(self) -> None:
        """The CLI goes first: it would go on to make what was removed. A runner that lives removes what it finds
        marked when all is over: whatever we start now, it ends."""
        if self._code is None:
            os.kill(self._client, signal.SIGKILL)
        while self._bury():
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            time.sleep(0.01)
        patience = time.monotonic() + REMOVAL
        wanted = not self._told() or not self._ours or os.getppid() != self._runner
        while wanted and time.monotonic() < patience:
            if self._removed():
                self._marker.unlink(missing_ok=True)
                return
            time.sleep(0.1)

    def _removed(self) -> bool:
        with Path(os.devnull).open("r+b") as nothing:
            quiet = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), n) for n in (0, 1, 2)]
            pid = os.posix_spawn(self._remove[0], self._remove, os.environ, file_actions=quiet, setsigmask=())
        return os.waitpid(pid, 0)[1] == 0


def _aside(handle: int) -> int:
    """The same file by a number that nothing else is put at."""
    high = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(handle)
    return high


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    runner, marker, remove, through, *argv = sys.argv[1:]
    ours = through == "file"
    inside = os.environ.pop(BOX, "") if ours else None
    sys.exit(Warden(int(runner), Path(marker), json.loads(remove), ours=ours).watch(argv, inside))


if __name__ == "__main__":
    main()
