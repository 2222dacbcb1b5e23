"""House: the contracts of one installation, built from its settings. The only constructor of adapters."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from beadmill import sops
from beadmill.agents import registry
from beadmill.agents.contract import Agent
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import Node
from beadmill.errors import NotFound
from beadmill.nodes.gate import GateNode
from beadmill.nodes.script import ScriptNode
from beadmill.operations.ports import Ports
from beadmill.processes.sessions import Adapter, FolderSessions
from beadmill.settings import Settings
from beadmill.store.db import Store
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Worktrees

SANDBOXES = {"host": "beadmill.workspaces.sandboxes.host:HostSandbox"}


@dataclass(frozen=True, slots=True)
class Catalog:
    """The registered agents with the options of this installation."""

    settings: Settings

    def names(self) -> Sequence[str]:
        return sorted(registry.paths())

    def load(self, name: str) -> Agent:
        if name not in registry.paths():
            raise NotFound(f"there is no agent {name}", code="AGENT_NOT_FOUND", next="beadmill agent list")
        return registry.load(name, self.settings.agents.get(name, {}))

    def adapters(self) -> dict[str, Adapter]:
        return {name: Adapter(path, self.settings.agents.get(name, {})) for name, path in registry.paths().items()}


@dataclass(slots=True)
class House:
    settings: Settings
    ports: Ports
    engine: Dispatcher
    _thread: threading.Thread | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        """Checks and migrates the store, starts the engine on its own thread. Raises Unavailable."""
        self.ports.store.check()
        self.ports.store.migrate(self.settings.home / "backups")
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="engine", daemon=True)
        self._thread.start()

    async def _live(self) -> None:
        serving = asyncio.create_task(self.engine.serve())
        await asyncio.to_thread(self._stop.wait)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    def close(self, patience: float) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)
        self.ports.store.close()


def build(settings: Settings, *, more: Mapping[str, Node] | None = None) -> House:
    """``more`` are node kinds beside the built-in ones (plugins, tests)."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    sessions_root = settings.home / "sessions"
    sessions_root.mkdir(exist_ok=True, mode=0o700)
    store = Store(settings.url, synchronous=settings.synchronous)
    catalog = Catalog(settings)
    sessions = FolderSessions(sessions_root, adapters=catalog.adapters(), sandboxes=SANDBOXES)
    nodes = {**_nodes(store), **(more or {})}
    host = socket.gethostname()
    engine = Dispatcher(
        store, sessions, nodes, lambda body: sops.load(body, name="run").graph, worker=uuid.uuid4().hex, host=host
    )
    kinds = sops.kind_specs(node.spec for node in nodes.values())
    return House(settings, Ports(settings, store, engine, sessions, catalog, kinds), engine)


def _nodes(store: Store) -> dict[str, Node]:
    trees, ledger = Worktrees(), Ledger(store)
    return {"script": ScriptNode(trees=trees, ledger=ledger), "gate": GateNode()}
