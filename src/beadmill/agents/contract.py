"""The agent contract. Adapters are loaded by dotted path inside the runner: standard library only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from beadmill.domain.ended import Ended
from beadmill.domain.values import Json
from beadmill.processes.services import Use
from beadmill.processes.spec import AgentEvent, AgentTask, Order, Service


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the CLI itself can do; the engine fills the gaps."""

    schema: bool = False  # a native structured-output mode
    resume: bool = False  # a conversation can be continued
    questions: bool = False  # a channel for questions
    cost: bool = False  # reports money
    steps: bool = False  # ends by itself, with a word, when max_steps is reached
    efforts: tuple[str, ...] = ()
    catalog: bool = False  # models() names every model of a provider that it names at all


@dataclass(frozen=True, slots=True)
class Installed:
    path: Path
    version: str
    signed_in: bool | None = None  # None = cannot tell without asking the provider
    note: str = ""
    sign_in: str = ""  # what a person does to sign in: a command, or the variables that hold a key


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    name: str = ""
    efforts: tuple[str, ...] = ()


Say: TypeAlias = Callable[[str], None]


def quiet(line: str, /) -> None:
    """For a caller who wants no progress."""


class Child(Protocol):
    """A process of the session, inside its box and under its watch."""

    pid: int

    def lines(self) -> AsyncIterator[bytes]:
        """stdout by line, without the newline, cut at 50 MiB a line; ends when the pipe closes."""
        ...

    async def write(self, data: bytes) -> None:
        """To a stdin that stays open; returns when the pipe has all of it. Raises BrokenPipeError when nobody reads."""
        ...

    def close_stdin(self) -> None:
        """The child reads the end of its input. Idempotent."""
        ...

    def stderr_tail(self) -> str:
        """The last 4 kB of stderr so far, scrubbed."""
        ...

    async def wait(self) -> int:
        """Exit code; negative = signal."""
        ...

    async def terminate(self) -> None:
        """TERM, grace, KILL, for it and its descendants."""
        ...


class SessionIO(Protocol):
    """What the runner gives an adapter."""

    token: str
    mark: str  # what every process of the session carries in its environment as BEADMILL_SESSION_MARK
    workspace: Path  # home/ and tmp/ lie inside
    use: Use | None  # the hold on the server, for agents that have one
    boxed: bool  # True = a sandbox of ours isolates what is spawned: a sandbox inside of it cannot work

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, stdin: bytes | None = b""
    ) -> Child:
        """Through Box.wrap, tree-watched. ``env`` is added to the allow-listed base; ``stdin`` None stays open for
        ``Child.write``. Raises Unavailable."""
        ...

    async def emit(self, event: AgentEvent) -> None:
        """Scrubs secrets, appends to events.jsonl, feeds the idle watch."""
        ...

    def orders(self) -> AsyncIterator[Order]:
        """Steer, AnswerOrder: orders the runner does not handle by itself."""
        ...


class Agent(Protocol):
    """``auth_paths`` are files of the user's sign-in, which a box may write. No folder, and nothing that says what the CLI
    runs: the user's own session would run it. An adapter may also have ``read_paths``, which its CLI only reads, and
    writes into a workspace by ``processes.within`` alone."""

    name: str
    can: Capabilities
    auth_paths: tuple[Path, ...]

    async def detect(self) -> Installed | None:
        """None = not found. Raises Refused when the executable is found and not trusted."""
        ...

    async def install(self, say: Say = quiet) -> Installed:
        """``say`` gets progress as it comes, line by line; a cancel ends what was started.

        Raises Unavailable with the exact command that failed, its last lines in ``details["tail"]`` and a remedy.
        """
        ...

    async def models(self) -> Sequence[Model]: ...

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        """One turn. Runs inside the runner; cancellation means Stop or Lapsed and must end the child."""
        ...


class ServerIO(Protocol):
    """What the runner gives an adapter whose CLI is a server."""

    workspace: Path

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Child:
        """As SessionIO.spawn."""
        ...

    def listens(self, address: Json) -> None:
        """Now sessions may connect; ``address`` is what they get from ``use.begin()``. Readable by the user alone."""
        ...


class Server(Protocol):
    """Beside Agent: a CLI that is a server, which the sessions of one workspace share. ``drive`` then only connects."""

    server_idle: float  # seconds without a session until it ends
    server_files: tuple[Path, ...]  # what it reads when it starts: a change makes a new one

    async def serve(self, service: Service, io: ServerIO) -> str:
        """Runs it in a runner of its own. Returns why it ended by itself; cancellation must end it. Raises Unavailable."""
        ...

    async def release(self, conversation: str) -> bool:
        """Ends what a session that is gone left running; True when it provably does not run. In the server's runner."""
        ...
