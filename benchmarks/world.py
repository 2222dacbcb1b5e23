"""What the benchmarks of whole tickets share: a home with the demo's repository, a real daemon, a person who never waits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import beadmill
from beadmill.demo import material
from beadmill.demo.client import RestApi
from beadmill.demo.person import Person
from beadmill.web import record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

SOURCE = Path(beadmill.__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")


async def until(holds: Callable[[], bool], *, seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.002)


@dataclass(slots=True)
class Daemon:
    """The real daemon as a process of its own, on one home."""

    home: Path
    process: subprocess.Popen[bytes] | None = None

    async def start(self) -> float:
        """Seconds from exec to the first answer over HTTP."""
        env = {**os.environ, "BEADMILL_HOME": str(self.home), "PYTHONPATH": str(SOURCE)}
        argv = [sys.executable, "-m", "beadmill.cli.main", "start", "--foreground"]
        began = time.perf_counter()
        with (self.home / "daemon.log").open("wb") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - it outlives this call
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        await until(lambda: self.serving)
        async with self.api() as api:
            await api.call("status.show")
        return time.perf_counter() - began

    @property
    def serving(self) -> bool:
        found = record.read(self.home)
        return found is not None and self.process is not None and found.pid == self.process.pid

    @asynccontextmanager
    async def api(self) -> AsyncIterator[RestApi]:
        found = record.read(self.home)
        assert found is not None
        client = RestApi.of(found.url, found.token)
        try:
            yield client
        finally:
            await client.http.aclose()

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def memory_mb(self) -> float:
        """Proportional share, so that pages shared with nobody are not hidden and shared ones not counted twice."""
        rows = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024

    def cpu_s(self) -> float:
        """Of the daemon alone, without what it started."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


async def make(root: Path, agents: Mapping[str, Mapping[str, str]], scenario: Mapping[str, Any]) -> material.Place:
    """A fresh repository, its origin, a home with these agents, and the scenario."""
    place = material.Place(root)
    await material.make_repository(place)
    place.scenario.write_text(json.dumps(scenario))
    place.home.mkdir(mode=0o700)
    lines = ["port = 0"]
    for name, options in agents.items():
        lines += [f"[agents.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in options.items())]
    lines += ["[defaults]", 'manual_qa = "off"']
    (place.home / "config.toml").write_text("\n".join(lines) + "\n")
    return place


async def attach(api: RestApi, place: material.Place) -> None:
    await api.call("projects.add", body={"path": str(place.checkout), "short": material.SHORT}, once="project")


async def ticket(api: RestApi, seats: list[str], *, n: int = 1, **overrides: Any) -> str:
    """A started ticket's key."""
    wanted = {"council": {"seats": seats}, **overrides}
    new = {"project": material.SHORT, **material.ticket(), "overrides": wanted}
    await api.call("tickets.create", body=new, once=f"ticket-{n}")
    key = f"{material.SHORT}-{n}"
    await api.call("tickets.start", key=key, once=f"start-{n}")
    return key


async def through(api: RestApi, home: Path, key: str, *, seconds: float = 3600) -> None:
    """Answers every gate at once until the run is over. Raises Stuck when the run is blocked."""
    person = Person(api, key)
    async with asyncio.timeout(seconds):
        while one(home, "select state from runs") == "active":
            if one(home, "select count(*) from gates where state = 'open'"):
                for gate in (await api.call("gates.listing"))["items"]:
                    await person.answer(gate)
            await asyncio.sleep(0.05)


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{home / 'beadmill.db'}?mode=ro", uri=True)) as base:
        return base.execute(query).fetchall()


def one(home: Path, query: str) -> Any:
    found = rows(home, query)
    return found[0][0] if found else None


def show(result: Mapping[str, Any], bars: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
        return
    for name, value in result.items():
        shown = f"{value:10.3f}" if isinstance(value, float) else f"{value!s:>10}"
        sys.stdout.write(f"{name:28} {shown}   {bars.get(name, '')}\n")
