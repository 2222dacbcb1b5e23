"""Node, Visit, Engine, Jobs: the contracts of the engine (design: contracts.md, with its sixteen rules)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from beadmill.artifacts.base import Document
from beadmill.domain.bead import Attempt
from beadmill.domain.ended import Ran, Replied
from beadmill.domain.machine import Phase
from beadmill.domain.values import Actor, ArtifactRef, Event, GateAnswer, GateRequest, Outcome, Seat, VisitRef
from beadmill.processes.spec import AgentTask, Batch
from beadmill.settings import RunSettings

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item
D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What the linter needs to know about a node kind."""

    kind: str
    config: type
    outcomes: frozenset[str]
    reads: tuple[type[Document], ...] = ()
    writes: tuple[type[Document], ...] = ()
    notes: bool = False  # its agents are told what a person wrote beside a retry
    place: bool = False  # works only while its run holds one of the project's parallel_tickets places


@dataclass(frozen=True, slots=True)
class Work:
    """Facts of the run that nodes may know; frozen at start. ``workspace`` holds tree, runtime, home, tmp."""

    key: str  # ticket key, also the name of the branch after ``beadmill/``
    title: str
    description: str
    acceptance: str
    project: str  # short name
    repository: str  # absolute path of the user's checkout
    workspace: str  # absolute path
    branch: str  # wanted branch; worktrees handle collisions
    base: str  # base branch name, "" = the remote's default
    forge: str = "local"  # a kind, and the service's web address when a person set it (forges/registry.py)
    remote: str = "origin"
    prompts: Mapping[str, str] | None = None  # edited template → sha256 of its blob, "" = unreadable; None = not frozen


class Visit(Protocol):
    """What a node sees. Every durable call has a name, unique in its scope, and comes back by it."""

    @property
    def ref(self) -> VisitRef: ...
    @property
    def scope(self) -> str:
        """Empty at the top, else ``a/b``; a node names scopes to forget."""
        ...

    @property
    def settings(self) -> RunSettings:
        """Frozen at start, but for what is read again at a boundary: that is as it was when the visit began."""
        ...

    @property
    def work(self) -> Work: ...
    @property
    def comment(self) -> str:
        """Why the run came back here: the comment of a send back, the note of a rework outcome. Empty otherwise."""
        ...

    @property
    def prompts(self) -> Mapping[str, str | None] | None:
        """The edited prompt templates as they were when the run started, by name; None for one that was unreadable.
        None in all = a run of an earlier release, which goes by the files."""
        ...

    @property
    def retry_notes(self) -> tuple[str, ...]:
        """What people wrote, word for word, when they had something of this scope tried again; oldest first. Only for
        the brief of a session that starts."""
        ...

    def at(self, key: str) -> Visit:
        """A sub-scope: names below are prefixed with ``key/``."""
        ...

    async def renewed(self) -> Visit:
        """This scope with the settings that are not frozen as they are now. Recorded as ``settings``: the scope keeps
        them until it is forgotten."""
        ...

    async def step(self, name: str, act: Callable[P, Awaitable[T]], *a: P.args, **k: P.kwargs) -> T:
        """Short, recorded once. The result is decode(encode(result)) by the act's return annotation. An act with a
        parameter ``key`` left unset is handed the durable key."""
        ...

    async def agent(self, name: str, task: Callable[[], AgentTask]) -> Replied:
        """Turns until a reply. The factory is called once, when nothing is recorded and no session exists. Raises
        TurnFailed (an Exception nodes may catch) with the recorded end when there is no reply."""
        ...

    async def command(self, name: str, batch: Callable[[], Batch]) -> Ran:
        """A batch in a runner, re-attached like an agent. Raises TurnFailed when it was lost or stopped."""
        ...

    async def ask(self, name: str, gate: GateRequest) -> GateAnswer: ...

    async def sleep(self, name: str, until: datetime) -> None:
        """The first recorded ``until`` wins."""
        ...

    async def map(
        self, items: Sequence[I], work: Callable[[Visit, I], Awaitable[T]], *, key: Callable[[I], str], limit: int = 0
    ) -> list[T]:
        """Results in item order. ``limit`` 0 = all at once; a parked item keeps its place."""
        ...

    async def pool(
        self,
        ready: Callable[[], Awaitable[Sequence[I]]],
        work: Callable[[Visit, I], Awaitable[None]],
        *,
        key: Callable[[I], str],
        limit: int,
    ) -> None:
        """Items with records first, then the order ``ready`` gives, until ``ready`` gives none that is new."""
        ...

    async def get(self, kind: type[D], ref: ArtifactRef | None = None) -> D:
        """Recorded: a visit keeps the row it saw first. Raises Blocked when there is none."""
        ...

    async def found(self, kind: type[D]) -> ArtifactRef:
        """The row that ``get`` would read, recorded: for a document that names it as its parent. Raises Blocked."""
        ...

    async def latest(self, kind: type[D]) -> D:
        """Plain read, allowed only inside ``ready`` and inside steps."""
        ...

    async def attempts(self) -> Sequence[Attempt]:
        """Plain read of the run's bead ledger, only inside ``ready`` and inside steps."""
        ...

    async def tools(self) -> Sequence[str]:
        """What the tool calls of this scope's agent sessions were given, as text, oldest first (at most 10,000). Plain
        read, only inside steps behind those sessions."""
        ...

    async def put(self, doc: Document, *, by: Seat | Actor, parent: ArtifactRef | None = None) -> ArtifactRef:
        """Same bytes of the same kind in the same visit: same row."""
        ...

    async def phase(self, phase: Phase) -> None:
        """Written with the next new act or park, so replays do not fire old phases."""
        ...

    async def emit(self, name: str, event: Event) -> None:
        """Durable, once, by name."""
        ...


class Node(Protocol):
    spec: NodeSpec

    async def visit(self, v: Visit, cfg: Any, /) -> Outcome:
        """Called from the top whenever the visit can go on. Raises Blocked(code, …, forget=(scope, …))."""
        ...


class Engine(Protocol):
    """Liveness only: rows say who is ready and when."""

    def ring(self) -> None:
        """Something is ready. Callable from any thread."""
        ...

    async def stop(self, visit: VisitRef, why: str) -> None:
        """Orders Stop to the sessions of the visit; returns when neither code nor sessions of it run."""
        ...

    async def serve(self) -> None: ...


class Jobs(Protocol):
    """Who starts activations. Embedded: engine/dispatch.py."""

    def ring(self) -> None: ...

    async def serve(self) -> None: ...
