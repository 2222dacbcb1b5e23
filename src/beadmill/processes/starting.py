"""How runners come to life: one Protocol, and the plain way, a program of its own for each."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

SOURCE: Final = Path(__file__).resolve().parents[2]
START: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from beadmill.processes.runner import main; main()"
PIPE: Final = 60_000  # bytes that a pipe takes without a reader
LOG: Final = "runner.log"
ASK: Final = b"+"  # one more runner, of the fork server


class Starting(Protocol):
    def code(self) -> int | None:
        """The exit code; None while it runs, and for ever when nobody can know it any more. Raises OSError as a start does."""


class Starter(Protocol):
    def start(self, folder: Path, env: Mapping[str, str], known: Sequence[str], *, site: bool) -> Starting:
        """Starts the runner of the session in ``folder``, in a process session of its own, with exactly ``env``.

        ``known`` are secrets that it must mask though it may not see them; ``site`` lets it import installed packages.
        Raises OSError when no process can be started.
        """


class Programs:
    """A Python for each runner."""

    def __init__(self, program: str = START) -> None:
        self._program = program

    def start(self, folder: Path, env: Mapping[str, str], known: Sequence[str], *, site: bool) -> Starting:
        flags = ["-I"] if site else ["-I", "-S"]
        with log_of(folder) as log:
            process = subprocess.Popen(
                [sys.executable, *flags, "-c", self._program, str(SOURCE), str(folder)],
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(said(known))
        return Buried(process)


class Buried:
    """A child that a thread of ours buries: its parent is the daemon for as long as both live."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._pid, self._code = process.pid, process.returncode
        process.returncode = 0  # Popen only started it
        threading.Thread(target=self._bury, name=f"bury-{process.pid}", daemon=True).start()

    def _bury(self) -> None:
        _, status = os.waitpid(self._pid, 0)
        self._code = os.waitstatus_to_exitcode(status)

    def code(self) -> int | None:
        return self._code


@contextlib.contextmanager
def log_of(folder: Path) -> Iterator[int]:
    log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        yield log
    finally:
        os.close(log)


def said(known: Sequence[str], *, behind: int = 0) -> bytes:
    """Secrets as the runner reads them; more than a pipe holds at once, ``behind`` other bytes, is left out."""
    whole = json.dumps(list(known)).encode()
    return whole if behind + len(whole) < PIPE else b"[]"
