"""Messages of the Agent Client Protocol → events and an end. Sans I/O, standard library only.

Every message passes here in both directions, in order: ``sent`` what we say, ``feed`` a line of the agent. What an
agent repeats of an earlier turn when it loads a conversation is passed by.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from beadmill.agents import acp_usage
from beadmill.agents._failures import continuable
from beadmill.agents._lines import OUTPUT, event, unreadable
from beadmill.agents.acp_cli import Cli
from beadmill.agents.acp_tools import Tools
from beadmill.agents.acp_usage import Totals
from beadmill.agents.codex_stream import classify, status_of, until
from beadmill.domain.ended import Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind

AUTH_REQUIRED: Final = -32000
_OPENS: Final = ("session/new", "session/load", "session/resume")
_HTTP = re.compile(r"\bHTTP (\d{3})\b|(?:^|Last error: )([45]\d\d)\b")
_MORE: Final = (  # words of these CLIs beyond those that all share
    (re.compile(r"context exceeds|too large to compact|maximum context", re.IGNORECASE), Why.CONTEXT),
    (re.compile(r"stream chunk|JSON parsing failed", re.IGNORECASE), Why.TRANSPORT),
)
_RETRY = re.compile(r"\bretry", re.IGNORECASE)
_STOPS: Final[Mapping[str, tuple[Why, str]]] = {
    "max_tokens": (Why.TRUNCATED, "the model's answer was cut at its longest"),
    "max_turn_requests": (Why.STEPS, "the CLI's own limit of steps was reached"),
    "refusal": (Why.REFUSED, "the model refused"),
    "cancelled": (Why.NO_RESULT, "the turn was cancelled"),
}


class Broken(Exception):
    """The conversation cannot go on; the stream knows why."""


class AcpStream:
    """One turn. ``spent`` is what the conversation had cost before it, in US dollars, None = unknown; ``model`` what the
    CLI was told to use, "" = whatever it says itself."""

    def __init__(self, cli: Cli, session: str, *, spent: float | None = None, model: str = "") -> None:
        self._cli, self._session, self._model = cli, session, model
        self.spent = spent
        self._seen = Totals()  # of this process
        self.conversation = ""
        self.refused = False  # we said no to a call, and the model has not said a word since
        self._tools = Tools(cli.trailer)
        self._live = False
        self._asked: dict[Json, Mapping[str, Json]] = {}
        self._stop, self._error, self._auth = "", "", False
        self._text: str | None = None  # the last thing said behind the last tool
        self._part, self._pieces = "", 0  # a message or thought that is not complete
        self._part_of: tuple[EventKind, Json] = (EventKind.TEXT, None)
        self._said_in: Json = None  # the message of the last text
        self._cost = spent
        self._usage = Usage()
        self._about: Mapping[str, Json] = {}
        self._updates: Mapping[str, Callable[[Mapping[str, Json]], list[AgentEvent]]] = {
            "agent_message_chunk": lambda update: self._chunk(EventKind.TEXT, update),
            "agent_thought_chunk": lambda update: self._chunk(EventKind.THINKING, update),
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "usage_update": self._cost_so_far,
        }

    # --- both directions

    def sent(self, message: Mapping[str, Json]) -> list[AgentEvent]:
        method, params = message.get("method"), message.get("params") or {}
        if "id" in message and method:
            self._asked[message["id"]] = {"method": method, **params}
        if method == "session/prompt":
            self._live, self.refused, self._text, self._stop = True, False, None, ""
        return []

    @property
    def answered(self) -> bool:
        return bool(self._stop or self._error)

    def feed(self, line: bytes) -> list[AgentEvent]:
        message = read(line)
        if message is None:
            return unreadable(line)
        params = message.get("params") or {}
        match message.get("method"):
            case None:
                return self._answer(message)
            case "session/update" if self._live:
                return self._update(params.get("update") or {})
            case "session/request_permission":
                return [*self._flush(), *self._tools.told(params.get("toolCall") or {})]
            case _:
                return []

    def call(self, given: Mapping[str, Json]) -> Mapping[str, Json]:
        """A tool call with everything that was said of it, for a permission request that names only the id."""
        return self._tools.known(given)

    def refuse(self, title: str, access: str) -> list[AgentEvent]:
        self.refused, self._text = True, None
        return [event(EventKind.WARNING, message=f"not allowed with access {access!r}: {title}")]

    def give_up(self, message: str) -> None:
        """The turn cannot begin."""
        self._error = message

    # --- answers

    def _answer(self, message: Mapping[str, Json]) -> list[AgentEvent]:
        asked = self._asked.pop(message.get("id"), {})
        if "error" in message:
            return self._failed(message["error"])
        result = message.get("result") or {}
        match asked.get("method"):
            case "initialize":
                self._about = result.get("agentInfo") or {}
                return []
            case method if method in _OPENS:
                self.conversation = str(result.get("sessionId") or asked.get("sessionId") or "")
                version = str(self._about.get("version") or "")
                self._model = self._model or _current(result, "model")
                return [event(EventKind.STARTED, conversation=self.conversation, version=version)]
            case "session/prompt":
                return self._prompted(result)
            case _:
                return []

    def _failed(self, error: Json) -> list[AgentEvent]:
        self._error = _said(error)
        self._auth = isinstance(error, dict) and error.get("code") == AUTH_REQUIRED
        return [*self._flush(), event(EventKind.WARNING, message=self._error)]

    def _prompted(self, result: Mapping[str, Json]) -> list[AgentEvent]:
        self._stop = str(result.get("stopReason") or "")
        return [*self._flush(), *self._tools.rest(), *self._used(acp_usage.read(result.get("usage")))]

    def _used(self, told: Totals | None) -> list[AgentEvent]:
        """Books what came on top since the last answer of this process."""
        if self._cli.usage == "none":
            told = None
        now = told or Totals()
        news = now.since(self._seen) if self._cli.usage == "process" else now
        self._seen = now
        used = news.house(acp_usage.price(self._cost, self.spent) if self._cli.cost else None, self._model)
        self.spent = self._cost
        self._usage += used
        note = acp_usage.note(self._cli.usage, told)
        said = [event(EventKind.WARNING, message=note)] if note else []
        if told is None and used.cost_usd is None:
            return said
        return [*said, event(EventKind.USAGE, **{k: getattr(used, k) for k in _FIGURES})]

    # --- updates

    def _update(self, update: Mapping[str, Json]) -> list[AgentEvent]:
        handle = self._updates.get(str(update.get("sessionUpdate")))
        return handle(update) if handle else []

    def _chunk(self, kind: EventKind, update: Mapping[str, Json]) -> list[AgentEvent]:
        content = update.get("content")
        text = str(content.get("text") or "") if isinstance(content, dict) else ""
        of = (kind, update.get("messageId"))
        whole = self._flush() if of != self._part_of or len(self._part) > OUTPUT or self._apart(text) else []
        self._part_of, self._part, self._pieces = of, self._part + text, self._pieces + 1
        return whole

    def _apart(self, text: str) -> bool:
        """A word of the CLI itself stands alone, also where messages have no ids."""
        return self._by_cli(text) or (self._pieces == 1 and self._by_cli(self._part))

    def _by_cli(self, text: str) -> bool:
        return any(pattern and re.search(pattern, text) for pattern in (self._cli.noise, self._cli.error))

    def _flush(self) -> list[AgentEvent]:
        """The message or thought that was being said."""
        text, pieces, self._part, self._pieces = self._part, self._pieces, "", 0
        kind, of = self._part_of
        if not text:
            return []
        if kind is EventKind.THINKING:
            return [event(kind, text=text)]
        if pieces == 1 and self._by_cli(text):  # a model's words come in many pieces
            return self._spoken_by_cli(text)
        same = of is not None and of == self._said_in
        self._text = (self._text or "") + text if same else text
        self._said_in, self.refused = of, False
        return [event(EventKind.TEXT, text=text)]

    def _spoken_by_cli(self, text: str) -> list[AgentEvent]:
        error = re.search(self._cli.error, text) if self._cli.error else None
        if error:
            self._error = error[1]
            return [event(EventKind.WARNING, message=error[1])]
        noise = re.search(self._cli.noise, text)
        message = noise[1] if noise else text
        return [event(EventKind.RETRY if _RETRY.search(message) else EventKind.WARNING, message=message)]

    def _tool(self, update: Mapping[str, Json]) -> list[AgentEvent]:
        said = self._flush()
        self._text = None
        return [*said, *self._tools.update(update)]

    def _cost_so_far(self, update: Mapping[str, Json]) -> list[AgentEvent]:
        cost = acp_usage.cost(update)
        self._cost = self._cost if cost is None else cost
        return []

    # --- the end

    def end(self, code: int | None, stderr: str) -> Ended:
        """``code`` None = the agent still runs: it has answered the prompt."""
        session = SessionRef(self._session, self.conversation)
        if self._error:
            return self._because(self._error)
        if self._stop == "end_turn" and self._text and self._text.strip():
            return Replied(session=session, usage=self._usage, text=self._text)
        if self._stop == "end_turn" and self.refused:
            return self._fail(Why.NO_RESULT, f"{self._cli.name} kept to a call that its access does not allow")
        if self._stop == "end_turn":
            return self._fail(Why.NO_RESULT, f"{self._cli.name} ended its turn and said nothing")
        if self._stop:
            why, words = _STOPS.get(self._stop, (Why.INTERNAL, "an unknown reason to stop"))
            return self._fail(why, f"{words} ({self._stop})")
        said = stderr.strip() or "it said nothing"
        return self._fail(Why.NO_RESULT, f"{self._cli.name} exited with {code} and no result: {said}")

    def _because(self, message: str) -> Ended:
        why = Why.AUTH if self._auth else _why(message)
        if why is None:
            session, now = SessionRef(self._session, self.conversation), datetime.now(UTC)
            return Limited(session=session, usage=self._usage, until=until(message, now), message=message)
        if why is Why.AUTH and self._cli.sign_in:
            message = f"{message} · sign in: {self._cli.sign_in}"
        return self._fail(why, message)

    def _fail(self, why: Why, message: str) -> Failed:
        session = SessionRef(self._session, self.conversation)
        go_on = continuable(why, status_of(_plain(message)))
        return Failed(session=session, usage=self._usage, why=why, message=message, continuable=go_on)


_FIGURES: Final = ("input", "cached", "output", "reasoning", "cost_usd", "model")


def read(line: bytes) -> Mapping[str, Json] | None:
    """A message; None for whatever else an agent prints."""
    try:
        message = json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and ("method" in message or "id" in message) else None


def _current(result: Mapping[str, Json], category: str) -> str:
    options = (o for o in result.get("configOptions") or () if isinstance(o, dict) and o.get("category") == category)
    return next((str(option.get("currentValue") or "") for option in options), "")


def _why(message: str) -> Why | None:
    """None = the provider's limit."""
    own = next((why for pattern, why in _MORE if pattern.search(message)), None)
    return own or classify(_plain(message))


def _plain(message: str) -> str:
    """The status as the other streams write it."""
    return _HTTP.sub(lambda found: f"status {found[1] or found[2]} ", message)


def _said(error: Json) -> str:
    """The words of an error; an agent says them in its message, or in the data behind an empty "Internal error"."""
    if not isinstance(error, dict):
        return str(error)
    message, data = str(error.get("message") or ""), error.get("data")
    rest = message.removeprefix("Internal error").removeprefix(":").strip()
    if isinstance(data, dict):
        data = data.get("details") or data.get("message") or data.get("error") or ("" if rest else json.dumps(data))
    more = data if isinstance(data, str) else "" if data is None else json.dumps(data)
    return ": ".join(part for part in (rest, more) if part) or message or "an error without a word"
