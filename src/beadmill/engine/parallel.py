"""map and pool: the only parallelism of node code. A park cancels no sibling, a Blocked starts no new item."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from beadmill.errors import Blocked, Parked

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")


class Places:
    """Items in flight. A parked item keeps its place, so ``limit`` holds over activations (rule 13)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.live: dict[str, asyncio.Task[Any]] = {}
        self.ended: dict[str, asyncio.Task[Any]] = {}

    @property
    def free(self) -> bool:
        errors = [e for e in map(_error, self.ended.values()) if e is not None]
        parked = sum(isinstance(e, Parked) for e in errors)
        if parked < len(errors):  # blocked, a bug, or no longer ours: nothing new may start
            return False
        return not self._limit or len(self.live) + parked < self._limit

    def start(self, key: str, work: Awaitable[Any]) -> None:
        self.live[key] = asyncio.ensure_future(work)

    def __contains__(self, key: str) -> bool:
        return key in self.live or key in self.ended

    async def one_ends(self) -> None:
        await asyncio.wait(self.live.values(), return_when=asyncio.FIRST_COMPLETED)
        for key in [key for key, task in self.live.items() if task.done()]:
            self.ended[key] = self.live.pop(key)

    async def cut_off(self) -> None:
        """Detached, or a bug: nothing of ours may go on behind our back."""
        if self.live:
            await _cancelled(self.live.values())

    def settle(self) -> None:
        """Everything that could go on has; then the loudest reason: bugs and signals, Blocked, Parked."""
        errors = [e for e in map(_error, self.ended.values()) if e is not None]
        for error in errors:
            if not isinstance(error, (Blocked, Parked)):
                raise error
        blocked = [e for e in errors if isinstance(e, Blocked)]
        if blocked:
            blocked[0].forget = tuple(dict.fromkeys(scope for e in blocked for scope in e.forget))
            raise blocked[0]
        if errors:
            raise Parked(frozenset[Any]().union(*(e.waits for e in errors if isinstance(e, Parked))))


def _error(task: asyncio.Task[Any]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    doomed = list(tasks)
    for task in doomed:
        task.cancel()
    await asyncio.wait(doomed)


async def run_map(
    items: Sequence[I],
    work: Callable[[I], Awaitable[T]],
    *,
    key: Callable[[I], str],
    begun: Callable[[str], bool],
    limit: int,
) -> list[T]:
    """Results in item order; items with records first when places are short."""
    places = Places(limit)
    queue = sorted(items, key=lambda item: not begun(key(item)))
    try:
        while True:
            while queue and places.free:
                item = queue.pop(0)
                places.start(key(item), work(item))
            if not places.live:
                break
            await places.one_ends()
    except BaseException:
        await places.cut_off()
        raise
    places.settle()
    return [places.ended[key(item)].result() for item in items]


async def run_pool(
    ready: Callable[[], Awaitable[Sequence[I]]],
    work: Callable[[I], Awaitable[None]],
    *,
    key: Callable[[I], str],
    begun: Callable[[str], bool],
    limit: int,
) -> None:
    """Rolling: as each item ends, ask again what is ready."""
    places = Places(limit)
    try:
        while True:
            for item in sorted(await ready(), key=lambda item: not begun(key(item))):
                if places.free and key(item) not in places:
                    places.start(key(item), work(item))
            if not places.live:
                break
            await places.one_ends()
    except BaseException:
        await places.cut_off()
        raise
    places.settle()
