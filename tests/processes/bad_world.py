"""A world whose seats are taken by agents that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from beadmill.domain.ended import Ended, Failed, Lapsed, Replied
from beadmill.processes import procs
from beadmill.processes.folder import read_json
from beadmill.processes.forks import SERVE, Forks
from beadmill.processes.session import FolderSession
from beadmill.processes.sessions import Adapter
from beadmill.processes.spec import AgentEvent, EventKind
from tests.processes.session_world import World, until

AGENT: Final = "tests.processes.bad_agents:BadAgent"
ROOT: Final = Path(__file__).parents[2]
STARTER: Final = Forks(SERVE.replace("sys.argv.pop(1)", f"{str(ROOT)!r}); sys.path.insert(0, sys.argv.pop(1)"))


class BadWorld(World):
    starter = STARTER

    async def begin(
        self, shell: str = "", *, python: str = "", grace: float = 30, token: str = "t", **more: Any
    ) -> FolderSession:
        """A session whose agent is this program; ``more`` goes to the task."""
        self.agent = "bad"
        self.adapters["bad"] = Adapter(AGENT, {"shell": shell, "python": python, "grace": grace})
        self.sessions = self.open()
        return await self.start(token, self.task(**more))

    async def turn(self, shell: str = "", **more: Any) -> tuple[Ended, list[AgentEvent]]:
        """The end and the events, once nothing of the session runs any more."""
        return await ended(await self.begin(shell, **more))


async def ended(session: FolderSession) -> tuple[Ended, list[AgentEvent]]:
    events = [event async for _, event in session.events()]
    end = session.ended()
    assert isinstance(end, Ended)
    await until(lambda: session.running() == set())
    return end, events


def warnings(events: list[AgentEvent]) -> list[str]:
    return [e.data["message"] for e in events if e.kind is EventKind.WARNING]


def brief(end: Ended) -> object:
    """What a person reads of an end."""
    match end:
        case Replied():
            return end.text
        case Failed():
            return end.why, end.message, end.continuable
        case Lapsed():
            return "idle" if end.idle else "budget"
    return type(end)


async def runner_of(session: FolderSession) -> procs.Proc:
    """The process that holds the session."""
    owner = await until(lambda: read_json(session.folder / "owner.json"))
    found = procs.look(owner["pid"])
    assert found is not None
    return found
