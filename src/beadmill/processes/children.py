"""Processes of a session, as the runner sees them: spawn, drain, wait, end. Standard library only.

The runner is a subreaper, so ``Reaper`` alone waits for children, adopted ones included.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
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
from beadmill.processes.pipes import BoundedFile, Lines, Pipe, Tail
from beadmill.processes.room import code_of
from beadmill.redact import Redactor, secrets_of

STDERR_TAIL: Final = 4_096


class Reaper:
    """The only caller of waitpid: told by SIGCHLD, delivers exit codes, buries adopted orphans."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, asyncio.Future[int]] = {}
        self._loop.add_signal_handler(signal.SIGCHLD, self.reap)

    def close(self) -> None:
        """From here on whoever starts a child waits for it: a sandbox that asks a program while it closes."""
        self._loop.remove_signal_handler(signal.SIGCHLD)

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
        self.boxed, self.foreign = box.isolates, box.foreign
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
        self.reaper.close()

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
            raise Unavailable(f"{argv[0]} cannot be started: {error}", code=code_of(error, "AGENT_MISSING")) from error
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
