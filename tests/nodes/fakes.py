"""An in-memory Visit that honours the protocol: results by name, and the node runs from its first line after every
session and every answer, so a node that is not re-entrant fails here."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter

from beadmill.artifacts.base import Document
from beadmill.domain.bead import Attempt
from beadmill.domain.ended import Ended, Failed, Lapsed, Ran, Replied, SessionRef, Why
from beadmill.domain.machine import Phase
from beadmill.domain.values import (
    SYSTEM,
    Actor,
    ArtifactRef,
    Event,
    GateAnswer,
    GateRequest,
    Outcome,
    RunId,
    Seat,
    VisitRef,
)
from beadmill.engine.port import Node, Work
from beadmill.errors import Blocked, Parked, TurnFailed
from beadmill.processes.spec import AgentTask, Batch
from beadmill.settings import RunSettings

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item
D = TypeVar("D", bound=Document)
PERSON = Actor("user", "ada", "web")
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
Say = Callable[[AgentTask], "str | Ended"]
Decide = Callable[["Journal", GateRequest], GateAnswer]


class Waiting(Exception):
    """Nothing moves until a person does something."""


@dataclass
class Journal:
    """What survives an activation."""

    agents: Say
    decisions: list[Decide] = field(default_factory=list)
    settings: RunSettings = field(default_factory=RunSettings)
    prompts: Mapping[str, str | None] | None = None
    rows: dict[str, Any] = field(default_factory=dict)  # durable name → result
    artifacts: list[tuple[ArtifactRef, Document]] = field(default_factory=list)
    gates: dict[str, GateRequest] = field(default_factory=dict)
    tasks: dict[str, AgentTask] = field(default_factory=dict)
    events: list[tuple[str, Event]] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    activations: int = 0

    def keep(self, doc: Document) -> ArtifactRef:
        for ref, one in self.artifacts:
            if ref.kind == doc.kind and one == doc:
                return ref
        ref = ArtifactRef(doc.kind, doc.sha256, len(self.artifacts) + 1)
        self.artifacts.append((ref, doc))
        return ref

    def all(self, kind: type[D]) -> list[D]:
        return [doc for _, doc in self.artifacts if isinstance(doc, kind)]

    def last(self, kind: type[D]) -> D:
        return self.all(kind)[-1]

    def forget(self, *scopes: str) -> None:
        """What a retry does."""
        for name in [n for n in self.rows if any(n.startswith(f"{scope}/") for scope in scopes)]:
            del self.rows[name]

    def briefs(self, template: str) -> list[str]:
        """The texts that were sent with this template, in the order of the sessions."""
        return [task.brief.text for task in self.tasks.values() if task.brief.template == template]


class FakeVisit:
    """One activation."""

    def __init__(self, journal: Journal, scope: str = "", seen: set[str] | None = None) -> None:
        self.journal = journal
        self.scope = scope
        self.seen = seen if seen is not None else set()
        self.ref = VisitRef(RunId("run-1"), "node", 1)
        self.settings, self.comment, self.prompts = journal.settings, "", journal.prompts
        self.retry_notes: tuple[str, ...] = ()
        self.work = Work("DEMO-1", "Export lists", "As CSV.", "", "demo", "/repo", "/ws", "beadmill/DEMO-1", "main")

    def at(self, key: str) -> FakeVisit:
        return FakeVisit(self.journal, f"{self.scope}/{key}".lstrip("/"), self.seen)

    async def renewed(self) -> FakeVisit:
        return self

    def _name(self, name: str) -> str:
        full = f"{self.scope}/{name}".lstrip("/")
        if full in self.seen:
            raise RuntimeError(f"name used twice: {full}")
        self.seen.add(full)
        return full

    async def step(self, name: str, act: Callable[..., Awaitable[Any]], *a: Any, **k: Any) -> Any:
        full = self._name(name)
        adapter = TypeAdapter(get_type_hints(act)["return"])
        if full not in self.journal.rows:
            self.journal.rows[full] = adapter.dump_json(await act(*a, **k))
        return adapter.validate_json(self.journal.rows[full])

    async def agent(self, name: str, task: Callable[[], AgentTask]) -> Replied:
        full = self._name(name)
        if full not in self.journal.rows:
            given = task()
            self.journal.tasks[full] = given
            said = self.journal.agents(given)
            ref = SessionRef(f"run-1/node.1/{full}", f"talk-{len(self.journal.tasks)}")
            worked = timedelta(seconds=30)
            end = (
                Replied(session=ref, worked=worked, text=said) if isinstance(said, str) else replace(said, session=ref)
            )
            self.journal.rows[full] = end
            raise Parked(frozenset({full}))
        end = self.journal.rows[full]
        if not isinstance(end, Replied):
            raise TurnFailed("TURN_FAILED", f"the session ended with {type(end).__name__}", end=end)
        return end

    async def command(self, name: str, batch: Callable[[], Batch]) -> Ran:
        raise NotImplementedError(name)

    async def ask(self, name: str, gate: GateRequest) -> GateAnswer:
        full = self._name(name)
        gate = self.journal.gates.setdefault(full, gate)
        if full not in self.journal.rows:
            json.dumps([gate.detail, gate.form])  # both are stored as JSON
            if gate.auto is not None:
                self.journal.rows[full] = GateAnswer(gate.auto, gate.shows, SYSTEM, NOON, "policy")
            elif self.journal.decisions:
                self.journal.rows[full] = self.journal.decisions.pop(0)(self.journal, gate)
            raise Parked(frozenset({full}))
        answer: GateAnswer = self.journal.rows[full]
        return answer

    async def sleep(self, name: str, until: datetime) -> None:
        raise NotImplementedError(name)

    async def map(
        self, items: Sequence[I], work: Callable[[Any, I], Awaitable[T]], *, key: Callable[[I], str], limit: int = 0
    ) -> list[T]:
        results: list[T] = []
        parked: frozenset[Any] = frozenset()
        for item in items:
            try:
                results.append(await work(self.at(key(item)), item))
            except Parked as one:
                parked |= one.waits
        if parked:
            raise Parked(parked)
        return results

    async def pool(self, ready: Any, work: Any, *, key: Any, limit: int) -> None:
        raise NotImplementedError

    async def get(self, kind: type[D], ref: ArtifactRef | None = None) -> D:
        full = self._name(f"get-{kind.kind}-{ref.row}" if ref else f"get-{kind.kind}")
        if full not in self.journal.rows:
            found = [r for r, doc in self.journal.artifacts if isinstance(doc, kind) and (ref is None or r == ref)]
            if not found:
                raise Blocked("ARTIFACT_MISSING", kind.kind)
            self.journal.rows[full] = found[-1]
        return next(doc for r, doc in self.journal.artifacts if r == self.journal.rows[full] and isinstance(doc, kind))

    async def found(self, kind: type[D]) -> ArtifactRef:
        full = self._name(f"found-{kind.kind}")
        known = [r for r, doc in self.journal.artifacts if isinstance(doc, kind)]
        ref: ArtifactRef = self.journal.rows.setdefault(full, known[-1])
        return ref

    async def latest(self, kind: type[D]) -> D:
        return self.journal.last(kind)

    async def attempts(self) -> Sequence[Attempt]:
        return ()

    async def tools(self) -> Sequence[str]:
        return ()

    async def put(self, doc: Document, *, by: Seat | Actor, parent: ArtifactRef | None = None) -> ArtifactRef:
        return self.journal.keep(doc)

    async def phase(self, phase: Phase) -> None:
        if phase not in self.journal.phases:
            self.journal.phases.append(phase)

    async def emit(self, name: str, event: Event) -> None:
        full = self._name(name)
        if full not in self.journal.rows:
            self.journal.rows[full] = True
            self.journal.events.append((full, event))


async def drive(node: Node, cfg: Any, journal: Journal) -> Outcome:
    """Activations until the node ends. Raises Blocked, or Waiting when a gate has no decision."""
    while True:
        before = len(journal.rows)
        journal.activations += 1
        try:
            return await node.visit(FakeVisit(journal), cfg)
        except Parked as parked:
            if len(journal.rows) == before:
                raise Waiting(sorted(parked.waits)) from None


def header(task: AgentTask) -> dict[str, str]:
    """The fields of a brief's first line."""
    first = task.brief.text.split("\n", 1)[0]
    template, *rest = first.removeprefix("Beadmill task: ").split(" | ")
    return {"template": template} | {k: v.strip() for k, _, v in (field.partition(":") for field in rest)}


def table(replies: Mapping[str, Any]) -> Say:
    """By template: a text, an end, a function of the header, or a list used up one by one."""
    left = {name: list(given) if isinstance(given, list) else given for name, given in replies.items()}

    def say(task: AgentTask) -> str | Ended:
        given = left[task.brief.template]
        if isinstance(given, list):
            given = given.pop(0)
        said: str | Ended = given(task) if callable(given) else given
        return said

    return say


def decide(choice: str, payload: Any = None, note: str = "") -> Decide:
    return lambda _journal, gate: GateAnswer(choice, gate.shows, PERSON, NOON, f"key-{choice}", payload, note)


def edit(change: Callable[[Any], Document], choice: str = "approve") -> Decide:
    """A person saves an edit, the gate is bound to the new row, and they decide on that."""

    def act(journal: Journal, gate: GateRequest) -> GateAnswer:
        shown = next(doc for ref, doc in journal.artifacts if ref == gate.shows[0])
        return GateAnswer(choice, (journal.keep(change(shown)),), PERSON, NOON, "key-edit")

    return act


def lapsed() -> Lapsed:
    return Lapsed(session=SessionRef(""), worked=timedelta(seconds=1200))


def failed(why: Why = Why.AUTH) -> Failed:
    return Failed(session=SessionRef(""), why=why, message=why)


def seats(*models: str, **council: Any) -> RunSettings:
    """Settings with one scripted seat per model."""
    return RunSettings.model_validate({"council": {"seats": [f"scripted/{m}" for m in models], **council}})
