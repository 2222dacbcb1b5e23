"""Tool calls of the Agent Client Protocol → events. Sans I/O, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from beadmill.agents._lines import OUTPUT, event
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentEvent, EventKind

_NAMES: Final = {"execute": "shell", "switch_mode": "mode"}
_PLACE: Final = frozenset({"cwd", "workdir", "description"})  # says nothing yet of what a call will do
_OUTPUTS: Final = ("output", "aggregated_output", "formatted_output", "stdout", "error", "message", "content")
_EXITS: Final = ("exit", "exitCode", "exit_code")
_OVER: Final = ("completed", "failed")


class Tools:
    """Calls by id. One is told when its input is known, and done when its outcome is; each once.

    ``trailer`` is a regex for what a CLI puts behind a command's output; its group 1 is the exit code.
    """

    def __init__(self, trailer: str) -> None:
        self._trailer = trailer
        self._calls: dict[str, dict[str, Json]] = {}
        self._told: set[str] = set()
        self._done: set[str] = set()

    def known(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """The call with all that was said of it so far; later words count."""
        call = self._calls.setdefault(str(given.get("toolCallId")), {})
        call.update({k: v for k, v in given.items() if v is not None and (v or k not in call)})
        return call

    def update(self, given: Mapping[str, Json]) -> list[AgentEvent]:
        call = self.known(given)
        over = call.get("status") in _OVER
        if not over and call.get("status") in ("pending", None) and not _says_what(call):
            return []
        return [*self.told(call), *(self._finish(call) if over else ())]

    def told(self, given: Mapping[str, Json]) -> list[AgentEvent]:
        call, key = self.known(given), str(given.get("toolCallId"))
        if key in self._told:
            return []
        self._told.add(key)
        return [event(EventKind.TOOL, id=key, name=_name(call), input=call.get("rawInput") or call.get("title"))]

    def rest(self) -> Iterator[AgentEvent]:
        """Calls that were announced and of which nothing more was heard."""
        for call in list(self._calls.values()):
            yield from self.told(call)

    def _finish(self, call: Mapping[str, Json]) -> Iterator[AgentEvent]:
        key = str(call.get("toolCallId"))
        if key in self._done:
            return
        self._done.add(key)
        output, code = self._outcome(call)
        ok = call.get("status") == "completed" and code in (0, None)
        yield event(EventKind.TOOL_DONE, id=key, name=_name(call), ok=ok, output=output[-OUTPUT:], exit=code)

    def _outcome(self, call: Mapping[str, Json]) -> tuple[str, int | None]:
        raw = call.get("rawOutput")
        output = _output(raw) or "".join(_texts(call.get("content")))
        code = _exit(raw)
        found = re.search(self._trailer, output) if self._trailer else None
        if found:
            output, code = output[: found.start()], int(found[1])
        return output, code


def _name(call: Mapping[str, Json]) -> str:
    kind = str(call.get("kind") or "other")
    return str(call.get("title") or kind) if kind == "other" else _NAMES.get(kind, kind)


def _says_what(call: Mapping[str, Json]) -> bool:
    given = call.get("rawInput")
    return bool(set(given) - _PLACE) if isinstance(given, dict) else bool(given)


def _output(raw: Json) -> str:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, dict):
        return "" if raw is None else json.dumps(raw)
    return next((raw[key] for key in _OUTPUTS if isinstance(raw.get(key), str) and raw[key]), "")


def _texts(content: Json) -> Iterator[str]:
    for row in content if isinstance(content, list) else ():
        inner = row.get("content") if isinstance(row, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("text"), str):
            yield inner["text"]


def _exit(raw: Json) -> int | None:
    if not isinstance(raw, dict):
        return None
    places = (raw, raw.get("metadata"), *(raw.get("contents") or ()))
    found = (place.get(key) for place in places if isinstance(place, dict) for key in _EXITS)
    return next((code for code in found if isinstance(code, int)), None)
