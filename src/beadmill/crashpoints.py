"""Named crash points for tests. They act only with BEADMILL_TESTING=1 in the environment.

``BEADMILL_CRASH=<name>`` or ``<name>@<n>`` kills this process with SIGKILL when the n-th (default first) pass reaches
that name. ``BEADMILL_CRASH=each:<file>`` kills it at the first pass of every name in that file, one per line; a name
is taken out of the game before it kills (``<file>.died``), so the next process gets further. What is reached is noted
in ``<file>.reached``: an empty list is a dry run. ``on_reach`` is the in-process way: a test sets a function that may
raise ``Crashed``.
"""

from __future__ import annotations

import functools
import os
import signal
from collections import Counter
from collections.abc import Callable


class Crashed(BaseException):
    """What an in-process crash raises: nothing may catch it but the test."""


on_reach: Callable[[str], None] | None = None
_passes: Counter[str] = Counter()
_EACH = "each:"


def reach(name: str) -> None:
    """Pass the crash point ``name``."""
    if os.environ.get("BEADMILL_TESTING") != "1":
        return
    if on_reach is not None:
        on_reach(name)
    wanted = os.environ.get("BEADMILL_CRASH", "")
    if wanted.startswith(_EACH):
        _reach_each(name, wanted.removeprefix(_EACH))
        return
    wanted, _, nth = wanted.partition("@")
    if wanted == name:
        _passes[name] += 1
        if _passes[name] == int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)


def _reach_each(name: str, path: str) -> None:
    _passes[name] += 1
    if _passes[name] > 1:
        return
    _note(f"{path}.reached", name)
    if name in _listed(path) and name not in _names(f"{path}.died"):
        _note(f"{path}.died", name)
        os.kill(os.getpid(), signal.SIGKILL)


@functools.cache
def _listed(path: str) -> frozenset[str]:
    return _names(path)


def _names(path: str) -> frozenset[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the runner loads this too: as little as possible
            return frozenset(file.read().splitlines())
    except FileNotFoundError:
        return frozenset()


def _note(path: str, name: str) -> None:
    """One write, so that lines of several processes never mix."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{name}\n".encode())
    finally:
        os.close(handle)
