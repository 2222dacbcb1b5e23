"""What a turn took, from figures with three meanings and a cost that grows. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from beadmill.agents.acp_cli import Told
from beadmill.domain.values import Json, Usage

UNKNOWN = "how many tokens this turn took is unknown: the CLI does not tell"
PARTIAL = "the tokens of this turn are those of its last step: the CLI tells no more"


@dataclass(frozen=True, slots=True)
class Totals:
    """Tokens as an answer told them. ``input`` excludes cache reads, ``output`` includes reasoning."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def since(self, before: Totals) -> Totals:
        """What came on top; figures that began anew count from zero."""
        if self.input < before.input or self.output < before.output:
            return self
        parts = (self.input - before.input, self.cached - before.cached, self.output - before.output)
        return Totals(*parts, self.reasoning - before.reasoning)

    def house(self, cost_usd: float | None, model: str) -> Usage:
        return Usage(self.input, self.cached, self.output, self.reasoning, cost_usd, model)


def read(usage: Json) -> Totals | None:
    """The usage of an answer. Some count cache reads into the input and reasoning into the output, some do not: the
    total tells which."""
    if not isinstance(usage, dict) or not usage.get("totalTokens"):
        return None
    told, cached = _count(usage, "inputTokens"), _count(usage, "cachedReadTokens")
    output, reasoning = _count(usage, "outputTokens"), _count(usage, "thoughtTokens")
    total = _count(usage, "totalTokens")
    fresh = told if total >= told + cached + output else max(0, told - cached)
    beside = total >= fresh + cached + output + reasoning
    return Totals(fresh, cached, output + reasoning if beside else output, reasoning)


def cost(update: Mapping[str, Json]) -> float | None:
    """US dollars of the whole conversation, from a usage update."""
    told = update.get("cost")
    if not isinstance(told, dict) or told.get("currency") != "USD":
        return None
    amount = told.get("amount")
    return float(amount) if isinstance(amount, (int, float)) else None


def price(now: float | None, before: float | None) -> float | None:
    """The part of a cost that grows which came on top; one that began anew counts from zero."""
    if now is None or before is None:
        return now
    return now - before if now >= before else now


def note(told: Told, usage: Totals | None) -> str:
    """What has to be said about the figures; empty = they are the turn's."""
    if usage is None:
        return UNKNOWN
    return PARTIAL if told == "last_step" else ""


def _count(usage: Mapping[str, Json], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) else 0
