"""Finding programs that may be trusted, and asking them small questions. Standard library only.

Trusted: the file and every folder above it belong to root or to us, and nobody else may write there.
``BEADMILL_TRUSTED_EXECUTABLE_DIRS`` (colon-separated) opts more folders in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import stat
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill import redact
from beadmill.errors import Refused, Unavailable
from beadmill.processes import procs
from beadmill.processes.environment import MARK_VARIABLE, TRUSTED_DIRS

_PATIENCE: Final = 10.0  # seconds for a small question
_LINE: Final = 65_536  # bytes
_TAIL: Final = 60  # lines kept of a long run


def find(name: str, *, path: str | None = None) -> Path | None:
    """Absolute and without symbolic links, or None. ``name`` may be a path."""
    found = shutil.which(str(Path(name).expanduser()) if "/" in name else name, path=path)
    return Path(found).resolve() if found else None


def why_untrusted(program: Path, *, trusted: Sequence[Path] = ()) -> str:
    """Empty = trusted; else the first reason against it."""
    if any(program.is_relative_to(folder) for folder in trusted):
        return ""
    for place in (program, *program.parents):
        facts = place.stat()
        if facts.st_uid not in (0, os.getuid()):
            return f"{place} belongs to another user (uid {facts.st_uid})"
        if facts.st_mode & stat.S_IWOTH:
            return f"everybody may write to {place}"
    return ""


def trusted_dirs(env: Mapping[str, str]) -> tuple[Path, ...]:
    return tuple(Path(p).resolve() for p in env.get(TRUSTED_DIRS, "").split(":") if p.startswith("/"))


def require_trusted(program: Path, env: Mapping[str, str], *, code: str = "AGENT_REFUSED") -> Path:
    """Raises Refused with the reason."""
    reason = why_untrusted(program, trusted=trusted_dirs(env))
    if reason:
        raise Refused(
            f"{program} is not run: {reason}",
            code=code,
            next=f"change the owner or the rights, or name its folder in {TRUSTED_DIRS}",
        )
    return program


async def ask(argv: Sequence[str], *, env: Mapping[str, str], patience: float = _PATIENCE) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a short run with a closed stdin. Raises Unavailable when it cannot start or hangs.

    For the daemon only: inside the runner every child belongs to its reaper.
    """
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env=dict(env), stdin=quiet, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise Unavailable(f"{argv[0]} cannot be started: {error}", code="AGENT_MISSING") from error
    try:
        async with asyncio.timeout(patience):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise Unavailable(f"{argv[0]} gave no answer in {patience:g} s", code="AGENT_SILENT") from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


async def stream(
    argv: Sequence[str], *, env: Mapping[str, str], say: Callable[[str], None], patience: float
) -> tuple[int, tuple[str, ...]]:
    """Exit code and the last lines of a long run with a closed stdin; ``say`` gets every line as it comes, stdout and
    stderr mixed, without secrets. When the caller is cancelled or patience ends, all that it started ends first.

    For the daemon only, like ``ask``. Raises Unavailable when it cannot start or takes too long.
    """
    mark = secrets.token_hex(16)
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env={**env, MARK_VARIABLE: mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=_LINE,
        )
    except OSError as error:
        raise Unavailable(f"{argv[0]} cannot be started: {error.strerror}", code="AGENT_MISSING") from error
    last: deque[str] = deque(maxlen=_TAIL)
    try:
        async with asyncio.timeout(patience):
            async for line in _lines(process, redact.ours()):
                last.append(line)
                say(line)
            return await process.wait(), tuple(last)
    except TimeoutError as error:
        raise Unavailable(f"{argv[0]} was not done in {patience:g} s", code="AGENT_SILENT") from error
    finally:
        if process.returncode is None:
            await procs.end_all(lambda: procs.of_mark(mark))
        await process.wait()


async def _lines(process: asyncio.subprocess.Process, redactor: redact.Redactor) -> AsyncIterator[str]:
    """A line over the limit is cut into pieces."""
    assert process.stdout is not None
    while True:
        try:
            raw = await process.stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            raw = end.partial
            if not raw:
                return
        except asyncio.LimitOverrunError as over:
            raw = await process.stdout.read(over.consumed)
        text = redact.clean(redactor.text(raw.decode("utf-8", "replace"))).rstrip()
        if text:
            yield text
