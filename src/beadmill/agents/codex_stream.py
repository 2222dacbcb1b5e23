"""Codex's JSON lines (0.171) → events and an end. Sans I/O, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from beadmill.agents import _strict
from beadmill.agents._failures import BY_STATUS, continuable
from beadmill.agents._lines import OUTPUT, event, parse, unreadable
from beadmill.domain.ended import Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

_RETRY = re.compile(r"Reconnecting\.\.\. (\d+)/\d+ ?\(?(.*?)\)?$", re.DOTALL)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_LIMIT = re.compile(r"usage limit|rate.?limit|too many requests|status:? 429", re.IGNORECASE)
_BY_TEXT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (r"quota exceeded|insufficient.quota|billing|out of credits|spend(?:ing)? (?:cap|limit)", Why.QUOTA),
        (r"context.window|context.length|ran out of room|too many tokens", Why.CONTEXT),
        (r"max.output.tokens|response incomplete|incomplete response", Why.TRUNCATED),
        (r"not (?:logged|signed) in|unauthorized|api.key|sign in again|log ?in again|refresh.token|missing environment variable", Why.AUTH),
        (r"flagged|usage policy|content policy|safety|invalid.prompt|cyber", Why.REFUSED),
        (r"model\b.{0,120}(?:does not exist|not found|not supported|not available|no access)|model.not.found", Why.BAD_MODEL),
        (r"at capacity|high demand|overloaded|server.error|internal error|service unavailable|bad gateway", Why.OVERLOADED),
        (r"stream (?:disconnected|closed)|transport|network|connection|timed? ?out|error sending request|decoding|dns|tls", Why.TRANSPORT),
    )
)  # fmt: skip
_AGAIN = re.compile(r"[Tt]ry again at (?:([A-Z][a-z]{2,8} \d{1,2})(?:st|nd|rd|th)?, (\d{4}),? )?(\d{1,2}:\d{2} [AP]M)")
_AGAIN_IN = re.compile(r"[Tt]ry again in ((?:\d+ (?:day|hour|minute|second)s?,? ?(?:and )?)+)")
_UNITS: Final = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


@dataclass(frozen=True, slots=True)
class Totals:
    """Usage of a whole thread, as the CLI reports it: ``input`` includes cached tokens."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @classmethod
    def read(cls, usage: Mapping[str, Json]) -> Totals:
        return cls(
            int(usage.get("input_tokens") or 0),
            int(usage.get("cached_input_tokens") or 0),
            int(usage.get("output_tokens") or 0),
            int(usage.get("reasoning_output_tokens") or 0),
        )

    def since(self, before: Totals) -> Usage:
        """This turn alone. The house's ``input`` excludes cache reads; a thread that was reset counts from zero."""
        if self.input < before.input or self.output < before.output:
            before = Totals()
        cached = self.cached - before.cached
        return Usage(
            self.input - before.input - cached, cached, self.output - before.output, self.reasoning - before.reasoning
        )


def classify(message: str) -> Why | None:
    """None = the provider's limit, which is not a failure."""
    for pattern, why in _BY_TEXT[:1]:  # a used-up quota also speaks of limits
        if pattern.search(message):
            return why
    if _LIMIT.search(message):
        return None
    code = status_of(message)
    if code:
        return BY_STATUS.get(code) or _by_text(message) or (Why.OVERLOADED if code >= 500 else Why.INTERNAL)
    return _by_text(message) or Why.INTERNAL


def status_of(message: str) -> int:
    """The provider's, which stands in the message; 0 = none."""
    found = _STATUS.search(message)
    return int(found[1]) if found else 0


def _by_text(message: str) -> Why | None:
    return next((why for pattern, why in _BY_TEXT if pattern.search(message)), None)


def until(message: str, now: datetime) -> datetime | None:
    """When the limit ends, from ``Try again at 3:04 PM`` (local time), ``at Dec 5th, 2026 3:04 PM`` or ``in 2 hours``."""
    length = _AGAIN_IN.search(message)
    if length:
        parts = re.findall(r"(\d+) (day|hour|minute|second)", length[1])
        return now + timedelta(seconds=sum(int(n) * _UNITS[unit] for n, unit in parts))
    found = _AGAIN.search(message)
    if not found:
        return None
    day, year, clock = found.groups()
    here = now.astimezone()
    if day:
        at = datetime.strptime(f"{day[:3]} {day.split()[1]} {year} {clock}", "%b %d %Y %I:%M %p").astimezone(
            here.tzinfo
        )
        return at.astimezone(UTC)
    time = datetime.strptime(clock, "%I:%M %p").replace(tzinfo=UTC)
    at = here.replace(hour=time.hour, minute=time.minute, second=0, microsecond=0)
    # Minutes are all it says: the current minute means soon, an earlier one tomorrow.
    if at <= here - timedelta(minutes=1):
        at += timedelta(days=1)
    return max(at.astimezone(UTC), now + timedelta(seconds=5))


class CodexStream:
    """``schema`` is the one the caller wants, ``before`` the thread's totals when the turn began, ``model`` what Codex
    was told to use: it does not say it itself."""

    def __init__(self, session: str, *, before: Totals | None = None, schema: Json = None, model: str = "") -> None:
        self._session = session
        self._before = before or Totals()
        self._schema, self._model = schema, model
        self.thread = ""
        self.totals: Totals | None = None
        self._usage = Usage()
        self._text: str | None = None
        self._error = ""
        self._failed = False
        self._kinds: Mapping[str, Callable[[Mapping[str, Json]], list[AgentEvent]]] = {
            "thread.started": self._started,
            "item.started": self._item_started,
            "item.completed": self._item_done,
            "turn.completed": self._completed,
            "turn.failed": self._turn_failed,
            "error": self._warned,
        }

    @property
    def done(self) -> bool:
        return self.totals is not None or self._failed

    def feed(self, line: bytes) -> list[AgentEvent]:
        data = parse(line)
        if data is None:
            return unreadable(line)
        handle = self._kinds.get(data["type"])
        return handle(data) if handle else []

    def end(self, code: int, stderr: str) -> Ended:
        session = SessionRef(self._session, self.thread)
        if self.totals is not None and self._text is not None and not self._failed:
            return Replied(session=session, usage=self._usage, text=self._text, data=self._data())
        message = self._error or stderr.strip()
        if not self._error:
            message = f"codex exited with {code} and no result: {message or 'it said nothing'}"
        why = classify(message) if message and (self._failed or code) else Why.NO_RESULT
        if why is None:
            return Limited(session=session, usage=self._usage, until=until(message, datetime.now(UTC)), message=message)
        if why is Why.INTERNAL and not self._failed:
            why = Why.NO_RESULT
        go_on = continuable(why, status_of(message))
        return Failed(session=session, usage=self._usage, why=why, message=message, continuable=go_on)

    def _data(self) -> Json:
        if self._schema is None:
            return None
        try:
            return _strict.undo(self._schema, json.loads(self._text or ""))
        except ValueError:
            return None

    def _started(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        self.thread = str(data.get("thread_id") or "")
        return [event(EventKind.STARTED, conversation=self.thread)]

    def _item_started(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        item = _item(data)
        kind = item.get("type")
        if kind in ("agent_message", "reasoning", "error", "todo_list"):
            return []
        return [event(EventKind.TOOL, id=item.get("id"), name=_name(item), input=_input(item))]

    def _item_done(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        item = _item(data)
        text = str(item.get("text") or item.get("message") or "")
        match item.get("type"):
            case "agent_message":
                self._text = text
                return [event(EventKind.TEXT, text=text)]
            case "reasoning":
                return [event(EventKind.THINKING, text=text)]
            case "error":
                return [event(EventKind.WARNING, message=text)]
            case "todo_list":
                return []
            case _:
                return [_tool_done(item)]

    def _completed(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        self.totals = Totals.read(data.get("usage") or {})
        self._usage = used = replace(self.totals.since(self._before), model=self._model)
        parts = {"input": used.input, "cached": used.cached, "output": used.output, "reasoning": used.reasoning}
        return [event(EventKind.USAGE, **parts, model=self._model)]

    def _turn_failed(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        self._failed = True
        error = data.get("error")
        self._error = str(error.get("message") if isinstance(error, dict) else error) or self._error
        return [event(EventKind.WARNING, message=self._error)]

    def _warned(self, data: Mapping[str, Json]) -> list[AgentEvent]:
        message = str(data.get("message") or "")
        retry = _RETRY.match(message)
        if retry:
            return [event(EventKind.RETRY, attempt=int(retry[1]), message=retry[2])]
        self._error = message  # turn.failed repeats it; a codex that dies in between does not
        return []


def _item(data: Mapping[str, Json]) -> Mapping[str, Json]:
    item = data.get("item")
    return item if isinstance(item, dict) else {}


def _name(item: Mapping[str, Json]) -> str:
    match item.get("type"):
        case "command_execution":
            return "shell"
        case "file_change":
            return "edit"
        case "mcp_tool_call":
            return f"{item.get('server')}.{item.get('tool')}"
        case kind:
            return str(kind)


def _input(item: Mapping[str, Json]) -> Json:
    wanted = ("command", "changes", "arguments", "query", "prompt")
    return next((item[key] for key in wanted if item.get(key)), None)


def _tool_done(item: Mapping[str, Json]) -> AgentEvent:
    output = item.get("aggregated_output") or item.get("error") or item.get("result") or ""
    text = output if isinstance(output, str) else json.dumps(output)
    return event(
        EventKind.TOOL_DONE,
        id=item.get("id"),
        name=_name(item),
        ok=item.get("status", "completed") == "completed" and item.get("exit_code") in (0, None),
        output=text[-OUTPUT:],
        exit=item.get("exit_code"),
    )
