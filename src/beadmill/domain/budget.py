"""What a run has spent of what it may: a warning at 80 %, a stop at 100 %."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

WARN_AT = 0.8


class Budget(Protocol):
    """settings.BudgetSettings is one. None = no limit."""

    @property
    def usd(self) -> float | None: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def minutes(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Spent:
    """``what`` names the limit that is furthest along: usd, tokens, minutes, or "" when nothing is limited or spent.
    ``share`` is its part of the limit. ``unpriced``: a limit in USD cannot be watched, no price is known."""

    state: Literal["ok", "warn", "over"] = "ok"
    what: str = ""
    share: float = 0.0
    unpriced: bool = False


def spent(budget: Budget, usd: float | None, tokens: int, minutes: float) -> Spent:
    """``usd`` None = nothing priced so far. A limit that cannot be watched while tokens flow is a warning."""
    used = {"usd": (usd or 0.0, budget.usd), "tokens": (tokens, budget.tokens), "minutes": (minutes, budget.minutes)}
    shares = {what: amount / limit for what, (amount, limit) in used.items() if limit}
    unpriced = budget.usd is not None and usd is None and tokens > 0
    what = max(shares, key=shares.__getitem__, default="")
    share = shares.get(what, 0.0)
    if share >= 1:
        return Spent("over", what, share, unpriced)
    if share >= WARN_AT:
        return Spent("warn", what, share, unpriced)
    return Spent("warn", "usd", 0.0, unpriced) if unpriced else Spent("ok", what if share else "", share)
