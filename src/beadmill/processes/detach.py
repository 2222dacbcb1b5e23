"""Starting a process that outlives its caller. Standard library only."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

_BEGUN: Final[list[subprocess.Popen[bytes]]] = []  # kept: a collected one would warn that its process goes on


class Detached(Protocol):
    pid: int

    def poll(self) -> int | None:
        """Its exit code once it ended."""
        ...


def detached(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> Detached:
    """In a session of its own, no terminal, output appended to ``log``. Raises OSError."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("ab") as out:
        begun = subprocess.Popen(
            list(argv), env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/"
        )
    _BEGUN.append(begun)
    return begun
