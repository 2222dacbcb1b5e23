"""Money in words. It loads nothing: the command line says it at every start."""

from __future__ import annotations


def said(usd: float | None, unpriced: int = 0) -> str:
    """``$1.20 + 3 unpriced turns``; "" when nothing was spent yet."""
    money = "" if usd is None else f"${usd:.2f}" if usd >= 0.01 or usd == 0 else "<$0.01"
    turns = f"{unpriced} unpriced turn{'s' if unpriced != 1 else ''}" if unpriced else ""
    return " + ".join(filter(None, (money, turns)))
