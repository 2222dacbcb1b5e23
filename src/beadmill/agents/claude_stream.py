"""Claude Code's JSON lines (2.1) → events and an end. Sans I/O, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from beadmill.agents._failures import continuable
from beadmill.agents._lines import OUTPUT, event, parse, unreadable
from beadmill.agents.claude_errors import classify, until
from beadmill.domain.ended import Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Json, Usage, estimate_tokens
from beadmill.processes.spec import AgentEvent, EventKind

STRUCTURED: Final = "StructuredOutput"  # the tool by which it takes a reply with a schema; no step of the work
_NAMES: Final[Mapping[str, str]] = {"Bash": "shell", "Edit": "edit", "Write": "edit", "NotebookEdit": "edit"}
_EXIT = re.compile(r"\AExit code (\d+)\n?")
_SILENT: Final = "(Bash completed with no output)"


@dataclass(frozen=True, slots=True)
class Totals:
    """What a whole conversation has used, as the CLI adds it up. ``cost`` None = some model of it has no price there."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float | None = 0.0

    @classmethod
    def read(cls, models: Mapping[str, Json]) -> Totals:
        """``modelUsage``: unlike ``usage`` it has the calls beside the main loop. Tokens written to the cache are input."""
        rows = [row for row in models.values() if isinstance(row, dict)]

        def total(*names: str) -> int:
            return sum(int(row.get(name) or 0) for row in rows for name in names)

        unknown = any(row.get("costBasis") == "unknown" for row in rows)
        cost = None if unknown or not rows else sum(float(row.get("costUSD") or 0) for row in rows)
        return cls(
            total("inputTokens", "cacheCreationInputTokens"),
            total("cacheReadInputTokens"),
            total("outputTokens"),
            total("thinkingTokens"),
            cost,
        )

    @classmethod
    def of_run(cls, usage: Mapping[str, Json]) -> Totals:
        """``usage``: the main loop of this run alone."""
        thought = _dict(usage.get("output_tokens_details")).get("thinking_tokens")
        written = int(usage.get("cache_creation_input_tokens") or 0)
        return cls(
            int(usage.get("input_tokens") or 0) + written,
            int(usage.get("cache_read_input_tokens") or 0),
            int(usage.get("output_tokens") or 0),
            int(thought or 0),
        )

    def __add__(self, more: Usage) -> Totals:
        """Tokens alone: what a turn that was cut has cost comes with the next one."""
        parts = self.input + more.input, self.cached + more.cached, self.output + more.output
        return Totals(*parts, self.reasoning + more.reasoning, self.cost)

    def since(self, before: Totals, run: Totals, model: str) -> Usage:
        """This turn alone: what came on top, and never less than the run itself says it used."""
        cost = None
        if self.cost is not None and before.cost is not None:
            cost = round(self.cost - before.cost if self.cost >= before.cost else self.cost, 9)
        return Usage(
            max(self.input - before.input, run.input),
            max(self.cached - before.cached, run.cached),
            max(self.output - before.output, run.output),
            max(self.reasoning - before.reasoning, run.reasoning),
            cost,
            model,
        )


class ClaudeStream:
    """``before`` are the conversation's totals when the turn began."""

    def __init__(self, session: str, *, before: Totals | None = None, schema: bool = False) -> None:
        self._session = session
        self._before, self._schema = before or Totals(), schema
        self.conversation = ""
        self.totals: Totals | None = None
        self._model = ""
        self._usage = Usage()
        self._heard: dict[str, Usage] = {}  # by message, for a turn that is cut
        self._calls: dict[str, str] = {}
        self._text = ""
        self._result: Mapping[str, Json] = {}
        self._error: Mapping[str, Json] = {}
        self._resets: datetime | None = None
        self._refused = False
        self._kinds: Mapping[str, Callable[[Mapping[str, Json]], Iterator[AgentEvent]]] = {
            "assistant": self._said,
            "user": self._came_back,
            "result": self._ended,
            "rate_limit_event": self._limits,
            "system/init": self._started,
            "system/api_retry": self._retried,
            "system/informational": self._informed,
            "system/compact_boundary": self._compacted,
            "system/model_refusal_no_fallback": self._declined,
        }

    @property
    def done(self) -> bool:
        return bool(self._result)

    def feed(self, line: bytes) -> list[AgentEvent]:
        data = parse(line)
        if data is None:
            return unreadable(line)
        kind = f"system/{data.get('subtype')}" if data["type"] == "system" else data["type"]
        handle = self._kinds.get(kind)
        return list(handle(data)) if handle else []

    def so_far(self) -> AgentEvent | None:
        """What a turn without a result has used: input as it was told, output by estimate. None when nothing is known
        or the result has said it."""
        if self._result or not self._heard:
            return None
        used = sum(self._heard.values(), Usage(model=self._model))
        self.totals = self._before + used
        return _used(used)

    # --- the end

    def end(self, code: int, stderr: str) -> Ended:
        session, row = SessionRef(self._session, self.conversation), self._result
        if not row:
            return self._without_result(session, code, stderr)
        if not row.get("is_error"):
            data = row.get("structured_output") if self._schema else None
            return Replied(session=session, usage=self._usage, text=str(row.get("result") or ""), data=data)
        match row.get("terminal_reason"), row.get("subtype"):
            case ("structured_output_retry_exhausted", _) | (_, "error_max_structured_output_retries"):
                return Replied(session=session, usage=self._usage, text=self._text)  # whoever asked reads the text
            case ("max_turns", _) | (_, "error_max_turns"):
                return self._failed(session, Why.STEPS, "it used up the steps that one turn may take")
        message = str(row.get("result") or "") or "; ".join(map(str, row.get("errors") or ())) or stderr.strip()
        if row.get("subtype") == "error_during_execution":
            return self._failed(session, Why.NO_RESULT, message or "it failed and said nothing")
        return self._provider(session, message)

    def _without_result(self, session: SessionRef, code: int, stderr: str) -> Ended:
        message = f"claude exited with {code} and no result: {stderr.strip() or 'it said nothing'}"
        why = classify(stderr) if stderr.strip() and code else Why.NO_RESULT
        if why in (None, Why.INTERNAL, Why.CONTEXT):  # words of a stack trace are no verdict
            why = Why.NO_RESULT
        return self._failed(session, why or Why.NO_RESULT, message)

    def _provider(self, session: SessionRef, message: str) -> Ended:
        """The provider's error, which came as a message and again as the result."""
        status = self._result.get("api_error_status") or self._error.get("api_error_status")
        refused = self._refused or self._result.get("stop_reason") == "refusal"
        if self._result.get("terminal_reason") == "prompt_too_long":
            return self._failed(session, Why.CONTEXT, message)
        why = classify(message, category=str(self._error.get("error") or ""), status=status, refused=refused)
        if why is None:
            ends = self._resets or until(message, datetime.now(UTC))
            return Limited(session=session, usage=self._usage, until=ends, message=message)
        return self._failed(session, why, message, status or 0)

    def _failed(self, session: SessionRef, why: Why, message: str, status: int = 0) -> Failed:
        go_on = continuable(why, status)
        return Failed(session=session, usage=self._usage, why=why, message=message, continuable=go_on)

    # --- one line

    def _started(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        if self.conversation:
            return  # it says so again behind a compaction
        self.conversation, self._model = str(data.get("session_id") or ""), str(data.get("model") or "")
        version = str(data.get("claude_code_version") or "")
        yield event(EventKind.STARTED, conversation=self.conversation, model=self._model, version=version)

    def _said(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        message = _dict(data.get("message"))
        blocks = _blocks(message)
        if data.get("is_api_error_message"):
            self._error = data
            yield event(EventKind.WARNING, message=_text(blocks))
            return
        self._count(message, blocks)
        for block in blocks:
            match block.get("type"):
                case "text" if block.get("text"):
                    self._text = str(block["text"])
                    yield event(EventKind.TEXT, text=self._text)
                case "thinking" if block.get("thinking"):
                    yield event(EventKind.THINKING, text=str(block["thinking"]))
                case "tool_use":
                    yield from self._called(block)

    def _called(self, block: Mapping[str, Json]) -> Iterator[AgentEvent]:
        name, call = str(block.get("name") or ""), str(block.get("id") or "")
        self._calls[call] = name
        if name != STRUCTURED:
            yield event(EventKind.TOOL, id=call, name=_NAMES.get(name, name), input=_input(name, block.get("input")))

    def _count(self, message: Mapping[str, Json], blocks: Sequence[Mapping[str, Json]]) -> None:
        """A message comes block by block, its usage as it was when it began."""
        name, usage = str(message.get("id") or ""), _dict(message.get("usage"))
        written = sum(estimate_tokens(json.dumps(block)) for block in blocks)
        known = self._heard.get(name, Usage())
        self._heard[name] = Usage(
            int(usage.get("input_tokens") or 0) + int(usage.get("cache_creation_input_tokens") or 0),
            int(usage.get("cache_read_input_tokens") or 0),
            known.output + written,
        )

    def _came_back(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        for block in _blocks(_dict(data.get("message"))):
            call = str(block.get("tool_use_id") or "")
            name = self._calls.get(call, "")
            if block.get("type") == "tool_result" and name != STRUCTURED:
                yield _tool_done(call, name, block, _dict(data.get("tool_use_result")))

    def _ended(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        self._result = data
        self.conversation = self.conversation or str(data.get("session_id") or "")
        for denial in data.get("permission_denials") or ():
            yield event(EventKind.WARNING, message=f"it was not allowed to use {_dict(denial).get('tool_name')}")
        models = _dict(data.get("modelUsage"))
        if models:
            self.totals = Totals.read(models)
            run = Totals.of_run(_dict(data.get("usage")))
            self._usage = self.totals.since(self._before, run, self._model)
            yield _used(self._usage)

    def _limits(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        info = _dict(data.get("rate_limit_info"))
        ends = info.get("resetsAt")
        if info.get("status") == "rejected" and isinstance(ends, (int, float)):
            self._resets = datetime.fromtimestamp(ends, UTC)
        elif info.get("status") == "allowed_warning":
            yield event(EventKind.WARNING, message=f"a usage limit is near: {json.dumps(info)}")

    def _retried(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        status = f" (status {data['error_status']})" if data.get("error_status") else ""
        yield event(EventKind.RETRY, attempt=data.get("attempt"), message=f"{data.get('error') or 'unknown'}{status}")

    def _informed(self, data: Mapping[str, Json]) -> Iterator[AgentEvent]:
        yield event(EventKind.WARNING, message=str(data.get("content") or ""))

    def _compacted(self, _: Mapping[str, Json]) -> Iterator[AgentEvent]:
        yield event(EventKind.WARNING, message="the conversation grew too long and was shortened to a summary")

    def _declined(self, _: Mapping[str, Json]) -> Iterator[AgentEvent]:
        self._refused = True
        yield from ()


def _used(usage: Usage) -> AgentEvent:
    parts = {"input": usage.input, "cached": usage.cached, "output": usage.output, "reasoning": usage.reasoning}
    return event(EventKind.USAGE, **parts, cost_usd=usage.cost_usd, model=usage.model)


def _dict(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _blocks(message: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(blocks: Sequence[Mapping[str, Json]]) -> str:
    return "\n".join(str(block["text"]) for block in blocks if block.get("text"))


def _input(name: str, value: Json) -> Json:
    """The command, the file that is changed, or the whole input with long texts cut."""
    given = _dict(value)
    if name == "Bash":
        return str(given.get("command") or "")
    if _NAMES.get(name) == "edit":
        return {"path": given.get("file_path") or given.get("notebook_path")}
    return {key: inner[:OUTPUT] if isinstance(inner, str) else inner for key, inner in given.items()}


def _tool_done(call: str, name: str, block: Mapping[str, Json], result: Mapping[str, Json]) -> AgentEvent:
    content = block.get("content")
    text = content if isinstance(content, str) else _text(_blocks(block))
    ok, code = not block.get("is_error"), None
    if name == "Bash":
        said = _EXIT.match(text)
        # It takes some exits that are not 0 for a success (grep without a match), and does not say which.
        code = int(said[1]) if said else 0 if ok and not result.get("returnCodeInterpretation") else None
        text = _EXIT.sub("", text) if text != _SILENT else ""
        text += "\n" if text and not text.endswith("\n") else ""  # it cuts the last newline off
    return event(EventKind.TOOL_DONE, id=call, name=_NAMES.get(name, name), ok=ok, output=text[-OUTPUT:], exit=code)
