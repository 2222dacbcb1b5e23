"""The user's price, else the CLI's, else the table's, else none: never a guess, never the network."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa

from beadmill.domain.ended import Limited, Replied, SessionRef
from beadmill.domain.price import Price, Source
from beadmill.domain.values import Outcome, Seat, Usage
from beadmill.engine.port import Visit
from beadmill.engine.prices import Prices
from beadmill.settings import PriceSettings
from beadmill.store import tables
from tests.engine.bench import Bench, agent_task, one

AT = datetime(2026, 3, 1, tzinfo=UTC)
USED = Usage(input=1_000_000, cached=1_000_000, output=100_000)
OK = Outcome("ok")
OWN = {"gpt-*": PriceSettings(input=2, output=20), "free/*": PriceSettings(input=0, output=0)}


def price(agent: str, model: str, usage: Usage = USED, **overrides: PriceSettings) -> Price:
    end = Replied(session=SessionRef("t"), text="ok", usage=usage)
    found = Prices(overrides).of(end, agent=agent, model=model, at=AT)
    return replace(found, usd=None if found.usd is None else round(found.usd, 6))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("prices never ask the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("agent", "model", "usd"),
    [
        ("codex", "gpt-5", 1.25 + 0.125 + 1),
        ("codex", "gpt-5.1-codex", 1.25 + 0.125 + 1),
        ("claude_code", "claude-sonnet-4-5", 3 + 0.3 + 1.5),
        ("claude_code", "claude-sonnet-4-5[1m]", 3 + 0.3 + 1.5),
        ("opencode", "anthropic/claude-sonnet-4-5", 3 + 0.3 + 1.5),
        ("opencode", "openrouter/anthropic/claude-sonnet-4.5", 3 + 0.3 + 1.5),
        ("somebody", "gpt-5", 1.25 + 0.125 + 1),
        ("opencode", "moonshotai/kimi-k2", 0.57 + 0.57 + 0.23),  # no price for cached input: it costs as input does
    ],
)
def test_the_table_prices_each_part_by_model_and_provider(agent: str, model: str, usd: float) -> None:
    assert price(agent, model) == Price(round(usd, 6), Source.PRICED, model)


@pytest.mark.parametrize(
    ("agent", "model"),
    [
        ("codex", ""),
        ("codex", "a-model-nobody-knows"),
        ("codex", "claude-sonnet-4-5"),
        ("claude_code", "sonnet"),
        ("opencode", "ollama/gpt-5"),
        ("scripted", "gpt-5"),
        ("codex", "whisper-1"),
    ],
)
def test_c89_what_the_table_does_not_know_is_unpriced(agent: str, model: str) -> None:
    assert price(agent, model) == Price(None, Source.UNPRICED, model)


def test_the_model_that_the_cli_names_goes_before_the_seats() -> None:
    used = replace(USED, model="claude-haiku-4-5")
    assert price("claude_code", "sonnet", used) == Price(1 + 0.1 + 0.5, Source.PRICED, "claude-haiku-4-5")


def test_what_the_cli_reports_goes_before_the_table() -> None:
    assert price("claude_code", "claude-sonnet-4-5", replace(USED, cost_usd=0.5)).usd == 0.5


def test_a_price_in_the_settings_goes_before_what_the_cli_reports() -> None:
    used = replace(USED, cost_usd=0.5)
    assert price("codex", "gpt-5", used, **OWN) == Price(2 + 2 + 2, Source.OVERRIDE, "gpt-5")


def test_zero_is_a_price_only_when_the_settings_say_so() -> None:
    reported = replace(USED, cost_usd=0.0)
    assert price("opencode", "free/model", reported, **OWN) == Price(0.0, Source.OVERRIDE, "free/model")
    assert price("opencode", "free/model", reported) == Price(None, Source.UNPRICED, "free/model")


def test_a_turn_that_the_provider_refused_costs_nothing() -> None:
    refused = Limited(session=SessionRef("t"))
    assert Prices().of(refused, agent="codex", model="gpt-5", at=AT) == Price(None, Source.NOTHING, "gpt-5")


def test_a_turn_whose_tokens_nobody_told_is_unpriced() -> None:
    assert price("codex", "gpt-5", Usage(), **OWN) == Price(None, Source.UNPRICED, "gpt-5")


def test_a_table_that_cannot_be_read_prices_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price("codex", "gpt-5") == Price(None, Source.UNPRICED, "gpt-5")


def test_starting_the_daemon_does_not_read_the_table() -> None:
    code = "import beadmill.app, sys; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


async def booked(bench: Bench, *turns: Usage, budget: dict[str, float] | None = None, model: str = "m") -> None:
    """A run with one session per usage."""

    async def body(v: Visit, _: Any) -> Outcome:
        for number in range(len(turns)):
            await v.agent(f"turn-{number}", lambda: replace(agent_task(), seat=Seat("codex", model)))
        return OK

    bench.node("n", body)
    async with bench.daemon():
        await bench.start(one("n"), budget=budget or {})
        for number, usage in enumerate(turns):
            await bench.until(lambda n=number: bench.sessions.running == [f"n.1/turn-{n}#0/1"])  # type: ignore[misc]
            session = bench.sessions.one(f"turn-{number}")
            session.end = Replied(session=SessionRef(session.token), text="ok", usage=usage)
        await bench.until(lambda: bench.run_state() == "completed")


async def test_the_books_keep_the_source_of_every_turn_and_count_the_unpriced(bench: Bench) -> None:
    known = Usage(input=1_000_000, model="gpt-5")
    await booked(bench, known, Usage(input=5), Usage(input=5, cost_usd=0.5))
    s = tables.sessions.c
    rows = bench.rows(sa.select(s.cost_source, s.model, s.cost_usd).order_by(s.started))
    assert [tuple(row) for row in rows] == [("priced", "gpt-5", 1.25), ("unpriced", "m", None), ("reported", "m", 0.5)]
    (run,) = bench.rows(sa.select(tables.runs.c.cost_usd, tables.runs.c.unpriced))
    assert tuple(run) == (1.75, 1)


async def test_a_budget_in_dollars_that_is_blind_says_so_once(bench: Bench) -> None:
    await booked(bench, Usage(input=5), Usage(input=5), budget={"usd": 10})
    assert bench.events("budget.") == ["budget.unpriced"]


async def test_a_blind_budget_still_warns_of_what_it_sees(bench: Bench) -> None:
    await booked(bench, Usage(input=5), Usage(input=5, cost_usd=9.0), budget={"usd": 10})
    assert bench.events("budget.") == ["budget.unpriced", "budget.warning"]


async def test_unpriced_turns_without_a_limit_in_dollars_are_no_warning(bench: Bench) -> None:
    await booked(bench, Usage(input=5), budget={"tokens": 1000})
    assert bench.events("budget.") == []
