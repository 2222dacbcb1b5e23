"""Processes of a session, as the runner sees them: spawn, drain, wait, end. Standard library only.

The runner is a subreaper, so ``Reaper`` alone waits for children, adopted ones included. Pipes are always drained:
what nobody reads still goes to a bounded file, so a talkative child never blocks on us.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import termios
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill import crashpoints
from beadmill.errors import Unavailable
from beadmill.processes import procs
from beadmill.processes.box import Box, Launch
from beadmill.processes.environment import allowed
from beadmill.processes.inlet import Inlet, source_of
from beadmill.processes.listeners import listening
from beadmill.processes.room import is_full
from beadmill.redact import Redactor, Scrubber, secrets_of

LINE_LIMIT: Final = 50 * 1024 * 1024  # a message of the Agent Client Protocol is one line, whatever it carries
QUEUE_LIMIT: Final = 16 * 1024 * 1024  # bytes of unread lines before the child has to wait
FILE_LIMIT: Final = 16 * 1024 * 1024
STDERR_TAIL: Final = 4_096
LINGER: Final = 0.5  # seconds of silence after the exit before a pipe held by a grandchild is let go
LINGER_MOST: Final = 3.0  # seconds after the exit for a grandchild that goes on writing
_CHUNK: Final = 65_536
_LINE_COST: Final = 64  # bytes of memory that a line takes beside its own
_TURN: Final = 256  # lines read before everybody else may have a turn
_SPARE: Final = 8_192  # kept beyond a tail, so that a key cut by the tail is still recognised


class Reaper:
    """The only caller of waitpid: told by SIGCHLD, delivers exit codes, buries adopted orphans."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, asyncio.Future[int]] = {}
        self._loop.add_signal_handler(signal.SIGCHLD, self.reap)

    def watch(self, pid: int) -> asyncio.Future[int]:
        return self._watched.setdefault(pid, self._loop.create_future())

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            future = self._watched.pop(pid, None)
            if future is not None and not future.done():
                future.set_result(os.waitstatus_to_exitcode(status))


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


class RunningChild:
    """agents.contract.Child."""

    def __init__(self, pid: int, exited: asyncio.Future[int], spawner: Spawner, inlet: Inlet | None) -> None:
        self.pid = pid
        self._exited, self._spawner, self._inlet = exited, spawner, inlet
        self._lines = Lines()
        self._stderr = Tail(STDERR_TAIL)
        self._letting_go: asyncio.Task[None] | None = None

    def connect(self, out: int, err: int, files: tuple[BoundedFile, BoundedFile]) -> None:
        out_file, err_file = files

        def on_out(data: bytes) -> None:
            out_file.feed(data)
            self._lines.feed(data)

        def on_err(data: bytes) -> None:
            err_file.feed(data)
            self._stderr.feed(data)

        def out_ended() -> None:
            out_file.close()
            self._lines.end()

        self._out = self._spawner.drain(out, on_out, out_ended)
        self._err = self._spawner.drain(err, on_err, err_file.close)
        self._lines.pause, self._lines.resume = self._out.pause, self._out.resume
        self._letting_go = asyncio.get_running_loop().create_task(self._let_go())

    async def _let_go(self) -> None:
        await asyncio.shield(self._exited)
        self.close_stdin()
        for pipe in (self._out, self._err):
            await pipe.drained()
            pipe.close()

    def lines(self) -> AsyncIterator[bytes]:
        return self._lines.read()

    async def write(self, data: bytes) -> None:
        if self._inlet is None:
            raise BrokenPipeError("the child was started with its whole input")
        await self._inlet.write(data)

    def close_stdin(self) -> None:
        if self._inlet is not None:
            self._inlet.close()

    def stderr_tail(self) -> str:
        return self._stderr.text(self._spawner.redactor)

    async def wait(self) -> int:
        code = await asyncio.shield(self._exited)
        await self._err.drained()
        return code

    async def terminate(self) -> None:
        self._spawner.name_servers(self._tree())
        await procs.end_all(self._tree, reap=self._spawner.reaper.reap)

    def _tree(self) -> set[procs.Proc]:
        everything = procs.table()
        mine = everything.get(self.pid)
        own = {mine} if mine is not None and not self._exited.done() else set()
        return own | procs.below((self.pid,), everything)


class Spawner:
    """Starts processes through the box, with the allow-listed environment and the session's mark."""

    def __init__(
        self,
        folder: Path,
        box: Box,
        redactor: Redactor,
        *,
        own: Mapping[str, str],
        marks: Mapping[str, str],
        umask: int,
        warn: Callable[[str], None],
    ) -> None:
        """``own`` is the workspace's HOME and TMPDIR, whatever the sandbox; ``marks`` say whose the processes are."""
        self._warn = warn
        self._named: set[procs.Proc] = set()
        self.reaper = Reaper()
        self.redactor = redactor
        self.boxed = box.isolates
        self._folder, self._box, self._own, self._marks, self._umask = folder, box, own, marks, umask
        self._count = 0
        self._pipes: list[Pipe] = []

    def drain(self, fd: int, sink: Callable[[bytes], None], at_end: Callable[[], None]) -> Pipe:
        pipe = Pipe(fd, sink, at_end)
        self._pipes.append(pipe)
        return pipe

    def name_servers(self, found: Iterable[procs.Proc]) -> None:
        """Who still listens is said before it is ended: a person may look for that server."""
        for proc, ports in listening(set(found) - self._named).items():
            self._named.add(proc)
            self._warn(f"{proc.command} ({proc.pid}) still listened on {', '.join(map(str, ports))}: it is ended")

    async def close(self) -> None:
        """After the sweep: what is still in the pipes reaches the files."""
        for pipe in self._pipes:
            pipe.resume()
            await pipe.drained()
            pipe.close()

    def launch(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], program: Path | None = None) -> Launch:
        """Raises OSError when the box finds no such program."""
        self.redactor.learn(secrets_of(env))
        whole = {**allowed(os.environ), **self._own, **env, **self._marks}
        wrapped = self._box.wrap(argv, cwd=cwd, env=whole, program=program)
        return Launch(wrapped.argv, wrapped.cwd, {**wrapped.env, **self._marks}, wrapped.pass_fds)

    def start(self, launch: Launch, *, stdin: int, stdout: int, stderr: int) -> tuple[int, asyncio.Future[int]]:
        """Pid and exit code to come. Raises OSError or ValueError when it cannot start."""
        process = subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=dict(launch.env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=launch.pass_fds,
            start_new_session=True,
            umask=self._umask,
        )
        process.returncode = 0  # the reaper waits for it; Popen only started it
        crashpoints.reach("runner.spawned")
        return process.pid, self.reaper.watch(process.pid)

    async def child(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdin: bytes | None
    ) -> RunningChild:
        """``stdin`` None = it stays open. Raises Unavailable when the executable is missing or cannot be started."""
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            launch = self.launch(argv, cwd=cwd, env=env, program=Path(argv[0]) if argv[0].startswith("/") else None)
            with source_of(stdin) as (source, inlet):
                pid, exited = self.start(launch, stdin=source, stdout=out_write, stderr=err_write)
        except (OSError, ValueError) as error:
            os.close(out_read)
            os.close(err_read)
            code = "DISK_FULL" if is_full(error) else "AGENT_MISSING"
            raise Unavailable(f"{argv[0]} cannot be started: {error}", code=code) from error
        finally:
            os.close(out_write)
            os.close(err_write)
        child = RunningChild(pid, exited, self, inlet)
        child.connect(out_read, err_read, self._files())
        return child

    def _files(self) -> tuple[BoundedFile, BoundedFile]:
        self._count += 1
        name = f"{self._count}" if self._count > 1 else ""
        return tuple(BoundedFile(self._folder / f"{kind}{name}.log", self.redactor) for kind in ("stdout", "stderr"))  # type: ignore[return-value]


def find_program(name: str, *, cwd: Path, path: str) -> str | None:
    """Where exec would find it; None = nowhere."""
    if "/" in name:
        return name if os.access(cwd / name, os.X_OK) and (cwd / name).is_file() else None
    return shutil.which(name, path=path)
