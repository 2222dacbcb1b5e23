"""What adapters of CLIs that print JSON lines share. Standard library only."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from beadmill.agents.contract import Child, SessionIO
from beadmill.domain.ended import Ended
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentEvent, EventKind

OUTPUT: Final = 4_000  # characters of a tool's output in its event
GRACE: Final = 10.0  # seconds a CLI may take to exit behind its result
NOISE: Final = 1024 * 1024  # bytes of lines that are no JSON which become events; the session's files have more
_ESCAPES: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_HEADS: Final = (b"{", b"\x1b", b"\0", b"\xef")  # of a line that may hold an object


class Stream(Protocol):
    """Lines in, events out, and at last the end: no I/O, so recorded bytes test it."""

    @property
    def done(self) -> bool:
        """The CLI has said how the turn ended: whatever follows, that is the end, and it may only tidy up."""
        ...

    def feed(self, line: bytes) -> list[AgentEvent]: ...

    def end(self, code: int, stderr: str) -> Ended: ...


def event(kind: EventKind, **data: Json) -> AgentEvent:
    return AgentEvent(datetime.now(UTC), kind, data)


def parse(line: bytes) -> Mapping[str, Json] | None:
    """One JSON object with a ``type``; None for anything else.

    Bytes that are no UTF-8 become U+FFFD, control characters inside strings are let pass, escapes of a terminal
    around the object are taken off: a result is not lost over what a tool printed into it.
    """
    text = line if line.startswith(b"{") else _ESCAPES.sub(b"", line).strip(b"\0\r\t \xef\xbb\xbf")
    if not text.startswith(b"{"):
        return None
    try:
        data = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else None


def unreadable(line: bytes) -> list[AgentEvent]:
    """A line that nobody could parse is shown, not lost."""
    text = line[-4 * OUTPUT :].decode("utf-8", "replace").rstrip()
    return [event(EventKind.OUTPUT, stream="stdout", text=text[-OUTPUT:])] if text else []


async def follow(child: Child, stream: Stream, io: SessionIO, *, grace: float = GRACE) -> Ended:
    """Drains the child through the stream. Whatever happens, the child and all below it are ended.

    A CLI that has said its result and does not exit is ended after ``grace`` seconds; the result counts.
    """
    try:
        reading = _Reading(child, stream, io, grace)
        code = await reading.exit()
        if code is None:
            message = f"the agent gave its result and did not exit: it was ended after {grace:g} s"
            await io.emit(event(EventKind.WARNING, message=message))
        return stream.end(code or 0, child.stderr_tail())
    finally:
        await child.terminate()


class _Reading:
    """One child read to its end."""

    def __init__(self, child: Child, stream: Stream, io: SessionIO, grace: float) -> None:
        self._child, self._stream, self._io, self._grace = child, stream, io, grace
        self._clock = asyncio.get_running_loop().time
        self._until: float | None = None  # from the result on
        self._noise = NOISE

    async def exit(self) -> int | None:
        """The exit code; None = the grace ran out."""
        try:
            async with asyncio.timeout(None) as patience:
                async for line in self._child.lines():
                    for item in self._events(line):
                        await self._io.emit(item)
                    if self._stream.done and self._until is None:
                        self._until = self._clock() + self._grace
                        patience.reschedule(self._until)
                    # One that writes without a pause leaves no moment for the timeout to strike.
                    if self._until is not None and self._clock() > self._until:
                        return None
                return await self._child.wait()
        except TimeoutError:
            if self._until is None:
                raise
            return None

    def _events(self, line: bytes) -> list[AgentEvent]:
        if line.lstrip()[:1] in _HEADS:
            try:
                return self._stream.feed(line)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                return [*unreadable(line), event(EventKind.WARNING, message=f"a line was not understood: {error!r}")]
        return self._heard(line)

    def _heard(self, line: bytes) -> list[AgentEvent]:
        """What is no JSON is shown up to a limit: a flood of it must not become a flood of events."""
        if self._noise < 0:
            return []
        self._noise -= len(line) + 1
        if self._noise < 0:
            message = f"more than {NOISE} bytes of output that is no JSON: the rest is only in stdout.log"
            return [event(EventKind.WARNING, message=message)]
        return unreadable(line)
