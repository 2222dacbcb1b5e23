"""The real daemon as a process of its own, to be killed: its home, its crash point, what its database shows."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warm_for_tests import Warm

import beadmill
from beadmill.demo import material
from beadmill.demo.client import RestApi
from beadmill.demo.person import Person
from beadmill.errors import Conflict, Unavailable
from beadmill.web import record
from tests.deliver.shown import Shown

SOURCE = Path(beadmill.__file__).parents[1]
KEY = "DEMO-1"


async def until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.01)


@dataclass(slots=True)
class DaemonWorld(Shown):
    """One home with the demo's repository; daemons come and go on it. ``choose`` answers gates before the demo's
    person does: a body of gates.answer, or None."""

    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    answered: list[str] = field(default_factory=list)
    choose: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _gate: None

    @classmethod
    async def make(cls, root: Path) -> DaemonWorld:
        place = material.Place(root)
        await material.make_repository(place)
        material.write_scenario(place)
        place.home.mkdir(mode=0o700)
        lines = ["port = 0", "[agents.scripted]", f'scenario = "{place.scenario}"', "[defaults]", 'manual_qa = "off"']
        (place.home / "config.toml").write_text("\n".join(lines) + "\n")
        return cls(place)

    async def start(self, crash: str = "") -> None:
        """Returns when it serves, or when it died on the way there."""
        env = {**os.environ, "BEADMILL_HOME": str(self.place.home), "PYTHONPATH": str(SOURCE), "BEADMILL_TESTING": "1"}
        self.starts += 1
        with (self.place.root / f"daemon-{self.starts}.log").open("wb") as log:
            crashing = {**env, "BEADMILL_CRASH": crash}
            self.process = Warm(
                ["start", "--foreground"], env=crashing, stdin=subprocess.DEVNULL, stdout=log, stderr=log
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

    def terminate(self) -> None:
        """As a person stops it. Returns when it has gone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

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
                    if not self.one("select count(*) from gates where state = 'open'"):
                        await asyncio.sleep(0.05)
                        continue
                    if enough():  # the gate that was waited for may have opened meanwhile: it is not answered here
                        return
                    for gate in (await api.call("gates.listing"))["items"]:
                        self.answered.append(await self._answer(api, person, gate))
                except (Unavailable, Conflict):
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)

    async def _answer(self, api: RestApi, person: Person, gate: dict[str, Any]) -> str:
        body = self.choose(gate) or ({"choice": "approved"} if "approved" in gate["choices"] else None)
        if body is None:
            return await person.answer(gate)
        await api.call("gates.answer", gate=gate["id"], body=body, etag=gate["etag"], once=gate["id"])
        return str(gate["title"])
