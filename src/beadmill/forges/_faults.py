"""What an unwanted answer of a hosting service means, in words a person can act on: each class with its own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beadmill.errors import BeadmillError, Conflict, NotFound, Refused, Unavailable

KEPT = "What was pushed stays pushed; the step begins again where it stopped."
LIMIT_WORDS = ("rate limit", "abuse detection", "too many requests")


@dataclass(frozen=True, slots=True)
class Answer:
    """``headers`` have lower-case names. ``body`` is the parsed JSON, text when it is none, None when empty."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def said(self) -> str:
        """The service's own words, in one line."""
        if not isinstance(self.body, Mapping):
            return " ".join(str(self.body or "").split())[:300] if "<" not in str(self.body or "") else ""
        words = [_flat(self.body.get(name)) for name in ("message", "error", "error_description", "errors")]
        return "; ".join(dict.fromkeys(word for word in words if word))[:600]


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = value.get("message")
        return str(inner) if inner else "; ".join(f"{k}: {_flat(v)}" for k, v in value.items())
    if isinstance(value, list):
        return "; ".join(_flat(one) for one in value)
    return "" if value is None else str(value)


def limited(answer: Answer) -> bool:
    """A limit, not a missing right. GitHub says both with 403."""
    if answer.status == 429:
        return True
    if answer.status != 403:
        return False
    left = answer.headers.get("x-ratelimit-remaining")
    return left == "0" or "retry-after" in answer.headers or any(word in answer.said.lower() for word in LIMIT_WORDS)


def wait_of(answer: Answer, *, now: float) -> float:
    """Seconds until the service wants to be asked again."""
    for name in ("retry-after", "x-ratelimit-reset", "ratelimit-reset"):
        value = answer.headers.get(name, "")
        if value.replace(".", "", 1).isdigit():
            return float(value) if name == "retry-after" else max(float(value) - now, 1.0)
    return 60.0


def of(answer: Answer, *, host: str, what: str, now: float) -> BeadmillError:
    """The error for an answer that its caller did not want. ``what`` is said as "while <what>"."""
    if limited(answer):
        return rate_limited(answer, host=host, now=now)
    if answer.status == 401:
        return unauthorized(answer, host=host, what=what)
    if answer.status == 403:
        return forbidden(answer, host=host, what=what)
    if answer.status == 404:
        return NotFound(
            f"{host} does not know it: while {what}",
            code="FORGE_NOT_FOUND",
            details={"host": host},
            kept=KEPT,
            next="Check the address of the repository, and that the token may see it.",
        )
    if answer.status >= 500:
        return unavailable(host, f"it answered {answer.status}", what=what)
    kind = Conflict if answer.status in (405, 409, 412) else Refused
    return kind(
        f"{host} refused it while {what}: {answer.said or f'status {answer.status}'}",
        code="FORGE_REFUSED",
        details={"host": host, "status": answer.status},
        kept=KEPT,
        next="Read its words above, satisfy them, then retry.",
    )


def rate_limited(answer: Answer, *, host: str, now: float) -> Unavailable:
    seconds = wait_of(answer, now=now)
    until = datetime.fromtimestamp(now + seconds, UTC).isoformat(timespec="seconds")
    secondary = answer.status == 403 and answer.headers.get("x-ratelimit-remaining") != "0"
    which = "for too many requests at once" if secondary else "until its limit starts anew"
    return Unavailable(
        f"{host} lets this token wait {which}: until {until}",
        code="FORGE_RATE_LIMITED",
        details={"host": host, "until": until, "seconds": round(seconds), "secondary": secondary},
        kept=KEPT,
        next=f"Retry after {until}, or use a token with a higher limit.",
    )


def unauthorized(answer: Answer, *, host: str, what: str) -> Unavailable:
    return Unavailable(
        f"{host} did not accept the token while {what} ({answer.said or 'unauthorized'}): it is wrong, expired or revoked",
        code="FORGE_AUTH",
        details={"host": host},
        kept=KEPT,
        next=f"Make a new token at {host} and give it to Beadmill (docs/forges.md), then retry.",
    )


def forbidden(answer: Answer, *, host: str, what: str) -> Refused:
    wanted = answer.headers.get("x-accepted-oauth-scopes", "")
    has = answer.headers.get("x-oauth-scopes")
    scopes = f" (it has the scopes {has or 'none'}, wanted is one of {wanted})" if has is not None and wanted else ""
    return Refused(
        f"the token may not do this at {host}, while {what}{scopes}: {answer.said or 'forbidden'}",
        code="FORGE_SCOPE",
        details={"host": host, "scopes": has or "", "wanted": wanted},
        kept=KEPT,
        next="Give the token the missing right (docs/forges.md names them), then retry.",
    )


def unavailable(host: str, why: str, *, what: str) -> Unavailable:
    return Unavailable(
        f"{host} cannot be asked while {what}: {why}",
        code="FORGE_UNAVAILABLE",
        details={"host": host},
        kept=KEPT,
        next="Check the network and the service's status page, then retry.",
    )


def no_token(host: str, variable: str) -> Unavailable:
    return Unavailable(
        f"there is no token for {host}",
        code="FORGE_NO_TOKEN",
        details={"host": host, "variable": variable},
        kept=KEPT,
        next=f"Set {variable} for the daemon, or put the token into forge-tokens.toml (docs/forges.md), then retry.",
    )
