"""A full disk passes: what must not be lost waits for room. Standard library only."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
AGAIN: Final = 0.5  # seconds between two tries
MOST: Final = 32 * 1024 * 1024  # bytes kept in memory for one file; what comes behind them is left out
T = TypeVar("T")


def is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in FULL


def code_of(error: BaseException, other: str) -> str:
    return "DISK_FULL" if is_full(error) else other


def write_if_room(file: int, data: bytes) -> None:
    """For a copy that people may read: on a full disk it has a gap, and the work goes on."""
    try:
        os.write(file, data)
    except OSError as error:
        if not is_full(error):
            raise


def when_there_is_room(act: Callable[[], T]) -> T:
    """For code without a loop. Raises whatever else ``act`` raises."""
    while True:
        try:
            return act()
        except OSError as error:
            if not is_full(error):
                raise
            time.sleep(AGAIN)


async def room_for(act: Callable[[], T]) -> T:
    """Orders are still taken while it waits. Raises whatever else ``act`` raises."""
    while True:
        try:
            return act()
        except OSError as error:
            if not is_full(error):
                raise
            await asyncio.sleep(AGAIN)


class Backlog:
    """Appends to a descriptor; what finds no room is kept in order and written before the next bytes."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._kept = bytearray()
        self.left_out = 0  # bytes

    def add(self, data: bytes) -> None:
        if len(self._kept) + len(data) > MOST:
            self.left_out += len(data)
            return
        self._kept += data
        try:
            self.flush()
        except OSError as error:
            if not is_full(error):
                raise

    def flush(self) -> None:
        """Raises OSError while there is no room; what was written is not written again."""
        while self._kept:
            del self._kept[: os.write(self._file, self._kept)]
