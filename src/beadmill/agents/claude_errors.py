"""What Claude Code's errors mean, and when its limits end. Sans I/O, standard library only.

Its error messages carry a category; where that is too wide (``invalid_request``, ``server_error``) the status and the
words decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from beadmill.agents._failures import BY_STATUS
from beadmill.domain.ended import Why

_BY_CATEGORY: Final[Mapping[str, Why]] = {
    "authentication_failed": Why.AUTH,
    "oauth_org_not_allowed": Why.AUTH,
    "account_on_hold": Why.AUTH,
    "verification_required": Why.AUTH,
    "cloud_credential_error": Why.AUTH,
    "billing_error": Why.QUOTA,
    "overloaded": Why.OVERLOADED,
    "model_not_found": Why.BAD_MODEL,
    "max_output_tokens": Why.TRUNCATED,
}
_CREDIT = re.compile(
    r"credit balance|out of (?:usage credits|extra usage|usage)\b|requires usage credits|spend limit|usage limit is set to \$0"
    r"|seat type doesn't include|allocation has been disabled|service is disabled for your org|insufficient.quota|billing",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"rate.?limit|usage limit|too many requests|limit reached|\bresets?\b (?:at )?\S+|you've (?:hit|reached) your"
    r"|limiting requests|rejected \(429\)",
    re.IGNORECASE,
)
_BY_TEXT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (r"prompt is too long|context window|context limit|too many total text bytes|input length and `?max_tokens", Why.CONTEXT),
        (r"output token maximum|output token limit", Why.TRUNCATED),
        (r"can't help with this|legal/aup|usage policy|safeguards|content filtering|safety classifier", Why.REFUSED),
        (r"not logged in|/login|invalid api key|auth(?:entication)? token|authentication|oauth token|sign in again", Why.AUTH),
        (r"selected model|model\b.{0,80}(?:not found|may not exist|not available|not supported)|invalid model", Why.BAD_MODEL),
        (r"overloaded|high load|high demand|internal server error|server-side issue|bad gateway|service unavailable", Why.OVERLOADED),
        (r"timed? ?out|connection|ECONN|ENOTFOUND|EAI_AGAIN|socket|network|stream ended|stream event|certificate|\bTLS\b|fetch failed|no data arrived", Why.TRANSPORT),
    )
)  # fmt: skip


def classify(message: str, *, category: str = "", status: int | None = None, refused: bool = False) -> Why | None:
    """None = the provider's limit, which is not a failure."""
    if refused:
        return Why.REFUSED
    limited = category == "rate_limit" or status == 429 or (not category and _LIMIT.search(message) is not None)
    # A used-up balance also speaks of limits; with a reset it is one.
    if _CREDIT.search(message) and not (limited and _RESETS.search(message)):
        return Why.QUOTA
    if limited:
        return None
    if category in _BY_CATEGORY:
        return _BY_CATEGORY[category]
    text = next((why for pattern, why in _BY_TEXT if pattern.search(message)), None)
    if status is not None:
        return BY_STATUS.get(status) or (Why.OVERLOADED if status >= 500 else text or Why.INTERNAL)
    return text or (Why.TRANSPORT if category == "server_error" else Why.INTERNAL)


# --- when a limit ends

_EPOCH = re.compile(r"limit reached\|(\d{10,13})")
_RESETS = re.compile(
    r"\breset(?:s|ting)? (?:at |on )?(?:([A-Z][a-z]{2,8}) (\d{1,2}),? (?:(\d{4}),? )?(?:at )?)?"
    r"(\d{1,2})(?::(\d{2}))? ?([ap]m)\b(?: \(([A-Za-z0-9_+\-/]+)\))?",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?:try again|resets?|retry)(?: after)? in ((?:\d+ ?(?:d|h|m|s)[a-z]*[, ]*(?:and )?)+)", re.IGNORECASE
)
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def until(message: str, now: datetime) -> datetime | None:
    """When the limit ends: ``…|<epoch>``, ``resets 3pm (Europe/Rome)``, ``resets Dec 3, 4:50pm``, ``resets in 2h 5m``."""
    epoch = _EPOCH.search(message)
    if epoch:
        return datetime.fromtimestamp(int(epoch[1][:10]), UTC)
    found = _RESETS.search(message)
    if found:
        return _at(found, now)
    length = _LENGTH.search(message)
    if length:
        parts = re.findall(r"(\d+) ?([dhms])", length[1].lower())
        return now + timedelta(seconds=sum(int(n) * _UNITS[unit] for n, unit in parts))
    return None


def _at(found: re.Match[str], now: datetime) -> datetime | None:
    month, day, year, hour, minute, half, zone = found.groups()
    here = now.astimezone(_zone(zone))
    try:
        hours = int(hour) % 12 + 12 * (half.lower() == "pm")
        at = here.replace(hour=hours, minute=int(minute or 0), second=0, microsecond=0)
        if month:
            number = _MONTHS.index(month[:3].lower()) + 1
            at = at.replace(year=int(year or here.year), month=number, day=int(day))
    except ValueError:
        return None
    # It names no more than it must: an hour that is past is tomorrow's, a day that is past is next year's.
    if at <= here - timedelta(minutes=1):
        at = at + timedelta(days=1) if not month else at if year else at.replace(year=at.year + 1)
    return max(at.astimezone(UTC), now + timedelta(seconds=5))


def _zone(name: str | None) -> tzinfo | None:
    """None = the machine's own, which is what the CLI means when it names none."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, LookupError):
        return None
