"""OpenCode's server-sent events (1.18) → events and an end. Sans I/O, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from beadmill.agents._failures import BY_STATUS, continuable
from beadmill.agents._lines import OUTPUT, event
from beadmill.agents.opencode_home import STRUCTURED
from beadmill.domain.ended import Asked, Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

SHELL: Final = ("bash", "shell")
_BY_NAME: Final = {
    "ProviderAuthError": Why.AUTH,
    "ContextOverflowError": Why.CONTEXT,
    "MessageOutputLengthError": Why.TRUNCATED,
    "ProviderModelNotFoundError": Why.BAD_MODEL,
}
_QUOTA = re.compile(r"quota|billing|credit|spend(?:ing)? (?:cap|limit)|payment", re.IGNORECASE)
_LIMIT = re.compile(r"usage.?limit|rate.?limit|too many requests|limit reached", re.IGNORECASE)
_BY_TEXT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (r"context.(?:window|length)|too large to compact|too many tokens|prompt is too long", Why.CONTEXT),
        (r"content.policy|usage policy|content.filter|safety|flagged", Why.REFUSED),
        (r"model.?not.?found|\bmodel\b.{0,120}(?:does not exist|not found|not supported|no access)", Why.BAD_MODEL),
        (r"api.?key|unauthori[sz]ed|not (?:logged|signed) in|authentication|oauth", Why.AUTH),
        (r"overloaded|unavailable|at capacity|bad gateway|high demand", Why.OVERLOADED),
        (
            r"connection|socket|network|fetch failed|unable to connect|timed? ?out|terminated|JSON parsing|stream",
            Why.TRANSPORT,
        ),
    )
)
_FINISH: Final = {"length": Why.TRUNCATED, "content-filter": Why.REFUSED}


@dataclass(frozen=True, slots=True)
class Totals:
    """What a conversation has used, as the CLI adds it up. ``input`` excludes what was cached, ``output`` reasoning."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float = 0.0

    @classmethod
    def read(cls, info: Mapping[str, Json]) -> Totals:
        tokens = info.get("tokens") or {}
        cache = tokens.get("cache") or {}
        return cls(
            int(tokens.get("input") or 0) + int(cache.get("write") or 0),
            int(cache.get("read") or 0),
            int(tokens.get("output") or 0),
            int(tokens.get("reasoning") or 0),
            float(info.get("cost") or 0),
        )

    def since(self, before: Totals) -> Usage:
        """The house's ``output`` includes reasoning. A model without prices costs 0, which says nothing."""
        cost = self.cost - before.cost
        return Usage(
            max(self.input - before.input, 0),
            max(self.cached - before.cached, 0),
            max(self.output + self.reasoning - before.output - before.reasoning, 0),
            max(self.reasoning - before.reasoning, 0),
            round(cost, 9) if cost > 0 else None,
        )


@dataclass(frozen=True, slots=True)
class Retry:
    """OpenCode waits and asks its provider again by itself. ``at`` is when."""

    attempt: int
    message: str
    at: datetime


def classify(message: str, *, name: str = "", status: int = 0, detail: str = "") -> Why | None:
    """None = the provider's limit, which is not a failure. ``detail`` is what the provider wrote beside the message."""
    text = f"{message} {detail}"
    if name in _BY_NAME:
        return _BY_NAME[name]
    if _QUOTA.search(text):  # a used-up quota also speaks of limits
        return Why.QUOTA
    if status == 429 or _LIMIT.search(text):
        return None
    found = next((why for pattern, why in _BY_TEXT if pattern.search(text)), None)
    if status in BY_STATUS and found is not Why.BAD_MODEL:
        return BY_STATUS[status]
    return found or (Why.OVERLOADED if status >= 500 else Why.INTERNAL)


class OpenCodeStream:
    """One turn: ``feed`` events of the server in order, ``end`` with the newest message once the turn is over."""

    def __init__(self, session: str, *, conversation: str, message: str) -> None:
        self.ref = SessionRef(session, conversation)
        self._message = message
        self.begun = False  # our prompt is at work: an idle conversation before that says nothing
        self.idle = False
        self.question: Mapping[str, Json] | None = None
        self.permissions: list[str] = []  # asked for, and not yet answered
        self.retry: Retry | None = None
        self._error: Mapping[str, Json] = {}
        self._mine: set[str] = set()  # messages of ours, whose parts are no news
        self._shown: set[tuple[str, str]] = set()
        self._open: dict[str, tuple[EventKind, str]] = {}  # parts that are still being said, oldest first
        self._kinds: Mapping[str, Callable[[Mapping[str, Json]], list[AgentEvent]]] = {
            "message.updated": self._updated,
            "message.part.updated": self._part,
            "message.part.delta": self._delta,
            "session.status": self._status,
            "session.idle": self._idle,
            "session.error": self._failed,
            "question.asked": self._asked,
            "permission.asked": self._permission,
        }

    def feed(self, data: Json) -> list[AgentEvent]:
        """What is not about this conversation, and what nobody knows, is passed by."""
        handle = self._kinds.get(str(data.get("type"))) if self.about(data) else None
        return [] if handle is None else handle(data["properties"])

    def about(self, data: Json) -> bool:
        """Is this event about our conversation?"""
        return isinstance(data, dict) and _dict(data.get("properties")).get("sessionID") == self.ref.conversation

    # --- events

    def _updated(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        info = _dict(about.get("info"))
        if info.get("role") == "user":
            self._mine.add(str(info.get("id")))
            self.begun = self.begun or info.get("id") == self._message
        return []

    def _part(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        part = _dict(about.get("part"))
        if part.get("messageID") in self._mine:
            return []
        match part.get("type"):
            case "text" | "reasoning" as kind:
                shown = EventKind.TEXT if kind == "text" else EventKind.THINKING
                self._open[str(part.get("id"))] = (shown, str(part.get("text") or ""))
                return self._said(str(part.get("id"))) if _dict(part.get("time")).get("end") else []
            case "tool" if part.get("tool") != STRUCTURED:
                return self._tool(part)
            case _:
                return []

    def _delta(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        part = str(about.get("partID"))
        if about.get("field") == "text" and part in self._open:
            kind, text = self._open[part]
            self._open[part] = (kind, text + str(about.get("delta") or ""))
        return []

    def _said(self, *parts: str) -> list[AgentEvent]:
        """Each once. OpenCode ends a text only when its message ends, which may be behind the tools it announced."""
        made = []
        for part in parts:
            kind, text = self._open.pop(part, (EventKind.TEXT, ""))
            if text and self._first({"id": part}, "said"):
                made.append(event(kind, text=text))
        return made

    def _first(self, part: Mapping[str, Json], what: str) -> bool:
        key = (str(part.get("id")), what)
        fresh = key not in self._shown
        self._shown.add(key)
        return fresh

    def _tool(self, part: Mapping[str, Json]) -> list[AgentEvent]:
        state = _dict(part.get("state"))
        made: list[AgentEvent] = self._said(*self._open)
        status = state.get("status")
        if status in ("running", "completed", "error") and self._first(part, "begun"):
            made.append(event(EventKind.TOOL, id=part.get("callID"), name=_name(part), input=_input(part, state)))
        if status in ("completed", "error") and self._first(part, "done"):
            made.append(_tool_done(part, state))
        return made

    def _status(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        status = _dict(about.get("status"))
        if status.get("type") == "busy":
            self.begun = True
        if status.get("type") != "retry":
            return []
        self.begun = True
        message = str(status.get("message") or "")
        at = datetime.fromtimestamp(float(status.get("next") or 0) / 1000, UTC)
        self.retry = Retry(int(status.get("attempt") or 0), message, at)
        return [event(EventKind.RETRY, attempt=self.retry.attempt, message=message)]

    def _idle(self, _about: Mapping[str, Json]) -> list[AgentEvent]:
        self.idle = self.begun
        return []

    def _failed(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        error = _dict(about.get("error"))
        self.begun = True
        if error.get("name") == "MessageAbortedError":
            return []
        self._error = error
        return [event(EventKind.WARNING, message=_words(error))]

    def _asked(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        self.question = about
        return []

    def _permission(self, about: Mapping[str, Json]) -> list[AgentEvent]:
        self.permissions.append(str(about.get("id")))
        what = f"{about.get('permission')} {about.get('patterns') or ''}".strip()
        return [event(EventKind.WARNING, message=f"not allowed: {what}")]

    # --- ends

    def end(self, newest: Json, usage: Usage) -> Ended:
        """``newest`` is the conversation's last message, {info, parts}."""
        message = _dict(newest)
        info = _dict(message.get("info"))
        if info.get("role") != "assistant":
            info = {}
        error = _dict(info.get("error")) or (self._error if not info else {})
        text = _text(message)
        if error and not (error.get("name") == "StructuredOutputError" and text):
            return self._broken(error, usage)
        if info.get("structured") is not None:
            data = info["structured"]
            return Replied(session=self.ref, usage=usage, text=text or json.dumps(data, ensure_ascii=False), data=data)
        finish = str(info.get("finish") or "")
        if finish in _FINISH:
            why = _FINISH[finish]
            return self.failed(why, f"the answer ended early ({finish}): {text[-500:]}", usage)
        if not text:
            return self.failed(Why.NO_RESULT, "OpenCode ended its turn without a word", usage)
        return Replied(session=self.ref, usage=usage, text=text)

    def _broken(self, error: Mapping[str, Json], usage: Usage) -> Ended:
        data = _dict(error.get("data"))
        known = data.get("statusCode")
        status = known if isinstance(known, int) else 0
        name, detail = str(error.get("name") or ""), str(data.get("responseBody") or "")
        why = classify(_words(error), name=name, status=status, detail=detail)
        return self.failed(why, _words(error), usage, status=status)

    def gave_up(self, retry: Retry, usage: Usage) -> Ended:
        """We end what OpenCode would retry for ever. Only what may pass is retried: overloaded, unless it says more."""
        why = classify(retry.message, status=503)
        return self.failed(why, retry.message, usage, until=retry.at)

    def failed(
        self, why: Why | None, message: str, usage: Usage, *, until: datetime | None = None, status: int = 0
    ) -> Ended:
        if why is None:
            return Limited(session=self.ref, usage=usage, until=until, message=message)
        go_on = continuable(why, status)
        return Failed(session=self.ref, usage=usage, why=why, message=message, continuable=go_on)

    def asks(self, usage: Usage) -> Asked:
        """All questions of one call as one; options only when it is a single one."""
        rows = [_dict(q) for q in (self.question or {}).get("questions") or []]
        text = "\n\n".join(str(q.get("question") or "") for q in rows)
        labels = [str(_dict(o).get("label") or "") for q in rows for o in q.get("options") or []]
        options = tuple(filter(None, labels)) if len(rows) == 1 else ()
        return Asked(session=self.ref, usage=usage, question=text or "The agent asks, without a word", options=options)


def finished(newest: Json, message: str) -> bool:
    """Is this message the whole answer to our ``message``?"""
    info = _dict(_dict(newest).get("info"))
    return (
        info.get("role") == "assistant"
        and info.get("parentID") == message
        and bool(_dict(info.get("time")).get("completed"))
        and not info.get("error")
        and (info.get("structured") is not None or info.get("finish") not in (None, "tool-calls", "unknown"))
    )


def _dict(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _words(error: Mapping[str, Json]) -> str:
    data = _dict(error.get("data"))
    model = f"model not found: {data.get('providerID')}/{data.get('modelID')}" if data.get("modelID") else ""
    return str(data.get("message") or model or error.get("name") or "an error without a word")


def _text(message: Mapping[str, Json]) -> str:
    parts = [_dict(part) for part in message.get("parts") or []]
    return "\n\n".join(str(p["text"]) for p in parts if p.get("type") == "text" and p.get("text"))


def _name(part: Mapping[str, Json]) -> str:
    tool = str(part.get("tool"))
    return "shell" if tool in SHELL else tool


def _input(part: Mapping[str, Json], state: Mapping[str, Json]) -> Json:
    given = _dict(state.get("input"))
    return given.get("command", given) if part.get("tool") in SHELL else given


def _tool_done(part: Mapping[str, Json], state: Mapping[str, Json]) -> AgentEvent:
    code = _dict(state.get("metadata")).get("exit")
    ok = state.get("status") == "completed" and code in (0, None)
    output = str(state.get("output") or state.get("error") or "")
    return event(
        EventKind.TOOL_DONE, id=part.get("callID"), name=_name(part), ok=ok, output=output[-OUTPUT:], exit=code
    )
