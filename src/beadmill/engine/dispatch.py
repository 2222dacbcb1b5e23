"""Embedded Jobs: one dispatcher that claims ready visits, wakes what is due, and carries an activation to its end."""

from __future__ import annotations

import asyncio
import logging
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill import crashpoints
from beadmill.domain.sop import Graph
from beadmill.domain.values import Json, VisitRef
from beadmill.engine.activation import Activation, Renew
from beadmill.engine.port import Node, Work
from beadmill.engine.prices import Prices
from beadmill.engine.visit import NamedVisit
from beadmill.engine.watch import Watcher
from beadmill.errors import BeadmillError, Blocked, Parked, Superseded, Unwritable
from beadmill.processes.alive import all_of
from beadmill.processes.contract import Sessions
from beadmill.processes.room import is_full
from beadmill.settings import RunSettings
from beadmill.store import blobs, tables
from beadmill.store.db import Store
from beadmill.store.journal import attempts, facts, steps, visits
from beadmill.store.journal import sessions as journal_sessions
from beadmill.store.journal.moves import Wait

log = logging.getLogger(__name__)
RESCAN = 5.0  # seconds: a lost bell, another process


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the engine must know of a run to activate one of its nodes."""

    graph: Graph
    settings: RunSettings
    work: Work
    comment: str
    renew: Renew | None
    prompts: Mapping[str, str | None] | None


@dataclass(slots=True)
class Dispatcher:
    """Implements engine.port.Engine and Jobs for one daemon on one home."""

    store: Store
    sessions: Sessions
    nodes: Mapping[str, Node]
    parse: Callable[[str], Graph]  # SOP text → graph
    worker: str
    host: str = "local"
    slots: int = 16
    prices: Prices = field(default_factory=Prices)
    live: visits.Live | None = None  # the settings of a run that are not frozen, as they are now
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _watcher: Watcher | None = None

    @property
    def busy(self) -> int:
        """Activations in memory now: 0 while everything is parked."""
        return len(self._tasks)

    def ring(self) -> None:
        """From any thread. Before ``serve`` it does nothing: the first scan sees every row."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._bell.set)

    async def serve(self) -> None:
        """Until cancelled. Cancelling detaches: agents go on in their runners."""
        self._loop = asyncio.get_running_loop()
        self._watcher = Watcher(self.store, self.sessions, self.host, self.ring, self._halt, self.prices)
        await self.store.write(visits.release_dead)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.serve())
            group.create_task(self._dispatch(group))

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._bell.clear()
            await self._release_strays()
            await self.store.write(visits.wake_due)
            for visit, activation in await self.store.read(visits.ready):
                if len(self._tasks) < self.slots and visit not in self._tasks:
                    self._tasks[visit] = group.create_task(self._activate(visit, activation), name=visit)
            await self._rest()

    async def _release_strays(self) -> None:
        """Visits of ours that run by the books and in no task: their activation was cut off before it could say so."""
        for visit, owner in await self.store.read(lambda conn: visits.running(conn, self.worker)):
            if visit not in self._tasks:
                await self.store.write(lambda tx, v=visit, o=owner: visits.release(tx, v, o))  # type: ignore[misc]

    async def _rest(self) -> None:
        due = await self.store.read(visits.next_due)
        seconds = RESCAN
        if due is not None:
            seconds = min(RESCAN, max(0.0, (datetime.fromisoformat(due) - self.store.clock()).total_seconds()))
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return

    async def stop(self, visit: VisitRef, why: str) -> None:
        """Returns when neither code nor sessions of the visit run."""
        await self._halt(str(visit), why)

    async def _halt(self, visit: str, why: str) -> None:
        task = self._tasks.get(visit)
        if task is not None and task is not asyncio.current_task():
            if self._loop is asyncio.get_running_loop():
                task.cancel()
                await asyncio.wait([task])
            else:
                assert self._loop is not None
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._halt(visit, why), self._loop))
                return
        tokens = await self.store.read(lambda conn: journal_sessions.open_tokens(conn, visit=visit))
        await all_of([self._stop_session(token, why) for token in tokens])

    async def _stop_session(self, token: str, why: str) -> None:
        assert self._watcher is not None
        session = self.sessions.find(token)
        await self._watcher.prove_stopped(token, session, why)
        await self._watcher.book(token, session)

    # --- one activation -----------------------------------------------------------------------------------------
    async def _activate(self, visit: str, activation: int) -> None:
        """The border where every error becomes a blocked gate: no activation ever just fails."""
        owner = uuid.uuid4().hex
        try:
            if await self._claim(visit, activation, owner):
                crashpoints.reach("claimed")
                await self._claimed(visit, owner)
        except Superseded:
            log.info("activation of %s lost its visit", visit)
        except Unwritable as error:  # nothing was recorded, so nothing is lost: the same again when it has passed
            log.warning("%s waits: %s; %s", visit, error.message, error.next)
            await asyncio.sleep(RESCAN)
        except Exception:  # border: job - the store said no; the visit is released at a rescan
            log.exception("activation of %s could not be written", visit)
            await asyncio.sleep(RESCAN)
        finally:
            self._tasks.pop(visit, None)
            self._bell.set()

    async def _claimed(self, visit: str, owner: str) -> None:
        try:
            await self._visit(await self._open(visit, owner))
        except Unwritable:
            raise
        except Exception as error:  # border: job - a bug in a node, a plugin or the engine must not lose the run
            log.exception("activation of %s failed", visit)
            failure = _internal(error)
            await self.store.write(lambda tx: visits.block(tx, visit, owner, failure, phase=None))
            await self._give_back(visit)

    async def _give_back(self, visit: str) -> None:
        """A session that could not be started holds no place while its visit waits for a person."""
        for token in await self.store.read(lambda conn: journal_sessions.open_tokens(conn, visit=visit)):
            session = self.sessions.find(token)
            if session is None or not (session.live() or session.ended()):
                await self._stop_session(token, "it did not start")

    async def _claim(self, visit: str, activation: int, owner: str) -> bool:
        who = {"owner": owner, "worker": self.worker}
        return await self.store.write(lambda tx: visits.claim(tx, visit, activation, **who, live=self.live))

    async def _open(self, visit: str, owner: str) -> Activation:
        ref = VisitRef.parse(visit)
        loaded = await self.store.read(lambda conn: self._load(conn, ref))
        memo = await self.store.read(lambda conn: steps.memo(conn, visit))
        return Activation(
            self.store,
            self.sessions,
            self.host,
            ref,
            owner,
            memo,
            loaded.graph,
            loaded.settings,
            loaded.work,
            loaded.comment,
            loaded.renew,
            loaded.prompts,
        )

    def _load(self, conn: Connection, ref: VisitRef) -> Loaded:
        r = tables.runs
        row = conn.execute(r.select().where(r.c.id == ref.run)).mappings().one()
        graph = self.parse(row["sop_body"])
        v = tables.visits.c
        visit = conn.execute(sa.select(v.comment, v.settings).where(v.id == str(ref))).one()
        frozen = RunSettings.thawed(row["settings"])
        settings = frozen if visit.settings is None else frozen.renewed(visit.settings)
        work = Work(**row["work"])
        renew = self._renew(ref, visit.settings)
        return Loaded(graph, settings, work, visit.comment or "", renew, _prompts(conn, work))

    def _renew(self, ref: VisitRef, begun_with: Json) -> Renew | None:
        """A visit that began before its settings were recorded keeps to what its run froze."""
        live = self.live
        if live is None or begun_with is None:
            return None
        return lambda conn: live(conn, ref.run)

    async def _visit(self, act: Activation) -> None:
        definition = act.graph.nodes[act.ref.node]
        try:
            node = self._node(definition.kind)
            config = node.spec.config(**definition.config)
            if node.spec.place:
                await self._placed(act)
            outcome = await node.visit(NamedVisit(act), config)
            await self._stop_unattended(act)
        except Parked as parked:
            await self._park(act, parked.waits)
        except Blocked as blocked:
            blocked.takes_note = definition.kind in self.nodes and self.nodes[definition.kind].spec.notes
            await self._block(act, blocked)
        else:
            await self.store.write(lambda tx: visits.finish(tx, act.visit, act.owner, act.graph, outcome))
            crashpoints.reach(f"after {act.ref.node}:finish")

    async def _placed(self, act: Activation) -> None:
        """A missing place is a wait like any other lease; it is given back in review and at the end."""
        wait = await self.store.write(lambda tx: facts.place(tx, act.ref.run))
        if wait is not None:
            raise Parked(frozenset({wait}))

    def _node(self, kind: str) -> Node:
        try:
            return self.nodes[kind]
        except KeyError:
            raise Blocked(
                "NODE_KIND_UNKNOWN",
                f"This installation has no node kind {kind!r}",
                next="install what provides it, then retry",
            ) from None

    async def _park(self, act: Activation, waits: frozenset[Wait]) -> None:
        await self._stop_unattended(act)
        await self.store.write(lambda tx: visits.park(tx, act.visit, act.owner, waits, phase=act.pending))
        crashpoints.reach(f"after {act.ref.node}:park")

    async def _block(self, act: Activation, blocked: Blocked) -> None:
        await self._stop_unattended(act)
        await self.store.write(lambda tx: visits.block(tx, act.visit, act.owner, blocked, phase=act.pending))

    async def _stop_unattended(self, act: Activation) -> None:
        """Rule 15: sessions of this visit that the activation did not re-enter are stopped, their attempts replaced."""
        live = await self.store.read(lambda conn: journal_sessions.open_tokens(conn, visit=act.visit))
        orphans = [token for token in live if token not in act.entered]
        await all_of([self._stop_session(token, "nobody waits for it any more") for token in orphans])
        if orphans:
            await self.store.write(lambda tx: attempts.replace_open(tx, act.visit, orphans))


def _prompts(conn: Connection, work: Work) -> Mapping[str, str | None] | None:
    if work.prompts is None:
        return None
    return {name: blobs.get_blob(conn, sha).decode() if sha else None for name, sha in work.prompts.items()}


def _internal(error: Exception) -> Blocked:
    if isinstance(error, BeadmillError):  # something outside said no: its own words, not ours
        return Blocked(error.code, error.message, details=error.details, kept=error.kept, next=error.next)
    if is_full(error):
        return Blocked(
            "DISK_FULL",
            f"The disk is full: {error}",
            kept="everything recorded so far",
            next="make room, then retry",
        )
    details: dict[str, Json] = {"traceback": "".join(traceback.format_exception(error))[-8000:]}
    return Blocked(
        "INTERNAL",
        f"Beadmill itself failed: {type(error).__name__}: {error}",
        details=details,
        kept="everything recorded so far",
        next="retry; if it happens again, report it with these details",
    )
