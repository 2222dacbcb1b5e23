"""How an agent session or a command batch ended. Values, never exceptions. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from beadmill.domain.values import Json, Usage


@dataclass(frozen=True, slots=True)
class SessionRef:
    """``token`` names the session folder; ``conversation`` is the CLI's own id, wanted for a resume."""

    token: str
    conversation: str = ""


class Why(StrEnum):
    """Why a session failed."""

    AUTH = "auth"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    TRANSPORT = "transport"
    CONTEXT = "context"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    BAD_MODEL = "bad_model"
    MISSING = "missing"  # the executable is not there or not trusted
    NO_RESULT = "no_result"  # the CLI exited without a result
    STEPS = "steps"  # the cap on steps was reached
    LOST = "lost"  # started, lock free, no end.json
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    session: SessionRef
    worked: timedelta = timedelta()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied(_End):
    """``data`` is set when the CLI's own schema mode gave a structured value; ``answered`` counts the questions of the
    call that a person answered."""

    text: str
    data: Json = None
    answered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(_End):
    """The agent asks a person; the next turn resumes the conversation with the answer."""

    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited(_End):
    """The provider's limit. ``until`` None = unknown: the caller backs off."""

    until: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed(_End):
    """The working-time budget or the idle limit ran out. ``idle`` tells which."""

    idle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(_End):
    """Ended by an order of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_End):
    why: Why
    message: str = ""
    continuable: bool = False


def fails_the_try(end: object) -> bool:
    """Out of time, stopped by an order of ours, lost with its runner, or its context is full: the tree is put back and a
    fresh session tries again. Any other end without a reply needs a person or a provider first."""
    return isinstance(end, (Lapsed, Stopped)) or (isinstance(end, Failed) and end.why in (Why.LOST, Why.CONTEXT))


Ended: TypeAlias = Replied | Asked | Limited | Lapsed | Stopped | Failed


@dataclass(frozen=True, slots=True)
class CommandResult:
    """``exit`` None = could not start, or was killed by the deadline. ``output`` is the tail (≤ 64 kB, scrubbed)."""

    command: str
    exit: int | None
    seconds: float
    output: str = ""
    timed_out: bool = False
    cannot_start: bool = False

    @property
    def ok(self) -> bool:
        return self.exit == 0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a batch ended; ``results`` is shorter than the batch when the first failure stopped it."""

    results: tuple[CommandResult, ...]
    stopped: bool = False

    @property
    def ok(self) -> bool:
        return not self.stopped and bool(self.results) and all(r.ok for r in self.results)


@dataclass(frozen=True, slots=True)
class Lost:
    """Started, lock free, no end.json: the runner died. Never restarted silently in a dirty tree."""


END_TYPES: Mapping[str, type] = {c.__name__: c for c in (Replied, Asked, Limited, Lapsed, Stopped, Failed, Ran, Lost)}
