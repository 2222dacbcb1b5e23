"""House: every contract with its implementation, built from Settings. The only constructor of adapters."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from beadmill.agents import registry
from beadmill.agents.contract import Agent
from beadmill.briefs import Briefs
from beadmill.domain.sop import Graph
from beadmill.domain.values import Json, Seat
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import Node, Work
from beadmill.engine.prices import Prices
from beadmill.errors import NotFound, Unavailable
from beadmill.forges import registry as forges
from beadmill.forges.contract import Forge
from beadmill.forges.credentials import Tokens
from beadmill.git import credentials, trust
from beadmill.operations._cascade import live_settings
from beadmill.operations.outside import Outside
from beadmill.operations.ports import Ports
from beadmill.processes import procs
from beadmill.processes.contract import Servers
from beadmill.processes.sessions import Adapter, FolderSessions
from beadmill.profile import Profile
from beadmill.settings import Settings
from beadmill.sops import kind_specs, load
from beadmill.store.db import Store
from beadmill.store.evidence import EvidenceFiles
from beadmill.store.journal import sessions as journal
from beadmill.store.ledger import Changes, Facts, Ledger, QaBooks
from beadmill.store.mirror import Mirror
from beadmill.workspaces.sandboxes import choice
from beadmill.workspaces.worktrees import Worktrees

log = logging.getLogger("beadmill.app")
RESTART = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Catalog:
    """The registered agents with their options from the settings. ``folder``: where installed ones lie, by name."""

    settings: Mapping[str, dict[str, Json]]
    folder: Path

    def names(self) -> Sequence[str]:
        return registry.names(self.settings)

    def load(self, name: str) -> Agent:
        """Raises NotFound."""
        if name not in self.names():
            raise NotFound(f"There is no agent {name!r}", code="NO_AGENT", next="beadmill agent list")
        return registry.load(name, self.options(name))

    def options(self, name: str) -> dict[str, Json]:
        return {"prefix": str(self.folder / name), **self.settings.get(name, {})}

    def adapters(self) -> dict[str, Adapter]:
        """What the runner needs to load each agent in its own process."""
        return {name: registry.adapter(name, self.options(name)) for name in self.names()}


class EngineThread:
    """The engine on its own thread and loop, so that a busy page never delays a run, nor the other way round."""

    def __init__(self, recover: Callable[[], Awaitable[None]], *services: Callable[[], Awaitable[None]]) -> None:
        """``recover`` is done before any service starts."""
        self._recover, self._services = recover, services
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        self._loop = loop = asyncio.new_event_loop()
        self._task = loop.create_task(self._serve())
        self._ready.set()
        try:
            loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            log.info("the engine has detached")
        except BaseException:
            log.exception("the engine ended")
            os._exit(70)  # a daemon without an engine would look alive and do nothing
        finally:
            loop.close()

    async def _serve(self) -> None:
        await self._recover()
        async with asyncio.TaskGroup() as group:
            for service in self._services:
                group.create_task(_forever(service))

    def stop(self, patience: float) -> None:
        """Detaches: agents go on in their runners, git that runs is let finish."""
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(patience)


async def _forever(service: Callable[[], Awaitable[None]]) -> None:
    """A full disk or a locked database passes; until then the service is started again and again."""
    while True:
        try:
            await service()
        except Exception:  # border: task-group root - one service must not take the others along
            log.exception("a service failed; it starts again in %s s", RESTART)
            await asyncio.sleep(RESTART)


@dataclass(frozen=True, slots=True)
class House:
    """What the daemon serves."""

    settings: Settings
    store: Store
    ports: Ports
    engine: EngineThread

    def open(self) -> None:
        """Checks and migrates the store, starts the engine. Raises Unavailable."""
        procs.require()
        self.store.check()
        self.store.migrate(self.settings.home / "backups")
        self.engine.start()

    def close(self, patience: float) -> None:
        self.engine.stop(patience)
        self.store.close()


def build(settings: Settings, *, more: Mapping[str, Node] | None = None) -> House:
    """Opens nothing yet: ``House.open`` does. ``more`` are node kinds beside the built-in ones (plugins, tests)."""
    (settings.home / "sessions").mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(settings.url, synchronous=settings.synchronous)
    trust.keep(settings.home / "trust")
    tokens = Tokens(settings.home)
    credentials.keep(tokens.for_git)
    forge = functools.partial(forge_of, tokens)
    catalog = Catalog(settings.agents, settings.home / "agents")
    sessions = FolderSessions(settings.home / "sessions", adapters=catalog.adapters(), sandboxes=choice.PATHS)
    trees = Worktrees()
    nodes = {**build_nodes(settings, store, catalog, trees, forge=forge, servers=sessions.servers), **(more or {})}
    prices = Prices(settings.prices)
    worker = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    profile = Profile(settings)
    live = live_settings(profile)
    engine = Dispatcher(store, sessions, nodes, graph_of, worker=worker, prices=prices, live=live)
    kinds = kind_specs(node.spec for node in nodes.values())
    ports = Ports(settings, store, engine, sessions, catalog, kinds, trees=trees, prices=prices, profile=profile)
    recover = functools.partial(sweep, store, sessions, settings.home)
    services = (engine.serve, Mirror(store, settings.home).serve, Outside(ports, forge).serve)
    return House(settings, store, ports, EngineThread(recover, *services))


async def sweep(store: Store, sessions: FolderSessions, home: Path) -> None:
    """Nothing runs on that nobody waits for: lost sessions, and those of no open row."""
    try:
        for path in (*EvidenceFiles(home / "evidence").sweep(), *sessions.sweep_temporary()):
            log.warning("removed a half-written file: %s", path)
        swept = await sessions.sweep(set(await store.read(journal.open_tokens)))
    except (
        Unavailable,
        OSError,
        SQLAlchemyError,
    ):  # said again when its visit is reached: no tree is given away before
        log.exception("not every session could be ended")
    else:
        if swept:
            log.warning("sessions were ended that were lost or that nobody owned: %s", ", ".join(swept))


@functools.lru_cache(maxsize=64)
def graph_of(body: str) -> Graph:
    """A run pins its text, so one parse serves all its activations."""
    return load(body, name="run").graph


def build_nodes(
    settings: Settings,
    store: Store,
    catalog: Catalog,
    trees: Worktrees,
    *,
    forge: Callable[[Work], Forge],
    servers: Servers,
) -> dict[str, Node]:
    """Every node kind by name."""
    from beadmill.nodes.beads import BeadsNode
    from beadmill.nodes.build import BuildNode
    from beadmill.nodes.cleanup import CleanupNode
    from beadmill.nodes.gate import GateNode
    from beadmill.nodes.integrate import IntegrateNode
    from beadmill.nodes.interview import InterviewNode
    from beadmill.nodes.prd import PrdNode
    from beadmill.nodes.preflight import PreflightNode
    from beadmill.nodes.pull_request import PullRequestNode
    from beadmill.nodes.qa import QaNode
    from beadmill.nodes.scan import ScanNode
    from beadmill.nodes.script import ScriptNode
    from beadmill.nodes.setup import SetupNode
    from beadmill.nodes.verify import VerifyNode

    briefs, ledger, facts = Briefs(settings.home / "prompts"), Ledger(store), Facts(store)
    nodes: list[Node] = [
        ScanNode(trees, briefs),
        InterviewNode(briefs),
        PrdNode(briefs),
        BeadsNode(briefs),
        PreflightNode(
            trees=trees, agents=lambda seat: agent_of(catalog, seat), sandbox=choice.load, forge=forge, facts=facts
        ),
        SetupNode(trees=trees, ledger=ledger, briefs=briefs),
        BuildNode(trees=trees, ledger=ledger, briefs=briefs),
        VerifyNode(trees=trees, ledger=ledger, briefs=briefs),
        QaNode(trees=trees, ledger=ledger, briefs=briefs, books=QaBooks(store)),
        IntegrateNode(trees=trees, ledger=ledger, briefs=briefs),
        PullRequestNode(trees=trees, briefs=briefs, forge=forge, changes=Changes(store), facts=facts),
        CleanupNode(trees=trees, servers=servers),
        ScriptNode(trees=trees, ledger=ledger),
        GateNode(),
    ]
    return {node.spec.kind: node for node in nodes}


def agent_of(catalog: Catalog, seat: Seat) -> Agent:
    """Raises Unavailable for an agent nobody registered."""
    try:
        return catalog.load(seat.agent)
    except NotFound as error:
        raise Unavailable(error.message, code=error.code, next=error.next) from error


def forge_of(tokens: Tokens, work: Work) -> Forge:
    return forges.load(work.forge, Path(work.repository), remote=work.remote, tokens=tokens)
