"""Prices of turns: the user's settings, else what the CLI reports, else a table that ships with Beadmill.

An override of the user wins over the CLI too: a CLI reckons with list prices, and only the user knows the contract.
The table is read from the installed package; nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from beadmill.domain.ended import Ended, Lost, Ran
from beadmill.domain.price import Price, Rates, Source, chosen, paid_for
from beadmill.domain.values import Usage
from beadmill.settings import PriceSettings

# Whose models an agent's CLI runs when the model's name does not say it.
PROVIDERS: Final[Mapping[str, str]] = {
    "claude_acp": "anthropic",
    "claude_code": "anthropic",
    "codex": "openai",
    "codex_acp": "openai",
    "gemini": "google",
    "kimi": "moonshotai",
}
NO_MODEL: Final = frozenset({"scripted"})  # agents that ask nobody
_SMALL: Final = 1_000  # tokens: below every threshold of a tiered price


@dataclass(frozen=True, slots=True)
class Prices:
    """``overrides`` by model or pattern, as in the settings."""

    overrides: Mapping[str, PriceSettings] = field(default_factory=dict)

    def of(self, end: Ended | Ran | Lost, *, agent: str, model: str, at: datetime) -> Price:
        """``model`` is the seat's; what the CLI says it used goes before it. Blocks while the table is read first."""
        usage = Usage() if isinstance(end, Ran | Lost) else end.usage
        name = usage.model or model
        if not paid_for(end):
            return Price(model=name)
        own = chosen(self.overrides, f"{agent}/{name}", name, f"{agent}/{model}", model) if usage.tokens else None
        if own is not None:
            return Price(_rates(own).cost(usage), Source.OVERRIDE, name)
        # CLIs say 0 for models they know no price of.
        if usage.cost_usd:
            return Price(usage.cost_usd, Source.REPORTED, name)
        table = (_listed(agent, one, at) for one in (usage.model, model) if one) if usage.tokens else ()
        rates = next(filter(None, table), None)
        if rates is None:
            return Price(None, Source.UNPRICED, name)
        return Price(rates.cost(usage), Source.PRICED, name)


def _rates(own: PriceSettings) -> Rates:
    return Rates(own.input, own.input if own.cached is None else own.cached, own.output)


def _listed(agent: str, model: str, at: datetime) -> Rates | None:
    """The list price at that time, of the lowest tier: a turn is many requests, and their sizes are not known."""
    if agent in NO_MODEL:
        return None
    provider, name = _whose(agent, model.partition("[")[0])  # claude-sonnet-4-5[1m]: the same model with more context
    return _table(name, provider, at)


def _whose(agent: str, model: str) -> tuple[str | None, str]:
    if agent in PROVIDERS:
        return PROVIDERS[agent], model
    provider, slash, name = model.partition("/")  # as OpenCode and its relatives write it
    return (provider, name) if slash else (None, model)


def _table(model: str, provider: str | None, at: datetime) -> Rates | None:
    """A table that is broken or gone has no prices: a turn is booked all the same."""
    try:
        return _rates_of(model, provider, at)
    except (LookupError, ImportError, AttributeError, TypeError, ValueError, ArithmeticError):
        return None


def _rates_of(model: str, provider: str | None, at: datetime) -> Rates:
    from genai_prices import Usage as Tokens  # 0.4 s, so not before the first turn ends
    from genai_prices import calc_price

    def dollars(**tokens: int) -> float:
        found = calc_price(Tokens(**tokens), model, provider_id=provider, genai_request_timestamp=at)
        if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
            raise LookupError(f"{model} is not priced by tokens")
        return float(found.total_price) * 1_000_000 / _SMALL

    return Rates(
        dollars(input_tokens=_SMALL),
        dollars(input_tokens=_SMALL, cache_read_tokens=_SMALL),
        dollars(output_tokens=_SMALL),
    )
