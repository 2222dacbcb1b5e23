"""NamedVisit: the named journal as a node sees it (design contracts.md, rules 1-16)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from beadmill import crashpoints
from beadmill.artifacts.base import Document
from beadmill.domain.bead import Attempt
from beadmill.domain.ended import Ran, Replied
from beadmill.domain.machine import Phase
from beadmill.domain.values import Actor, ArtifactRef, Event, GateAnswer, GateRequest, Seat, VisitRef
from beadmill.engine import asking, attending, codec, parallel, turns
from beadmill.engine.activation import Activation
from beadmill.engine.port import Visit, Work
from beadmill.errors import Blocked, Superseded
from beadmill.processes.spec import AgentTask, Batch
from beadmill.settings import RunSettings
from beadmill.store import blobs
from beadmill.store.db import Tx
from beadmill.store.journal import attempts, moves
from beadmill.store.journal.visits import set_phase

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item
D = TypeVar("D", bound=Document)


class NamedVisit:
    """One scope of one activation. Implements engine.port.Visit."""

    def __init__(self, act: Activation, scope: str = "", settings: RunSettings | None = None) -> None:
        self._act = act
        self._scope = scope
        self._settings = settings or act.settings

    @property
    def scope(self) -> str:
        return self._scope

    @property
    def ref(self) -> VisitRef:
        return self._act.ref

    @property
    def settings(self) -> RunSettings:
        return self._settings

    @property
    def work(self) -> Work:
        return self._act.work

    @property
    def comment(self) -> str:
        return self._act.comment

    @property
    def prompts(self) -> Mapping[str, str | None] | None:
        return self._act.prompts

    @property
    def retry_notes(self) -> tuple[str, ...]:
        return self._act.retry_notes(self.scope)

    def at(self, key: str) -> NamedVisit:
        return NamedVisit(self._act, f"{self.scope}/{key}" if self.scope else key, self._settings)

    async def renewed(self) -> NamedVisit:
        renew = self._act.renew
        if renew is None:
            return self
        full = self._name("settings")
        row = self._act.known(full)
        if row is None:
            row = await self._act.record(full, "settings", await self._act.store.read(renew))
        if row.result is None:
            return self
        return NamedVisit(self._act, self._scope, self._act.renewed(row.result))

    def _name(self, name: str) -> str:
        full = f"{self.scope}/{name}" if self.scope else name
        self._act.claim_name(full)
        crashpoints.reach(f"before {self.ref.node}/{full}")
        return full

    async def step(self, name: str, act: Callable[P, Awaitable[T]], *a: P.args, **k: P.kwargs) -> T:
        full = self._name(name)
        row = self._act.known(full)
        if row is None:
            if "key" not in k and codec.takes_key(act):
                k["key"] = self._act.key(full)
            value = await self._guarded(full, act, *a, **k)
            crashpoints.reach(f"acted {self.ref.node}/{full}")
            row = await self._act.record(full, "step", codec.encode(act, value))
        result: T = codec.decode(act, full, await self._act.result(row))
        return result

    async def _guarded(self, full: str, act: Callable[..., Awaitable[T]], *a: Any, **k: Any) -> T:
        """A Blocked from inside an act forgets the act's own name unless it says otherwise."""
        try:
            return await act(*a, **k)
        except Blocked as error:
            error.forget = error.forget or (full,)
            raise

    async def agent(self, name: str, task: Callable[[], AgentTask]) -> Replied:
        return await turns.agent(self._act, self._name(name), task, forget=self.scope)

    async def command(self, name: str, batch: Callable[[], Batch]) -> Ran:
        return await turns.command(self._act, self._name(name), batch, forget=self.scope)

    async def ask(self, name: str, gate: GateRequest) -> GateAnswer:
        return await asking.ask(self._act, self._name(name), gate)

    async def sleep(self, name: str, until: datetime) -> None:
        await asking.sleep(self._act, self._name(name), until)

    async def map(
        self, items: Sequence[I], work: Callable[[Visit, I], Awaitable[T]], *, key: Callable[[I], str], limit: int = 0
    ) -> list[T]:
        return await parallel.run_map(
            items, lambda item: self._item(work, item, key(item)), key=key, begun=self._begun, limit=limit
        )

    async def pool(
        self,
        ready: Callable[[], Awaitable[Sequence[I]]],
        work: Callable[[Visit, I], Awaitable[None]],
        *,
        key: Callable[[I], str],
        limit: int,
    ) -> None:
        await parallel.run_pool(
            ready, lambda item: self._item(work, item, key(item)), key=key, begun=self._begun, limit=limit
        )

    async def _item(self, work: Callable[[Visit, I], Awaitable[T]], item: I, key: str) -> T:
        scope = self.at(key)
        try:
            return await work(scope, item)
        except Blocked as error:
            error.forget = error.forget or (scope.scope,)
            raise

    def _begun(self, key: str) -> bool:
        return self._act.has_records(self.at(key).scope)

    async def get(self, kind: type[D], ref: ArtifactRef | None = None) -> D:
        full = self._name(f"get-{kind.kind}-{ref.row}" if ref else f"get-{kind.kind}")
        row = self._act.known(full)
        if row is None:
            found = ref.row if ref else (await self._newest(kind)).ref.row
            row = await self._act.record(full, "get", found)
        return await self._document(kind, int(row.result))

    async def found(self, kind: type[D]) -> ArtifactRef:
        full = self._name(f"found-{kind.kind}")
        row = self._act.known(full)
        if row is None:
            row = await self._act.record(full, "get", (await self._newest(kind)).ref.row)
        at = int(row.result)
        return await self._act.store.read(lambda conn: blobs.artifact(conn, at).ref)

    async def latest(self, kind: type[D]) -> D:
        return await self._document(kind, (await self._newest(kind)).ref.row)

    async def _newest(self, kind: type[D]) -> blobs.ArtifactRow:
        found = await self._act.store.read(lambda conn: blobs.newest(conn, self.ref.run, kind.kind))
        if found is None:
            raise Blocked(
                "ARTIFACT_MISSING",
                f"This run has no {kind.kind.replace('_', ' ')}",
                next="send the run back to the node that makes it",
            )
        return found

    async def _document(self, kind: type[D], row: int) -> D:
        data = await self._act.store.read(lambda conn: blobs.get_blob(conn, blobs.artifact(conn, row).ref.sha256))
        return kind.parse(data)

    async def attempts(self) -> Sequence[Attempt]:
        return await self._act.store.read(lambda conn: attempts.listed(conn, self.ref.run))

    async def tools(self) -> Sequence[str]:
        return await attending.tools(self._act, self._scope)

    async def put(self, doc: Document, *, by: Seat | Actor, parent: ArtifactRef | None = None) -> ArtifactRef:
        author = f"seat:{by}" if isinstance(by, Seat) else str(by)
        known = await self._act.store.read(lambda conn: blobs.same_document(conn, doc, self._act.visit))
        if known is not None:
            return known
        phase = self._act.pending
        ref = await self._act.write(lambda tx: self._put(tx, doc, author, parent))
        self._act.written(phase)
        crashpoints.reach(f"after {self.ref.node}/put {doc.kind}")
        return ref

    def _put(self, tx: Tx, doc: Document, author: str, parent: ArtifactRef | None) -> ArtifactRef:
        if not moves.owned(tx, self._act.visit, self._act.owner):
            raise Superseded(self._act.visit)
        set_phase(tx, self._act.visit, self._act.pending)
        return blobs.put_document(
            tx, doc, run=self.ref.run, visit=self._act.visit, author=author, parent=parent.row if parent else None
        )

    async def phase(self, phase: Phase) -> None:
        self._act.pending = phase

    async def emit(self, name: str, event: Event) -> None:
        full = self._name(name)
        if self._act.known(full) is None:
            await self._act.record(full, "emit", None, event)
