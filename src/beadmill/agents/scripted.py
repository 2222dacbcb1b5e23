"""The scripted agent: a real process that acts out a scenario file. Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from beadmill.agents import scripted_cli
from beadmill.agents._lines import event, follow, parse, unreadable
from beadmill.agents.contract import Capabilities, Installed, Model, Say, SessionIO, quiet
from beadmill.domain.ended import Asked, Ended, Failed, Limited, Replied, SessionRef, Why
from beadmill.domain.values import Access, Json, Usage
from beadmill.errors import Unavailable
from beadmill.processes.spec import AgentEvent, AgentTask, EventKind

_SAME: Final = {
    "text": EventKind.TEXT,
    "tool": EventKind.TOOL,
    "tool_done": EventKind.TOOL_DONE,
    "usage": EventKind.USAGE,
}
_LAST: Final = ("result", "question", "limit", "failure")


class ScriptedStream:
    """Lines of scripted_cli.py in, events out; ``end`` says how the turn ended. No I/O."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._conversation = ""
        self._last: Mapping[str, Json] = {}
        self._usage = Usage()

    @property
    def done(self) -> bool:
        return bool(self._last)

    def feed(self, line: bytes) -> list[AgentEvent]:
        row = parse(line)
        if row is None:
            return unreadable(line)
        kind, data = row["type"], {k: v for k, v in row.items() if k != "type"}
        if kind == "start":
            self._conversation = data["conversation"]
            return [event(EventKind.STARTED, **data)]
        if kind == "usage":
            self._usage = Usage(**data)
        if kind in _SAME:
            return [event(_SAME[kind], **data)]
        if kind not in _LAST:
            return unreadable(line)
        self._last = {"type": kind, **data}
        return [event(EventKind.TEXT, text=data["text"])] if kind == "result" and data["text"] else []

    def end(self, code: int, stderr: str) -> Ended:
        session, last, usage = SessionRef(self._session, self._conversation), self._last, self._usage
        match last.get("type"):
            case "result":
                return Replied(session=session, usage=usage, text=last["text"])
            case "question":
                options = tuple(last["options"])
                return Asked(session=session, usage=usage, question=last["question"], options=options)
            case "limit":
                until = None if last["seconds"] is None else datetime.now(UTC) + timedelta(seconds=last["seconds"])
                return Limited(session=session, usage=usage, until=until, message=last["message"])
            case "failure":
                why, text = _why(last["why"]), last["message"]
                return Failed(session=session, usage=usage, why=why, message=text, continuable=why in _CONTINUABLE)
            case _:
                text = f"the scripted agent exited with {code} and no result: {stderr.strip()}"
                go_on = bool(self._conversation)
                return Failed(session=session, usage=usage, why=Why.NO_RESULT, message=text, continuable=go_on)


_CONTINUABLE: Final = (Why.OVERLOADED, Why.TRANSPORT, Why.NO_RESULT)


def _why(text: str) -> Why:
    return Why(text) if text in list(Why) else Why.INTERNAL


class ScriptedAgent:
    """Options: ``scenario`` = path of the scenario file."""

    name = "scripted"
    can = Capabilities(resume=True, questions=True)
    auth_paths: tuple[Path, ...] = ()

    @property
    def read_paths(self) -> tuple[Path, ...]:
        return (Path(scripted_cli.__file__).parents[1], *((Path(self._scenario),) if self._scenario else ()))

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._scenario = str(options.get("scenario") or "")

    async def detect(self) -> Installed | None:
        return Installed(Path(scripted_cli.__file__), "1.0", signed_in=True, note="acts out a scenario, asks no model")

    async def install(self, say: Say = quiet) -> Installed:
        say("the scripted agent is a part of Beadmill: nothing is to be installed")
        return Installed(Path(scripted_cli.__file__), "1.0", signed_in=True)

    async def models(self) -> Sequence[Model]:
        return (Model("scripted", "any name: a scenario may match it"),)

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        if not self._scenario:
            raise Unavailable("the scripted agent has no scenario file", code="AGENT_MISSING")
        child = await io.spawn(self._argv(task, io), env={}, cwd=task.cwd, stdin=task.brief.text.encode())
        return await follow(child, ScriptedStream(io.token), io)

    def _argv(self, task: AgentTask, io: SessionIO) -> list[str]:
        memory = io.workspace / "home" / ".scripted"
        access = "edit" if task.access in (Access.WRITE, Access.ONLINE) else "read"
        conversation = task.resume.conversation if task.resume is not None else ""
        program = (sys.executable, "-I", "-S", scripted_cli.__file__)
        return [*program, self._scenario, str(memory), task.seat.model, conversation, access]
