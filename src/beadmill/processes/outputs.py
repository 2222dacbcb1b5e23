"""Where the bytes of a stream go: a bounded file, and the tail. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from beadmill.processes.room import is_full
from beadmill.redact import Redactor, Scrubber

FILE_LIMIT: Final = 16 * 1024 * 1024
_SPARE: Final = 8_192  # kept beyond a tail, so that a key cut by the tail is still recognised


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data[-self._limit - _SPARE :]
        if len(self._data) > 2 * (self._limit + _SPARE):
            del self._data[: -self._limit - _SPARE]

    def text(self, redactor: Redactor) -> str:
        return redactor.tail(bytes(self._data[-self._limit - _SPARE :]), self._limit)


class BoundedFile:
    """Scrubbed bytes up to a limit, then one line that says so."""

    def __init__(self, path: Path, redactor: Redactor, *, limit: int = FILE_LIMIT) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._scrubber = Scrubber(redactor)
        self._limit, self._left = limit, limit

    def feed(self, data: bytes) -> None:
        if self._left > 0:
            self._put(self._scrubber.feed(data))

    def _put(self, data: bytes) -> None:
        self._write(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            self._write(f"\n[cut after {self._limit} bytes]\n".encode())

    def _write(self, data: bytes) -> None:
        """A copy for people: on a full disk it has a gap, and the work goes on."""
        try:
            os.write(self._file, data)
        except OSError as error:
            if not is_full(error):
                raise

    def close(self) -> None:
        if self._file < 0:
            return
        if self._left > 0:
            self._put(self._scrubber.end())
        os.close(self._file)
        self._file = -1
