"""What every adapter means by a failing provider; the words differ per CLI and stay with its stream. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from beadmill.domain.ended import Why

BY_STATUS: Final[Mapping[int, Why]] = {
    401: Why.AUTH, 402: Why.QUOTA, 403: Why.AUTH, 404: Why.BAD_MODEL, 408: Why.TRANSPORT, 413: Why.CONTEXT,
}  # fmt: skip
PASSING: Final = frozenset({402, 408, 429, 500, 502, 503, 504, 529})  # statuses of what may pass (reference §1.4)
CONTINUABLE: Final = frozenset({Why.OVERLOADED, Why.TRANSPORT, Why.NO_RESULT, Why.STEPS})


def continuable(why: Why, status: int = 0) -> bool:
    """Whether the same conversation may be told to go on. A status says more than words, where there is one: 402 may
    pass though a used-up quota may not, and no connection mends what was a bad request."""
    if status == 402:
        return True
    return why in CONTINUABLE and (status < 400 or status in PASSING)
