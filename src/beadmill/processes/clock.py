"""Working time: a monotonic clock that an open question holds. Standard library only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta


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
            wait = None if self.held else min(left, quiet)
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue
