"""What adapters of CLIs that print JSON lines share. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from beadmill.agents.contract import Child, SessionIO
from beadmill.domain.ended import Ended
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentEvent, EventKind

OUTPUT: Final = 4_000  # characters of a tool's output in its event


class Stream(Protocol):
    """Lines in, events out, and at last the end: no I/O, so recorded bytes test it."""

    def feed(self, line: bytes) -> list[AgentEvent]: ...

    def end(self, code: int, stderr: str) -> Ended: ...


def event(kind: EventKind, **data: Json) -> AgentEvent:
    return AgentEvent(datetime.now(UTC), kind, data)


def parse(line: bytes) -> Mapping[str, Json] | None:
    """One JSON object with a ``type``; None for anything else."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else None


def unreadable(line: bytes) -> list[AgentEvent]:
    """A line that nobody could parse is shown, not lost."""
    text = line.decode("utf-8", "replace").rstrip()
    return [event(EventKind.OUTPUT, stream="stdout", text=text[-OUTPUT:])] if text else []


async def follow(child: Child, stream: Stream, io: SessionIO) -> Ended:
    """Drains the child through the stream. Whatever happens, the child and all below it are ended."""
    try:
        async for line in child.lines():
            for item in stream.feed(line):
                await io.emit(item)
        return stream.end(await child.wait(), child.stderr_tail())
    finally:
        await child.terminate()
