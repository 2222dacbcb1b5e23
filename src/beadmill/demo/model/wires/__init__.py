"""One module per provider wire, and the contract between them and the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from beadmill.demo.model.answer import Answer
from beadmill.demo.model.transcript import Transcript
from beadmill.domain.values import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """A refusal as the provider words it."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    """Stateless: every method is pure."""

    path: str  # how the request's path ends

    def understand(self, body: Mapping[str, Json]) -> Transcript: ...

    def whole(self, answer: Answer) -> Json:
        """The answer to a request that asked for no stream."""
        ...

    def stream(self, answer: Answer) -> Iterator[bytes]:
        """The frames of a whole stream."""
        ...

    def opening(self, answer: Answer) -> Iterator[bytes]:
        """The first frames of a stream up to a first word: what is cut, garbled or stalls behind it."""
        ...

    def fault(self, name: str, message: str, seconds: float | None) -> Fault | None:
        """How this provider says ``name``; ``seconds`` until a limit ends, when it says so. None = it answers, and
        the answer is a refusal."""
        ...


def frame(data: Json, event: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
