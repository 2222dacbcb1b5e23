"""A batch of CommandSpecs, run one after another inside the runner. Standard library only."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult, Ran
from beadmill.processes import procs
from beadmill.processes.children import Spawner, find_program
from beadmill.processes.environment import allowed
from beadmill.processes.eventlog import EventLog
from beadmill.processes.pipes import BoundedFile, Pipe, Tail
from beadmill.processes.spec import Batch, EventKind
from beadmill.processes.staying import Stay, staying
from beadmill.redact import Redactor

OUTPUT_TAIL: Final = 64 * 1024
EVENT_TAIL: Final = 4 * 1024  # what the COMMAND_DONE event shows; the file has the rest


class Output:
    """Both streams of one command: a bounded file and the tail for the result."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.tail = Tail(OUTPUT_TAIL)
        self._file = BoundedFile(path, redactor)

    def feed(self, data: bytes) -> None:
        self._file.feed(data)
        self.tail.feed(data)

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class Commands:
    """``ran`` grows while it works, so a stop keeps what was done."""

    batch: Batch
    spawner: Spawner
    log: EventLog
    folder: Path
    ran: list[CommandResult]

    async def run(self) -> Ran:
        for n, spec in enumerate(self.batch.specs, 1):
            self.log.say(EventKind.COMMAND, n=n, command=str(spec))
            result = await self._one(n, spec)
            self.ran.append(result)
            self._report(n, result)
            if not result.ok and self.batch.stop_at_first_failure:
                break
        return Ran(tuple(self.ran))

    async def _one(self, n: int, spec: CommandSpec) -> CommandResult:
        begun = time.monotonic()
        env = {**self.batch.env, **spec.env}
        wrong = self._cannot(spec, env)
        if wrong:
            return CommandResult(str(spec), None, 0.0, wrong, cannot_start=True)
        output = Output(self.folder / f"output-{n}.log", self.spawner.redactor)
        try:
            before = _below_us()
            exited, pipe = self._start(spec, env, output)
        except (OSError, ValueError) as error:
            output.close()
            return CommandResult(str(spec), None, 0.0, f"cannot start: {error}", cannot_start=True)
        limit = timedelta(milliseconds=spec.timeout_ms) if spec.timeout_ms else self.batch.budget
        code = await self._wait(exited, limit, before)
        await pipe.drained()
        seconds = round(time.monotonic() - begun, 3)
        text = output.tail.text(self.spawner.redactor)
        return CommandResult(str(spec), code, seconds, text, timed_out=code is None)

    def _start(self, spec: CommandSpec, env: Mapping[str, str], output: Output) -> tuple[asyncio.Future[int], Pipe]:
        cwd = self.batch.cwd / spec.cwd
        stay = Stay(output.feed) if self.spawner.boxed else None
        read, write = os.pipe()
        try:
            launch = self.spawner.launch(staying(spec.argv()) if stay else spec.argv(), cwd=cwd, env=env)
            source, errors = (stay.stdin, stay.stderr) if stay else (subprocess.DEVNULL, write)
            pid, exited = self.spawner.start(launch, stdin=source, stdout=write, stderr=errors)
        except (OSError, ValueError):
            os.close(read)
            if stay:
                stay.failed()
            raise
        finally:
            os.close(write)
        if stay:
            stay.started(pid, exited)
        # A server left in the background may go on writing: the pipe is drained until the batch ends.
        return stay.code if stay else exited, self.spawner.drain(read, output.feed, output.close)

    async def _wait(self, exited: asyncio.Future[int], limit: timedelta, before: set[procs.Proc]) -> int | None:
        """None = the deadline passed, and everything the command had started is gone."""
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await asyncio.shield(exited)
        except TimeoutError:
            if exited.done():  # both at once: we had been frozen
                return exited.result()
            await procs.end_all(lambda: _below_us() - before, reap=self.spawner.reaper.reap)
            return None

    def _cannot(self, spec: CommandSpec, env: Mapping[str, str]) -> str:
        """Why it cannot start; empty when nothing speaks against it."""
        root = self.batch.cwd.resolve()
        cwd = (root / spec.cwd).resolve()
        if not cwd.is_relative_to(root):
            return f"cannot start: the folder {spec.cwd!r} leads out of the tree"
        if not cwd.is_dir():
            return f"cannot start: there is no folder {spec.cwd!r}"
        if self.spawner.foreign:
            return ""
        program = spec.argv()[0]
        path = env.get("PATH") or allowed(os.environ).get("PATH", os.defpath)
        if find_program(program, cwd=cwd, path=path) is None:
            return f"cannot start: {program!r} is not there or not executable"
        return ""

    def _report(self, n: int, result: CommandResult) -> None:
        self.log.say(
            EventKind.COMMAND_DONE,
            n=n,
            exit=result.exit,
            seconds=result.seconds,
            timed_out=result.timed_out,
            cannot_start=result.cannot_start,
            output=result.output[-EVENT_TAIL:],
        )


def _below_us() -> set[procs.Proc]:
    """Commands run one at a time and orphans are adopted by us: what was not here before belongs to the newest."""
    return procs.below((os.getpid(),), procs.table())
