"""Every error a person may see. The tree:

BeadmillError                     what happened, what was kept, what to do next
├── Invalid            (400)      the input cannot be understood
├── Refused            (403)      the input is understood and not allowed
├── NotFound           (404)
├── Conflict           (409)      the world is not what the caller thought
│   └── Stale          (409)      the reviewed bytes are not the current ones
├── Missing            (428)      a precondition (If-Match) was not sent
├── Unprocessable      (422)      well-formed, yet not a valid document
├── Unavailable        (503)      something outside is not there (agent, forge, database)
│   └── Unwritable     (503)      the database cannot be written now; it passes, and work goes on by itself
└── Blocked                       a node cannot go on: the engine opens a blocked gate
    └── TurnFailed                an agent session ended without a reply (engine/turns.py raises it)

Signals of the engine are BaseExceptions, so node code cannot swallow them: Parked, Superseded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class BeadmillError(Exception):
    """``code`` is stable and upper case, ``kept`` says what survived, ``next`` what a person can do now."""

    status = 500
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        details: Mapping[str, Any] | None = None,
        kept: str = "",
        next: str = "",  # noqa: A002 - the envelope's word
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).__name__.upper()
        self.details = dict(details or {})
        self.kept = kept
        self.next = next

    def envelope(self) -> dict[str, Any]:
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "details": self.details,
                "kept": self.kept,
                "next": self.next,
            }
        }


class Invalid(BeadmillError):
    status = 400
    exit_code = 2


class Refused(BeadmillError):
    status = 403


class NotFound(BeadmillError):
    status = 404
    exit_code = 3


class Conflict(BeadmillError):
    status = 409
    exit_code = 4


class Stale(Conflict):
    pass


class Missing(BeadmillError):
    status = 428
    exit_code = 4


class Unprocessable(BeadmillError):
    status = 422
    exit_code = 2


class Unavailable(BeadmillError):
    status = 503


class Unwritable(Unavailable):
    """A full disk, a lock that somebody else keeps, a file system that became read-only."""


class Blocked(BeadmillError):
    """Raised by a node that cannot go on. ``forget`` names the scopes whose rows a retry forgets.

    Default of ``forget`` (contracts.md, journal rule 2): the scope of the durable call that raised, else the map or
    pool item, else nothing. ``continuable`` says the same agent conversation may simply be resumed; ``takes_note``
    (the engine's to say) that an agent is told what a person writes beside the retry.
    """

    status = 409
    exit_code = 5

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        forget: tuple[str, ...] = (),
        continuable: bool = False,
        details: Mapping[str, Any] | None = None,
        kept: str = "",
        next: str = "",  # noqa: A002 - the envelope's word
    ) -> None:
        super().__init__(message or code, code=code, details=details, kept=kept, next=next)
        self.forget = forget
        self.continuable = continuable
        self.takes_note = False


class TurnFailed(Blocked):
    """An agent session or command batch ended without a result. ``end`` is the recorded domain.ended value.

    Nodes may catch it where a failed turn is an ordinary outcome (a seat of a council, an iteration of a bead).
    """

    def __init__(self, code: str, message: str = "", *, end: Any, **more: Any) -> None:
        super().__init__(code, message, **more)
        self.end = end


class Parked(BaseException):
    """An activation ends because something must happen first. Carries the union of its waits."""

    def __init__(self, waits: frozenset[Any]) -> None:
        super().__init__(f"{len(waits)} waits")
        self.waits = waits


class Superseded(BaseException):
    """The activation no longer owns its visit: its commit was refused and its results are void."""
