"""The stdin of a child that is written to while it runs. Standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator


class Inlet:
    """The write end of a pipe: whole messages in the order they came, a full pipe makes the writer wait."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        os.set_blocking(fd, False)

    async def write(self, data: bytes) -> None:
        """Returns when all of it is in the pipe. Raises BrokenPipeError when nobody reads any more."""
        async with self._turn:
            rest = memoryview(data)
            while rest:
                rest = rest[await self._put(rest) :]

    async def _put(self, data: memoryview) -> int:
        if self._fd < 0:
            raise BrokenPipeError("the stdin of the child is closed")
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            self._news.clear()
            self._loop.add_writer(self._fd, self._news.set)
        try:
            await self._news.wait()
        finally:
            if self._fd >= 0:
                self._loop.remove_writer(self._fd)
        return 0

    def close(self) -> None:
        """The child reads the end of its input. Idempotent; a writer that waits hears BrokenPipeError."""
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._news.set()


@contextlib.contextmanager
def source_of(data: bytes | None) -> Iterator[tuple[int, Inlet | None]]:
    """A closed stdin, a file that was unlinked (a child that never reads it blocks nobody), or a pipe and its inlet."""
    if data is None:
        read, write = os.pipe()
        inlet = Inlet(write)
        try:
            yield read, inlet
        except BaseException:
            inlet.close()
            raise
        finally:
            os.close(read)
    elif not data:
        yield subprocess.DEVNULL, None
    else:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            yield file.fileno(), None
