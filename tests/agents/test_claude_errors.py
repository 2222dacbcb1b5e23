"""What Claude Code's messages mean, by category, status and words; and when its limits end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from beadmill.agents.claude_errors import classify, until
from beadmill.domain.ended import Why

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("category", "message", "status", "why"),
    [
        ("authentication_failed", "Invalid API key · Fix external API key", 401, Why.AUTH),
        ("oauth_org_not_allowed", "Your organization has disabled Claude subscription access", 403, Why.AUTH),
        ("cloud_credential_error", "AWS credentials did not load", None, Why.AUTH),
        ("billing_error", "Credit balance is too low", 400, Why.QUOTA),
        ("rate_limit", "You're out of usage credits. /model to switch models.", 429, Why.QUOTA),
        ("rate_limit", "You've hit your monthly spend limit · run /usage-credits to raise it", 429, Why.QUOTA),
        ("rate_limit", "Your seat type doesn't include usage", 429, Why.QUOTA),
        ("rate_limit", "You're out of usage credits · resets 3pm (UTC)", 429, None),
        ("rate_limit", "You've hit your 5-hour limit · resets 6:05pm (UTC)", 429, None),
        ("rate_limit", "API Error: Request rejected (429) · Number of requests has exceeded your rate limit.", 429, None),
        ("overloaded", "API Error: 529 Overloaded.", 529, Why.OVERLOADED),
        ("server_error", "API Error: 500 Internal server error.", 500, Why.OVERLOADED),
        ("server_error", "API Error: Connection dropped (ECONNRESET).", None, Why.TRANSPORT),
        ("server_error", "Request timed out.", None, Why.TRANSPORT),
        ("server_error", "API Error: words never seen before", None, Why.TRANSPORT),
        ("model_not_found", "There's an issue with the selected model (x).", 404, Why.BAD_MODEL),
        ("max_output_tokens", "API Error: Claude's response exceeded the 32000 output token maximum.", None, Why.TRUNCATED),
        ("invalid_request", "Prompt is too long · the request is ~200001 tokens", 400, Why.CONTEXT),
        ("invalid_request", "API Error: The model has reached its context window limit.", None, Why.CONTEXT),
        ("invalid_request", "API Error: 400 tools.0.name: too long", 400, Why.INTERNAL),
        ("unknown", "API Error: unable to get local issuer certificate", None, Why.TRANSPORT),
        ("", "Claude AI usage limit reached|1754000000", None, None),
        ("", "5-hour limit reached ∙ resets 3pm", None, None),
        ("", "something entirely new", None, Why.INTERNAL),
    ],
)  # fmt: skip
def test_an_error_means_one_thing(category: str, message: str, status: int | None, why: Why | None) -> None:
    assert classify(message, category=category, status=status) is why


def test_a_refusal_is_a_refusal_whatever_its_category() -> None:
    assert classify("API Error: Sonnet can't help with this.", category="invalid_request", refused=True) is Why.REFUSED


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("You've hit your 5-hour limit · resets 6:05pm (UTC)", timedelta(hours=6, minutes=5)),
        ("You've hit your weekly limit · resets Mar 4, 4:05pm (UTC)", timedelta(days=3, hours=4, minutes=5)),
        ("You've hit your weekly limit · resets Jan 2, 2027, 12pm (UTC)", timedelta(days=307)),
        ("You've hit your Opus limit · resets 3pm (Europe/Rome) · progress saved", timedelta(hours=2)),
        ("You've hit your session limit · resets 5am (America/New_York)", timedelta(hours=22)),
        ("Claude usage limit reached. Your limit will reset at 3pm (America/New_York).", timedelta(hours=8)),
        ("5-hour limit reached ∙ resets 3pm", timedelta(hours=3)),
        ("weekly limit reached ∙ resets Mar 2 at 9:30am", timedelta(hours=21, minutes=30)),
        ("You've hit your 5-hour limit · resets 12pm (UTC)", timedelta(seconds=5)),
        ("You've hit your 5-hour limit · resets 11am (UTC)", timedelta(hours=23)),
        ("You've hit your weekly limit · resets Jan 1, 12pm (UTC)", timedelta(days=306)),
        ("You've hit your fast limit · resets in 2h 5m", timedelta(hours=2, minutes=5)),
        ("Rate limited. Please try again in 30 seconds.", timedelta(seconds=30)),
        ("Claude AI usage limit reached|1772370000", timedelta(hours=1)),
        ("Claude AI usage limit reached|1772370000000", timedelta(hours=1)),
    ],
)
def test_c62_the_end_of_a_limit_is_read_from_every_form(
    text: str, ahead: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert until(text, NOW) == NOW + ahead


@pytest.mark.parametrize("text", ["Request rejected (429)", "resets Feb 30, 3pm (UTC)", "resets 3pm (Not/AZone)"])
def test_an_end_that_cannot_be_read_is_unknown_or_local(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert until(text, NOW) == (NOW + timedelta(hours=3) if "Zone" in text else None)
