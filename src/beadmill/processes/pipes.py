"""What comes out of a child: drained whatever happens, kept up to a limit, cut into lines. Standard library only.

Pipes are always drained: what nobody reads still goes to a bounded file, so a talkative child never blocks on us.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import termios
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from beadmill.processes.room import write_if_room
from beadmill.redact import Redactor, Scrubber

LINE_LIMIT: Final = 50 * 1024 * 1024  # a message of the Agent Client Protocol is one line, whatever it carries
QUEUE_LIMIT: Final = 16 * 1024 * 1024  # bytes of unread lines before the child has to wait
FILE_LIMIT: Final = 16 * 1024 * 1024
LINGER: Final = 0.5  # seconds of silence after the exit before a pipe held by a grandchild is let go
LINGER_MOST: Final = 3.0  # seconds after the exit for a grandchild that goes on writing
_CHUNK: Final = 65_536
_LINE_COST: Final = 64  # bytes of memory that a line takes beside its own
_TURN: Final = 256  # lines read before everybody else may have a turn
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
        if self._left > 0 and self._file >= 0:
            self._put(self._scrubber.feed(data))

    def _put(self, data: bytes) -> None:
        write_if_room(self._file, data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            write_if_room(self._file, f"\n[cut after {self._limit} bytes]\n".encode())

    def close(self) -> None:
        if self._file < 0:
            return
        if self._left > 0:
            self._put(self._scrubber.end())
        os.close(self._file)
        self._file = -1


class Pipe:
    """Drains one descriptor into ``sink`` until the other side closes it or it is let go."""

    def __init__(self, fd: int, sink: Callable[[bytes], None], at_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd, self._sink, self._at_end = fd, sink, at_end
        self.heard = self._loop.time()
        self._read = 0
        self.paused = False
        self.closed = asyncio.Event()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._ready)

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self.heard = self._loop.time()
        self._read += len(data)
        self._sink(data)

    def _waiting(self) -> int:
        """Bytes in the pipe that nobody has read yet."""
        if self.closed.is_set():
            return 0
        count = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, count)
        return count[0]

    def pause(self) -> None:
        if not self.paused and not self.closed.is_set():
            self.paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self.paused and not self.closed.is_set():
            self.paused = False
            self.heard = self._loop.time()
            self._loop.add_reader(self._fd, self._ready)

    def close(self) -> None:
        if not self.closed.is_set():
            self.closed.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._at_end()

    async def drained(self) -> None:
        """After the exit: until the pipe ends, or a grandchild only holds it open without a word.

        One that goes on writing is heard a little longer; what lay in the pipe at the exit is read in any case.
        """
        owed, enough = self._read + self._waiting(), self._loop.time() + LINGER_MOST
        while not self.closed.is_set():
            now = self._loop.time()
            silent = now - self.heard
            if (silent >= LINGER and not self.paused) or (now >= enough and self._read >= owed):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(LINGER - silent, 0.05)):
                    await self.closed.wait()


class Lines:
    """Bytes in, lines out; a line over the limit is cut, an unread flood pauses the pipe, a read one starves nobody."""

    def __init__(self) -> None:
        self.pause: Callable[[], None] = lambda: None
        self.resume: Callable[[], None] = lambda: None
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._part = bytearray()
        self._ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes) -> None:
        first, *more = data.split(b"\n")
        self._grow(first)
        if more:
            self._push()
            rest = more.pop()
            self._lines.extend(more)  # at once: a flood has millions of them
            self._size += sum(map(len, more)) + _LINE_COST * len(more)
            self._grow(rest)
        if self._size > QUEUE_LIMIT:
            self.pause()

    def end(self) -> None:
        if self._part:
            self._push()
        self._ended = True
        self._news.set()

    def _grow(self, piece: bytes) -> None:
        self._part += piece[: LINE_LIMIT - len(self._part)]

    def _push(self) -> None:
        line = bytes(self._part)
        self._part.clear()
        self._lines.append(line)
        self._size += len(line) + _LINE_COST
        self._news.set()

    async def read(self) -> AsyncIterator[bytes]:
        taken = 0
        while True:
            while self._lines:
                line = self._lines.popleft()
                self._size -= len(line) + _LINE_COST
                if self._size < QUEUE_LIMIT // 2:
                    self.resume()
                yield line.removesuffix(b"\r")
                taken += 1
                if taken % _TURN == 0:
                    await asyncio.sleep(0)
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()
