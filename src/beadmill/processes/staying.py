"""A command whose box outlives it. Standard library only.

A box ends with its first process, so a server that a command of a batch left in the background would be gone before
the next command. Here the first process is a shell that runs the command, says its exit code and waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Final

from beadmill.processes import procs

# stdin = held open by us for as long as the box shall stay, stderr = where the code is said. It hears a TERM only behind
# its command, which may want to clean up.
SHELL: Final = 't=; trap t=1 TERM; (exec "$@" </dev/null 2>&1); echo "$?" >&2; trap - TERM; [ "$t" ] || read -r _'
OWN: Final = 2  # processes in an idle box: its init and the shell


def staying(argv: Sequence[str]) -> tuple[str, ...]:
    return ("/bin/sh", "-c", SHELL, "sh", *argv)


class Stay:
    """The two pipes of one command. ``code`` is done when the command said its code, or its box ended."""

    def __init__(self, output: Callable[[bytes], None]) -> None:
        """``output`` gets what else is said where the code is said: why the box could not start."""
        self.stdin, self._hold = os.pipe()
        self._read, self.stderr = os.pipe()
        self._output, self._said = output, b""
        self._loop = asyncio.get_running_loop()
        self.code: asyncio.Future[int] = self._loop.create_future()

    def started(self, pid: int, exited: asyncio.Future[int]) -> None:
        """Ours to close are the sides of the child, now that it has them."""
        self._pid = pid
        os.close(self.stdin)
        os.close(self.stderr)
        os.set_blocking(self._read, False)
        self._loop.add_reader(self._read, self._ready)
        exited.add_done_callback(self._over)

    def failed(self) -> None:
        """It did not start."""
        for side in (self.stdin, self._hold, self._read, self.stderr):
            os.close(side)

    def _ready(self) -> None:
        data = os.read(self._read, 4096)
        self._said += data
        *lines, last = self._said.split(b"\n")
        if not data or (lines and lines[-1].isdigit()):
            self._loop.remove_reader(self._read)
            os.close(self._read)
            self._tell(lines, last)

    def _tell(self, lines: list[bytes], last: bytes) -> None:
        code = int(lines.pop()) if lines and lines[-1].isdigit() else None
        rest = b"\n".join((*lines, last)).strip()
        if rest and code is None:  # beside a code it is the shell's word for a signal
            self._output(rest + b"\n")
        if code is not None and not self.code.done():
            self.code.set_result(code)
        if 0 < len(procs.inside(procs.below((self._pid,), procs.table()))) <= OWN:  # a daemon's are not below us
            self.let_go()

    def _over(self, exited: asyncio.Future[int]) -> None:
        self.let_go()
        if not self.code.done() and not exited.cancelled():
            self.code.set_result(exited.result())

    def let_go(self) -> None:
        """The box may end."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
