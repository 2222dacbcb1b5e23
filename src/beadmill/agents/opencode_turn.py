"""One turn over HTTP: find or open the conversation, prompt it once, follow its events, and leave nothing running."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from beadmill.agents import opencode_home
from beadmill.agents._http import Client, Gone, Slow
from beadmill.agents._lines import event
from beadmill.agents.contract import SessionIO
from beadmill.agents.opencode_home import Home
from beadmill.agents.opencode_stream import OpenCodeStream, Totals, finished
from beadmill.domain.ended import Ended, Failed, SessionRef, Why
from beadmill.domain.values import Access, Json, Usage
from beadmill.errors import Unavailable
from beadmill.processes import folder as files
from beadmill.processes.environment import marks
from beadmill.processes.folder import State
from beadmill.processes.services import NotBegun, Use
from beadmill.processes.spec import AgentTask, EventKind

SILENCE: Final = 35.0  # seconds; the server's heart beats every ten
LONG: Final = timedelta(seconds=60)  # a provider that lets us wait longer has told a limit
QUIET: Final = 6.0  # seconds an aborted conversation may take to stand still
DYING: Final = 15.0  # seconds a server that answers no more may take to be gone
_POLL: Final = 0.05
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Odd(Exception):
    """The server answered what it should not have."""


def message_id(now: float | None = None) -> str:
    """As OpenCode makes them: they sort by time, and it compares them."""
    stamp = (int((time.time() if now is None else now) * 1000) * 0x1000 + 1) & 0xFFFF_FFFF_FFFF
    return f"msg_{stamp:012x}{''.join(secrets.choice(_ALPHABET) for _ in range(14))}"


def title(token: str, message: str) -> str:
    """The conversation's title says whose prompt it got last: after a crash that is read before anything is sent."""
    return f"{token} {message}"


@dataclass(slots=True)
class Server:
    """The calls we need. ``folder`` is the session folder of the server."""

    client: Client
    directory: Path
    folder: Path

    async def ask(self, method: str, path: str, body: Json = None, *, odd: tuple[int, ...] = ()) -> Json:
        """The body; None for a status in ``odd``. Raises Gone, Slow, Odd."""
        there = f"{path}{'&' if '?' in path else '?'}{urlencode({'directory': str(self.directory)})}"
        status, data = await self.client.call(method, there, body)
        if status in odd:
            return None
        if status >= 300:
            raise Odd(f"{method} {path.partition('?')[0]} answered {status}: {str(data)[:500]}")
        return data

    async def newest(self, conversation: str) -> Json:
        """The last message. None when there is none; also for a prompt with a schema, which OpenCode cannot read
        again itself (400)."""
        rows = await self.ask("GET", f"/session/{conversation}/message?limit=1", odd=(400,))
        return rows[-1] if isinstance(rows, list) and rows else None

    async def busy(self, conversation: str) -> bool:
        return conversation in (await self.ask("GET", "/session/status") or {})

    async def quiet(self, conversation: str) -> bool:
        """Aborts, which ends its tools too; True when it provably stands still."""
        patience = time.monotonic() + QUIET
        while time.monotonic() < patience:
            try:
                await self.ask("POST", f"/session/{conversation}/abort", odd=(404,))
                if not await self.busy(conversation):
                    return True
            except Gone:
                return files.state(self.folder) is not State.LIVE
            except (Slow, Odd):
                return False
            await asyncio.sleep(_POLL)
        return False


@dataclass(slots=True)
class Turn:
    task: AgentTask
    io: SessionIO
    home: Home
    model: str  # provider/name, "" = the configured one
    retries: int  # of the provider, by OpenCode itself, until we say that it failed
    _use: Use = field(init=False)
    _server: Server = field(init=False)
    _stream: OpenCodeStream = field(init=False)
    _message: str = field(default_factory=message_id)
    _before: Totals = field(default_factory=Totals)
    _sent: bool = False

    async def run(self) -> Ended:
        """Raises NotBegun, Unavailable. Cancellation ends the conversation, and proves it."""
        assert self.io.use is not None
        self._use = self.io.use
        address = await self._use.begin()
        client = Client(address["url"], user="opencode", password=address["password"])
        place = self.home.nothing if self.task.access is Access.NONE else self.task.cwd
        self._server = Server(client, place, self._use.server)
        try:
            conversation, done = await self._conversation()
            self._stream = OpenCodeStream(self.io.token, conversation=conversation, message=self._message)
            if done is not None:
                return self._stream.end(done, Totals.read(done["info"]).since(Totals()))
            return await self._prompted(conversation)
        except Gone as error:
            return await self._dead(str(error))
        except (Slow, Odd) as error:
            return self._failed(Why.TRANSPORT if isinstance(error, Slow) else Why.INTERNAL, f"OpenCode: {error}")

    # --- which conversation

    async def _conversation(self) -> tuple[str, Json]:
        """Its id; and its answer, when a turn before us got it and could not say so."""
        found = await self._known()
        if found is None:
            body = {"title": title(self.io.token, self._message), "permission": self._rules()}
            made = await self._server.ask("POST", "/session", body)
            return str(made["id"]), None
        conversation = str(found["id"])
        lost = self._unbooked(str(found.get("title") or ""))
        if lost and not await self._server.quiet(conversation):
            raise Odd("the conversation still runs and cannot be ended")
        if lost and finished(newest := await self._server.newest(conversation), lost):
            return conversation, newest
        if lost:
            await self._forget(conversation, lost)
        self._before = Totals.read(found)
        body = {"title": title(self.io.token, self._message), "permission": self._rules()}
        await self._server.ask("PATCH", f"/session/{conversation}", body)
        return conversation, None

    async def _known(self) -> Json:
        """The conversation to go on with: the one we are told, or that of an earlier turn of the same call."""
        resumed = self.task.resume.conversation if self.task.resume is not None else ""
        if resumed:
            found = await self._server.ask("GET", f"/session/{quote(resumed)}", odd=(404, 400))
            if found is None:
                raise Unavailable(f"OpenCode does not know the conversation {resumed} any more", code="NO_CONVERSATION")
            return found
        call, _, turn = self.io.token.rpartition("/")
        if not call or turn == "1":
            return None
        rows = await self._server.ask("GET", f"/session?search={quote(f'{call}/', safe='')}")
        ours = [row for row in rows or [] if str(row.get("title") or "").startswith(f"{call}/")]
        return max(ours, key=lambda row: row["time"]["created"], default=None)

    def _unbooked(self, title: str) -> str:
        """The prompt that an earlier turn of this very call sent and whose end nobody heard; "" = none."""
        token, _, message = title.partition(" ")
        call, _, _ = self.io.token.rpartition("/")
        booked = self.task.resume.token if self.task.resume is not None else ""
        mine = bool(call) and token.startswith(f"{call}/") and token not in (self.io.token, booked)
        return message if mine else ""

    async def _forget(self, conversation: str, message: str) -> None:
        """Takes an unanswered prompt out again, with what was begun for it: it is about to be asked anew."""
        where = f"/session/{conversation}/message"
        while (newest := await self._server.newest(conversation)) and newest["info"].get("parentID") == message:
            await self._server.ask("DELETE", f"{where}/{newest['info']['id']}")
        await self._server.ask("DELETE", f"{where}/{message}", odd=(404, 400))

    def _rules(self) -> list[Json]:
        return opencode_home.rules(self.task.access, questions=self.task.questions)

    # --- the prompt and what follows

    async def _prompted(self, conversation: str) -> Ended:
        await self.io.emit(event(EventKind.STARTED, conversation=conversation, message=self._message, model=self.model))
        self.home.mark(conversation, marks(token=self.io.token, mark=self.io.mark))
        self._use.holds(conversation)
        self._use.clean = False
        try:
            end = await self._followed(conversation)
        except (Slow, Odd) as error:
            self._use.clean = await self._server.quiet(conversation)
            end = self._failed(Why.TRANSPORT, f"OpenCode: {error}")
        except asyncio.CancelledError:
            self._use.clean = await self._server.quiet(conversation)
            await self._used(conversation)
            raise
        finally:
            self.home.unmark(conversation)
        return end

    async def _followed(self, conversation: str) -> Ended:
        stream, early = self._stream, False
        while not (stream.idle or early):
            try:
                early = await self._listen(conversation)
            except Slow:
                continue
        if early:
            self._use.clean = await self._server.quiet(conversation)
        else:
            self._use.clean = True
        usage = await self._used(conversation)
        if stream.question is not None:
            return stream.asks(usage)
        if early and stream.retry is not None:
            return stream.gave_up(stream.retry, usage)
        return stream.end(await self._server.newest(conversation), usage)

    async def _listen(self, conversation: str) -> bool:
        """One connection's events. True = we end the turn ourselves.

        A connection made while OpenCode loads its configuration anew lives on and hears nothing of it but the heart.
        """
        path = f"/event?{urlencode({'directory': str(self._server.directory)})}"
        heard = True
        async with aclosing(self._server.client.events(path, silence=SILENCE)) as events:
            async for data in events:
                match data.get("type") if isinstance(data, dict) else None:
                    case "server.connected" if not self._sent:
                        await self._send(conversation)
                    case "server.connected" | "server.heartbeat" as kind:
                        if not heard or kind == "server.connected":
                            await self._catch_up(conversation)
                        if not heard and not self._stream.idle:
                            return False
                        heard = kind == "server.connected"
                    case _ if self._stream.about(data):
                        heard = True
                        await self._feed(data)
                if self._stream.idle:
                    return False
                if await self._ends_early():
                    return True
        return False

    async def _feed(self, data: Json) -> None:
        for item in self._stream.feed(data):
            await self.io.emit(item)

    async def _catch_up(self, conversation: str) -> None:
        """What a lost connection did not tell: how it stands, what it asks, the newest message, and whether that is all."""
        states = await self._server.ask("GET", "/session/status") or {}
        if conversation in states:
            status = {"sessionID": conversation, "status": states[conversation]}
            await self._feed({"type": "session.status", "properties": status})
        for kind in ("question", "permission"):
            for asked in await self._server.ask("GET", f"/{kind}") or []:
                if self._stream.about({"properties": asked}):
                    await self._feed({"type": f"{kind}.asked", "properties": asked})
        newest = await self._server.newest(conversation)
        if newest is not None and newest["info"].get("parentID") == self._message:
            for part in newest.get("parts") or []:
                await self._feed(
                    {"type": "message.part.updated", "properties": {"sessionID": conversation, "part": part}}
                )
            ended = bool((newest["info"].get("time") or {}).get("completed"))
            self._stream.idle = self._stream.idle or (ended and conversation not in states)

    async def _send(self, conversation: str) -> None:
        """Once: from here on the prompt counts as sent, whatever becomes of the answer."""
        provider, _, model = self.model.partition("/")
        body = {
            "messageID": self._message,
            "parts": [{"type": "text", "text": self.task.brief.text}],
            **({"model": {"providerID": provider, "modelID": model}} if model else {}),
            **({"variant": self.task.seat.effort} if self.task.seat.effort else {}),
            **({"format": {"type": "json_schema", "schema": self.task.schema}} if self.task.schema else {}),
        }
        self._sent = True
        await self._server.ask("POST", f"/session/{conversation}/prompt_async", body)

    async def _ends_early(self) -> bool:
        stream = self._stream
        while stream.permissions:
            await self._server.ask("POST", f"/permission/{stream.permissions.pop()}/reply", {"reply": "reject"})
        if stream.question is not None:
            await self._server.ask("POST", f"/question/{stream.question.get('id')}/reject", odd=(404,))
            return True
        retry = stream.retry
        return retry is not None and (retry.attempt > self.retries or retry.at - datetime.now(UTC) > LONG)

    async def _used(self, conversation: str) -> Usage:
        """This turn's share of what the conversation used, told and returned."""
        try:
            now = Totals.read(await self._server.ask("GET", f"/session/{conversation}"))
        except (Gone, Slow, Odd):
            return Usage()
        used = replace(now.since(self._before), model=self.model)
        cost = {} if used.cost_usd is None else {"cost_usd": used.cost_usd}
        tokens = {"input": used.input, "cached": used.cached, "output": used.output, "reasoning": used.reasoning}
        await self.io.emit(event(EventKind.USAGE, **tokens, **cost, model=self.model))
        return used

    # --- a server that is gone

    async def _dead(self, words: str) -> Ended:
        """Raises NotBegun when nothing was sent: the next server gets the turn."""
        patience = time.monotonic() + DYING
        while files.state(self._use.server) is State.LIVE:
            if time.monotonic() > patience:
                return self._failed(Why.TRANSPORT, f"the OpenCode server does not answer: {words}")
            await asyncio.sleep(_POLL)
        self._use.clean = True  # what ran in it is gone with it
        if not self._sent:
            raise NotBegun
        return self._failed(Why.TRANSPORT, f"the OpenCode server died in the middle of the turn: {words}")

    def _failed(self, why: Why, message: str) -> Failed:
        ref = self._stream.ref if hasattr(self, "_stream") else SessionRef(self.io.token)
        return Failed(session=ref, why=why, message=message, continuable=why is Why.TRANSPORT)
