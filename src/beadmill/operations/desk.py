"""What the daemon remembers of its agents while it runs: what was found of each, and the installs.

An install is a task of the daemon: it goes on when the browser leaves, there is one at a time per agent, and what it
says is told as events of the kind ``agent.install``. When the daemon stops, the install ends with it and is undone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from beadmill.agents.contract import Agent
from beadmill.domain.values import Actor, Event
from beadmill.errors import BeadmillError
from beadmill.operations import views
from beadmill.store.db import Store, stamp

State = Literal["running", "done", "failed", "canceled"]
LINES: Final = 400  # lines of an install that are kept
LINE: Final = 500  # characters
BEAT: Final = 0.3  # seconds between two events of an install


@dataclass(slots=True)
class Install:
    """``said`` counts every line, ``lines`` holds the last of them."""

    agent: str
    by: Actor
    started: str
    state: State = "running"
    said: int = 0
    lines: list[str] = field(default_factory=list)
    ended: str | None = None
    version: str = ""
    error: Mapping[str, Any] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def say(self, line: str) -> None:
        self.lines.append(line[:LINE])
        del self.lines[:-LINES]
        self.said += 1

    def view(self, since: int = 0) -> views.InstallView:
        """``since``: how many lines are known already."""
        first = max(since, self.said - len(self.lines))
        return views.InstallView(
            agent=self.agent,
            state=self.state,
            started=self.started,
            ended=self.ended,
            first=first,
            lines=tuple(self.lines[len(self.lines) - (self.said - first) :]),
            version=self.version,
            error=dict(self.error) if self.error else None,
        )


@dataclass(slots=True)
class Desk:
    """One per daemon, used on the loop of its doors."""

    installs: dict[str, Install] = field(default_factory=dict)
    models: dict[str, tuple[views.ModelView, ...]] = field(default_factory=dict)  # of the last probe
    turns: dict[str, views.TurnView] = field(default_factory=dict)  # the last one of each
    _found: dict[str, tuple[float, views.AgentView]] = field(default_factory=dict)

    def remember(self, view: views.AgentView) -> None:
        self._found[view.name] = (time.monotonic(), view)

    def recall(self, name: str, within: float) -> views.AgentView | None:
        """What was found at most ``within`` seconds ago."""
        at, view = self._found.get(name, (0.0, None))
        return view if view is not None and time.monotonic() - at < within else None

    def install(self, agent: Agent, *, store: Store, by: Actor) -> Install:
        """Starts one, or returns the one that runs."""
        now = self.installs.get(agent.name)
        if now is not None and now.state == "running":
            return now
        made = self.installs[agent.name] = Install(agent.name, by, stamp(store.clock()))
        made.task = asyncio.get_running_loop().create_task(self._run(made, agent, store), name=f"install-{agent.name}")
        return made

    async def _run(self, job: Install, agent: Agent, store: Store) -> None:
        telling = asyncio.get_running_loop().create_task(_tell(job, store))
        try:
            found = await agent.install(job.say)
            job.version, job.state = found.version, "done"
        except BeadmillError as error:
            job.error, job.state = error.envelope()["error"], "failed"
        except asyncio.CancelledError:
            job.state = "canceled"
        finally:
            if job.state == "running":  # a bug of the adapter: the task's own error goes to the log
                job.state = "failed"
            self._found.pop(agent.name, None)
            job.ended = stamp(store.clock())
            job.over.set()
            await telling


async def _tell(job: Install, store: Store) -> None:
    """Lines as they come, several at a time; the last event says how it ended."""
    told, over = 0, False
    while not over:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                await job.over.wait()
        over = job.over.is_set()  # as this event tells it: the install may end while it is being written
        if job.said > told or over or not told:
            view = job.view(told)
            told = job.said
            data = view.model_dump(mode="json", exclude={"ended", "seq"})
            await store.write(_emits(Event("agent.install", data), job.by))


def _emits(event: Event, by: Actor) -> Callable[[Any], None]:
    return lambda tx: tx.emit(event, actor=by)


async def cancel(job: Install) -> None:
    """Returns when nothing of it runs any more."""
    if job.task is not None and job.state == "running":
        job.task.cancel()
        await asyncio.wait([job.task])
