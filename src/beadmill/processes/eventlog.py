"""events.jsonl: the only way out of a session while it runs. Bounded, scrubbed, whole lines; a full disk is waited for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from beadmill.domain.values import Json, Usage
from beadmill.processes.room import Backlog
from beadmill.processes.spec import AgentEvent, EventKind
from beadmill.redact import Redactor

MOST: Final = 64 * 1024 * 1024  # bytes; behind it only the events that a result needs are written
LONGEST: Final = 256 * 1024  # characters of one string in an event
SPARE: Final = 1024 * 1024  # bytes kept for those: an agent can say them without end, too
_NEEDED: Final = frozenset({EventKind.STARTED, EventKind.USAGE})
_OURS: Final = frozenset({EventKind.ENDED, EventKind.COMMAND_DONE})


class EventLog:
    """Adds up what the runner needs when a session is cut short: the conversation and the usage so far."""

    def __init__(self, path: Path, redactor: Redactor, *, heard: Callable[[], None], most: int = MOST) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._file).st_size
        self._backlog = Backlog(self._file)
        self._redactor, self._heard, self._most = redactor, heard, most
        self._full = False
        self.conversation = ""
        self.model = ""
        self.usage = Usage()

    def emit(self, event: AgentEvent) -> None:
        self._heard()
        self._note(event)
        if self._full and not self._still(event.kind):
            return
        self._write(event)
        if self._size > self._most and not self._full:
            self._full = True
            self._write(
                _now(EventKind.WARNING, message=f"more than {self._most} bytes of events: the rest is left out")
            )

    def _still(self, kind: EventKind) -> bool:
        """Whether a full log takes it."""
        return kind in _OURS or (kind in _NEEDED and self._size < self._most + SPARE)

    def say(self, kind: EventKind, **data: Json) -> None:
        self.emit(_now(kind, **data))

    def close(self) -> None:
        """Raises OSError while the disk is full: then it may be called again."""
        if self._backlog.left_out:
            left_out, self._backlog.left_out = self._backlog.left_out, 0
            self.say(EventKind.WARNING, message=f"the disk was full: {left_out} bytes of events are left out")
        self._backlog.flush()
        os.fsync(self._file)
        os.close(self._file)

    def _note(self, event: AgentEvent) -> None:
        if event.kind is EventKind.STARTED:
            self.conversation = str(event.data.get("conversation") or self.conversation)
            self.model = str(event.data.get("model") or self.model)
        if event.kind is EventKind.USAGE:
            self.usage += Usage(**{k: v for k, v in event.data.items() if k in Usage.__slots__})

    def _write(self, event: AgentEvent) -> None:
        data = self._redactor.json(_cut(event.data))
        line = json.dumps({"at": event.at.isoformat(), "kind": event.kind.value, "data": data}).encode() + b"\n"
        self._backlog.add(line)
        self._size += len(line)


def _now(kind: EventKind, **data: Json) -> AgentEvent:
    return AgentEvent(datetime.now(UTC), kind, data)


def _cut(value: Json) -> Json:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]} … {len(value) - LONGEST} characters left out"
    if isinstance(value, dict):
        return {k: _cut(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(v) for v in value]
    return value
