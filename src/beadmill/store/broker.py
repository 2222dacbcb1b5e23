"""Broker: tells subscribers that events up to some number exist. The events table is the truth; this is a bell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Subscriber:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.event = asyncio.Event()


class Broker:
    """Safe to publish from any thread; subscribers may live on any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects the set: threads publish while loops subscribe
        self._subscribers: set[_Subscriber] = set()
        self.last = 0

    def publish(self, seq: int) -> None:
        with self._lock:
            self.last = max(self.last, seq)
            subscribers = list(self._subscribers)
        for one in subscribers:
            with suppress(RuntimeError):  # its loop has closed; what was committed stays committed
                one.loop.call_soon_threadsafe(one.event.set)

    @contextmanager
    def _joined(self) -> Iterator[_Subscriber]:
        one = _Subscriber()
        with self._lock:
            self._subscribers.add(one)
        try:
            yield one
        finally:
            with self._lock:
                self._subscribers.discard(one)

    async def subscribe(self, *, every: Callable[[], float] = lambda: 5.0, rest: float = 0) -> AsyncIterator[int]:
        """Yields at once, then whenever something was published, and after every ``every()`` seconds (other processes).
        What is published within ``rest`` seconds behind a yield is one yield: a busy run publishes twenty times a second.
        """
        with self._joined() as one:
            while True:
                one.event.clear()
                yield self.last
                if rest:
                    await asyncio.sleep(rest)
                try:
                    async with asyncio.timeout(every()):
                        await one.event.wait()
                except TimeoutError:
                    continue
