"""Named crash points for tests. They act only with BEADMILL_TESTING=1 in the environment.

``BEADMILL_CRASH=<name>`` or ``<name>@<n>`` kills this process with SIGKILL when the n-th (default first) pass reaches
that name. ``on_reach`` is the in-process way: a test sets a function that may raise ``Crashed``.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable


class Crashed(BaseException):
    """What an in-process crash raises: nothing may catch it but the test."""


on_reach: Callable[[str], None] | None = None
_passes: Counter[str] = Counter()


def reach(name: str) -> None:
    """Pass the crash point ``name``."""
    if os.environ.get("BEADMILL_TESTING") != "1":
        return
    if on_reach is not None:
        on_reach(name)
    wanted, _, nth = os.environ.get("BEADMILL_CRASH", "").partition("@")
    if wanted == name:
        _passes[name] += 1
        if _passes[name] == int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)
