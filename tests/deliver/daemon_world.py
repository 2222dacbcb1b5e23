"""The real daemon as a process of its own, to be killed: its home, its crash point, what its database shows."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import beadmill
from beadmill.demo import material
from beadmill.demo.client import RestApi
from beadmill.demo.person import Person
from beadmill.errors import Conflict, Unavailable
from beadmill.processes.sessions import FolderSessions
from beadmill.web import record

SOURCE = Path(beadmill.__file__).parents[1]
KEY = "DEMO-1"


async def until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.01)


@dataclass(slots=True)
class DaemonWorld:
    """One home with the demo's repository; daemons come and go on it."""

    place: material.Place
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    answered: list[str] = field(default_factory=list)

    @classmethod
    async def make(cls, root: Path) -> DaemonWorld:
        place = material.Place(root)
        await material.make_repository(place)
        material.write_scenario(place)
        place.home.mkdir(mode=0o700)
        lines = ["port = 0", "[agents.scripted]", f'scenario = "{place.scenario}"']
        (place.home / "config.toml").write_text("\n".join(lines) + "\n")
        return cls(place)

    async def start(self, crash: str = "") -> None:
        """Returns when it serves, or when it died on the way there."""
        env = {**os.environ, "BEADMILL_HOME": str(self.place.home), "PYTHONPATH": str(SOURCE), "BEADMILL_TESTING": "1"}
        argv = [sys.executable, "-m", "beadmill.cli.main", "start", "--foreground"]
        self.starts += 1
        with (self.place.root / f"daemon-{self.starts}.log").open("wb") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - it outlives this call
                argv, env={**env, "BEADMILL_CRASH": crash}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        await until(lambda: self.dead or self.serving)

    @property
    def dead(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    @property
    def serving(self) -> bool:
        found = record.read(self.place.home)
        return found is not None and self.process is not None and found.pid == self.process.pid

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @asynccontextmanager
    async def api(self) -> AsyncIterator[RestApi]:
        found = record.read(self.place.home)
        assert found is not None
        client = RestApi.of(found.url, found.token)
        try:
            yield client
        finally:
            await client.http.aclose()

    async def prepare(self, *, sop: str, **overrides: Any) -> None:
        """Attaches the repository and writes the ticket; nothing is started."""
        async with self.api() as api:
            await api.call("projects.add", body={"path": str(self.place.checkout), "short": material.SHORT})
            new = {"project": material.SHORT, **material.ticket(), "sop": sop, "overrides": overrides}
            await api.call("tickets.create", body=new)

    def slow_down(self, template: str, *, seconds: float) -> None:
        """The scripted model thinks longer at its first reply of this kind, so that a test can meet it at work."""
        scenario = json.loads(self.place.scenario.read_text())
        first = next(reply for reply in scenario["replies"] if reply["match"].get("template") == template)
        first["steps"].insert(0, {"wait": seconds})
        self.place.scenario.write_text(json.dumps(scenario))

    async def reach(self, query: str) -> None:
        await self.go_on(lambda: bool(self.one(query)))

    async def go_on(self, enough: Callable[[], bool]) -> None:
        """Starts the ticket if need be and answers gates, until ``enough`` holds, the run is over or the daemon dies."""
        async with self.api() as api:
            person = Person(api, KEY)
            while not (enough() or self.dead or self.over):
                try:
                    if self.one("select state from tickets") == "draft":
                        await api.call("tickets.start", key=KEY, once="start")
                    for gate in (await api.call("gates.listing"))["items"]:
                        self.answered.append(await self._answer(api, person, gate))
                except (Unavailable, Conflict):
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)

    async def _answer(self, api: RestApi, person: Person, gate: dict[str, Any]) -> str:
        if "approved" not in gate["choices"]:
            return await person.answer(gate)
        body = {"choice": "approved"}
        await api.call("gates.answer", gate=gate["id"], body=body, etag=gate["etag"], once=gate["id"])
        return str(gate["title"])

    # --- what the database shows -----------------------------------------------------------------------------------
    @property
    def over(self) -> bool:
        return self.one("select state from tickets") in ("completed", "canceled")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Reads beside the daemon; a database that is not there yet has no rows."""
        if not (self.place.home / "beadmill.db").exists():
            return []
        with closing(sqlite3.connect(f"file:{self.place.home / 'beadmill.db'}?mode=ro", uri=True, timeout=10)) as conn:
            return conn.execute(query).fetchall()

    def one(self, query: str) -> Any:
        return next(iter(self.rows(query)), (None,))[0]

    def sessions(self) -> FolderSessions:
        return FolderSessions(self.place.home / "sessions", adapters={}, sandboxes={})

    def tokens(self) -> list[str]:
        return [row[0] for row in self.rows("select token from sessions order by token")]
