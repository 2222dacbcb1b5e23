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
    ``share`` is its part of the limit. ``unpriced``: a limit in USD does not see everything, as prices are missing."""

    state: Literal["ok", "warn", "over"] = "ok"
    what: str = ""
    share: float = 0.0
    unpriced: bool = False


def spent(budget: Budget, usd: float | None, tokens: int, minutes: float, *, turns: int = 0) -> Spent:
    """``usd`` None = nothing priced so far, ``turns`` = how many have no price. A limit that is blind is a warning."""
    used = {"usd": (usd or 0.0, budget.usd), "tokens": (tokens, budget.tokens), "minutes": (minutes, budget.minutes)}
    shares = {what: amount / limit for what, (amount, limit) in used.items() if limit}
    unpriced = budget.usd is not None and (turns > 0 or (usd is None and tokens > 0))
    what = max(shares, key=shares.__getitem__, default="")
    share = shares.get(what, 0.0)
    if share >= 1:
        return Spent("over", what, share, unpriced)
    if share >= WARN_AT:
        return Spent("warn", what, share, unpriced)
    return Spent("warn", what, share, unpriced) if unpriced else Spent("ok", what if share else "", share)
