"""A conversation with an agent over its pipes, on the connection of ``agent-client-protocol``.

Answers are read as plain JSON on purpose: agents stray from the schema in what they say, and a figure that is missing
or misspelt must not lose a turn. What we say is built from the schema's models.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection
from pydantic import BaseModel

from beadmill import __version__
from beadmill.agents import acp_permission
from beadmill.agents._lines import event, unreadable
from beadmill.agents.acp_stream import AcpStream, Broken, read
from beadmill.agents.contract import Child, SessionIO
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentEvent, EventKind

CANCEL: Final = 2.0  # seconds for an agent to end what it runs
# Agents use their own tools for files and commands: the box and the tree watch hold those.
_OURS: Final = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=False, write_text_file=False), terminal=False
)


class _Pipe:
    """The library's transport over a child: each message passes the stream, in order, before anybody acts on it."""

    def __init__(self, child: Child, stream: AcpStream, io: SessionIO) -> None:
        self._child, self._stream, self._io = child, stream, io
        self._lines = child.lines()

    async def send(self, message: dict[str, Any]) -> None:
        await self.tell(self._stream.sent(message))
        await self._child.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        async for line in self._lines:
            await self.tell(self._heard(line))
            message = read(line)
            if message is not None:
                return dict(message)
        return None

    def _heard(self, line: bytes) -> list[AgentEvent]:
        try:
            return self._stream.feed(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # an agent that strays from the schema
            return [*unreadable(line), event(EventKind.WARNING, message=f"a message was not understood: {error!r}")]

    async def close(self) -> None:
        self._child.close_stdin()

    async def tell(self, events: list[AgentEvent]) -> None:
        for item in events:
            await self._io.emit(item)


class Talk:
    """One connection for the length of an ``async with``. ``may`` decides on a tool call that the agent asks for."""

    def __init__(
        self, child: Child, stream: AcpStream, io: SessionIO, *, may: Callable[[Mapping[str, Json]], str]
    ) -> None:
        """``may`` answers "" for yes, else the access that forbids it."""
        self._stream, self._may = stream, may
        self._pipe = _Pipe(child, stream, io)
        self._connection = Connection(self._asked, self._pipe)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def initialize(self) -> Mapping[str, Json]:
        """What the agent can. Raises Broken, like every call here."""
        about = schema.Implementation(name="beadmill", version=__version__)
        request = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION, client_capabilities=_OURS, client_info=about
        )
        return await self._ask("initialize", request)

    async def open(self, cwd: Path) -> Mapping[str, Json]:
        return await self._ask("session/new", schema.NewSessionRequest(cwd=str(cwd), mcp_servers=[]))

    async def resume(self, conversation: str, cwd: Path) -> Mapping[str, Json]:
        request = schema.ResumeSessionRequest(session_id=conversation, cwd=str(cwd), mcp_servers=[])
        return await self._ask("session/resume", request)

    async def load(self, conversation: str, cwd: Path) -> Mapping[str, Json]:
        request = schema.LoadSessionRequest(session_id=conversation, cwd=str(cwd), mcp_servers=[])
        return await self._ask("session/load", request)

    async def choose(self, conversation: str, option: str, value: str) -> Mapping[str, Json]:
        request = schema.SetSessionConfigOptionSelectRequest(session_id=conversation, config_id=option, value=value)
        return await self._ask("session/set_config_option", request)

    async def mode(self, conversation: str, mode: str) -> Mapping[str, Json]:
        return await self._ask("session/set_mode", schema.SetSessionModeRequest(session_id=conversation, mode_id=mode))

    async def prompt(self, conversation: str, text: str) -> None:
        """One turn. When it is cancelled the agent is asked to stop first, so that it ends its own tools."""
        block = schema.TextContentBlock(type="text", text=text)
        request = schema.PromptRequest(session_id=conversation, prompt=[block])
        turn = asyncio.ensure_future(self._ask("session/prompt", request))
        try:
            await asyncio.shield(turn)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await self._connection.send_notification("session/cancel", {"sessionId": conversation})
                await asyncio.wait({turn}, timeout=CANCEL)
            raise
        finally:
            if not turn.done():
                turn.cancel()
            elif not turn.cancelled():
                turn.exception()  # seen: nobody waits for a turn that was cancelled

    async def _ask(self, method: str, request: BaseModel) -> Mapping[str, Json]:
        """Raises Broken: the stream has heard the agent's error, or that it ended."""
        try:
            result = await self._connection.send_request(method, _plain(request))
        except (RequestError, OSError) as error:
            raise Broken(str(error)) from error
        return result if isinstance(result, dict) else {}

    async def _asked(self, method: str, params: Json, is_notification: bool) -> Json:
        """What the agent wants of us. Notifications, extensions among them, have passed the stream and end here."""
        if is_notification:
            return None
        if method != "session/request_permission":
            raise RequestError.method_not_found(method)
        call = self._stream.call(params.get("toolCall") or {})
        forbids = self._may(call)
        if forbids:
            await self._pipe.tell(self._stream.refuse(str(call.get("title") or call.get("kind") or "a tool"), forbids))
        return acp_permission.outcome(params.get("options"), allow=not forbids)


def _plain(request: BaseModel) -> Json:
    return request.model_dump(mode="json", by_alias=True, exclude_none=True)
