"""Jinja for the screens: autoescaped, strict, with the few filters that templates need."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined
from markupsafe import Markup

from beadmill.domain.size import said
from beadmill.web.pages import markup, words
from beadmill.web.pages.assets import address

TEMPLATES = Path(__file__).parents[1] / "templates"


class Missing(StrictUndefined):
    """A name nobody passed is a mistake of ours; a key that free-form JSON (details, diagnostics) has not is just empty."""

    def __new__(cls, hint: str | None = None, obj: Any = None, *args: Any, **more: Any) -> Any:
        return Undefined(hint, obj, *args, **more) if isinstance(obj, Mapping) else super().__new__(cls)


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=Missing,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(_=words._, static=address, say=words.say, words=words, event_words=words.event)
    made.tests["within"] = lambda name, item: name == item or name.startswith(f"{item}.")
    made.filters.update(
        when=when,
        money=money,
        cost=cost,
        turns=turns,
        tokens=tokens,
        lasted=lasted,
        bytes=said,
        markdown=markup.markdown,
        code=markup.code,
        diff=markup.diff,
        part=part,
        who=who,
        short=lambda sha: str(sha or "")[:12],
        command=command,
    )
    return made


def when(stamp: str | None) -> Markup:
    """Relative on the screen, exact on hover; a small script keeps it fresh."""
    if not stamp:
        return Markup("–")
    at = datetime.fromisoformat(stamp)
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, ago(at, datetime.now(UTC)))


def ago(at: datetime, now: datetime) -> str:
    seconds = (now - at).total_seconds()
    ahead, seconds = seconds < 0, abs(seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            text = f"{int(seconds // size)} {unit}"
            return f"in {text}" if ahead else f"{text} ago"
    return "now" if seconds < 5 else (f"in {int(seconds)} s" if ahead else f"{int(seconds)} s ago")


def money(usd: float | None) -> str:
    """None is not zero: nothing was priced."""
    if usd is None:
        return words._("not priced")
    return f"${usd:.2f}" if usd >= 0.01 or usd == 0 else "<$0.01"


def turns(count: int) -> str:
    return words._("1 unpriced turn") if count == 1 else words._("{count} unpriced turns").format(count=count)


def cost(spend: Any) -> str:
    """Money of a Spend; turns without a price are told beside it."""
    told = turns(spend.unpriced) if spend.unpriced else ""
    return " + ".join(filter(None, (money(spend.cost_usd) if spend.cost_usd is not None else "", told))) or money(None)


def tokens(count: int) -> str:
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"


def lasted(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def part(text: object) -> str:
    """One segment, or an id with slashes, of an address."""
    return quote(str(text), safe="/")


def who(actor: str) -> str:
    """``user:owner`` as people say it."""
    kind, _, name = actor.partition(":")
    return name if kind in ("user", "seat") else {"system": "Beadmill", "timeout": "nobody in time"}.get(kind, actor)


def command(spec: Any) -> str:
    """A CommandSpec in JSON, or a plain line, as one line."""
    if not isinstance(spec, dict):
        return str(spec)
    if spec.get("mode") == "shell":
        return str(spec.get("script", ""))
    return " ".join([str(spec.get("program", "")), *map(str, spec.get("args", ()))])
