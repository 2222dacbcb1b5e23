"""Stands outside of one container and ends it when its runner ends: podman and docker have no flag for that.

A program of its own, which imports nothing of ours: ``_warden.py <runner's pid> <marker> <argv of the removal, JSON>
<argv of the run>…``. It is the parent of the CLI and of all that the CLI leaves behind, so whoever ends this process's
tree ends the container. ``marker`` is there for as long as a container of its name may be. What BEADMILL_BOX holds
goes into the container through file 3: so it is in no record that podman keeps.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

GRACE: Final = 2.0  # seconds from a TERM until the container is removed: less than a runner waits before it kills
REMOVAL: Final = 20.0  # seconds that the CLI may take to remove it
BOX: Final = "BEADMILL_BOX"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_HEARD: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


class Warden:
    def __init__(self, runner: int, marker: Path, remove: Sequence[str]) -> None:
        self._runner, self._marker, self._remove = runner, marker, remove
        self._client = 0
        self._code: int | None = None
        self._until = float("inf")

    def watch(self, argv: Sequence[str], inside: str | None) -> int:
        """The exit code of the container, or what stands for it. ``inside`` None = nothing for file 3."""
        if os.getppid() != self._runner:
            return 1
        self._marker.touch()
        self._client = self._start(argv, inside)
        while self._code is None and time.monotonic() < self._until:
            self._hear()
        if self._code is None or self._code < 0 or self._code == 125:  # of the CLI itself: who knows how far it came
            if self._removed():
                self._marker.unlink(missing_ok=True)
        else:
            self._marker.unlink(missing_ok=True)
        return 137 if self._code is None else self._code if self._code >= 0 else 128 - self._code

    def _start(self, argv: Sequence[str], inside: str | None) -> int:
        actions: list[tuple[int, int, int]] = []
        if inside is not None:
            memory = os.memfd_create("box")
            os.write(memory, inside.encode("utf-8", "surrogateescape"))
            os.lseek(memory, 0, os.SEEK_SET)
            actions.append((os.POSIX_SPAWN_DUP2, memory, 3))
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

    def _removed(self) -> bool:
        """The CLI goes first: it would go on to make what was removed. Then all that it has left."""
        if self._code is None:
            os.kill(self._client, signal.SIGKILL)
        with Path(os.devnull).open("wb") as nothing:
            quiet = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), n) for n in (0, 1, 2)]
            pid = os.posix_spawn(self._remove[0], self._remove, os.environ, file_actions=quiet, setsigmask=())
        patience, done = time.monotonic() + REMOVAL, None
        while done is None and time.monotonic() < patience:
            found, status = os.waitpid(pid, os.WNOHANG)
            done = status if found else None
            time.sleep(0.02)
        while self._bury():
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            time.sleep(0.01)
        return done == 0


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    runner, marker, remove, through, *argv = sys.argv[1:]
    inside = os.environ.pop(BOX, None) if through == "file" else None
    sys.exit(Warden(int(runner), Path(marker), json.loads(remove)).watch(argv, inside))


if __name__ == "__main__":
    main()
