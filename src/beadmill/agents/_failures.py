"""What every adapter means by a failing provider; the words differ per CLI and stay with its stream. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from beadmill.domain.ended import Why

BY_STATUS: Final[Mapping[int, Why]] = {
    401: Why.AUTH, 402: Why.QUOTA, 403: Why.AUTH, 404: Why.BAD_MODEL, 408: Why.TRANSPORT, 413: Why.CONTEXT,
}  # fmt: skip
# After these the same conversation may be told to go on.
CONTINUABLE: Final = frozenset({Why.OVERLOADED, Why.TRANSPORT, Why.TRUNCATED, Why.NO_RESULT, Why.STEPS})
