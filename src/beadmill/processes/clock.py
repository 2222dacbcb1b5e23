"""Working time: a monotonic clock that an open question holds. Standard library only.

Time in which this process itself was frozen (SIGSTOP, a paused container or machine) is no working time: it is seen by
a wait that took longer than it should.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

BEAT: Final = 1.0  # seconds: the longest single wait, so what a freeze may still be counted as work
LATE: Final = 2.0  # seconds that a busy machine may be late; more was frozen


class WorkClock:
    """``worked`` is in seconds. Hold and Release are idempotent; the idle mark lives on the same clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._worked = 0.0
        self._since: float | None = now()
        self._mark = 0.0
        self._changed = asyncio.Event()

    @property
    def worked(self) -> float:
        running = 0.0 if self._since is None else self._now() - self._since
        return self._worked + running

    @property
    def held(self) -> bool:
        return self._since is None

    def hold(self) -> None:
        self._worked, self._since = self.worked, None
        self._changed.set()

    def release(self) -> None:
        if self._since is None:
            self._since = self._now()
        self._changed.set()

    @property
    def heard(self) -> float:
        """When something was heard last, in working time."""
        return self._mark

    def touch(self) -> None:
        """Something was heard: the idle time starts again."""
        self._mark = self.worked

    async def lapse(self, budget: timedelta, idle: timedelta) -> bool:
        """Returns when a limit is reached; True = it was the silence."""
        while True:
            left = budget.total_seconds() - self.worked
            quiet = self._mark + idle.total_seconds() - self.worked
            if left <= 0 or quiet <= 0:
                return left > 0
            self._changed.clear()
            wait, begun = min(left, quiet, BEAT), self._now()
            try:
                async with asyncio.timeout(None if self.held else wait):
                    await self._changed.wait()
            except TimeoutError:
                self._forgive(self._now() - begun - wait)

    def _forgive(self, late: float) -> None:
        if late > LATE:
            self._worked -= late
