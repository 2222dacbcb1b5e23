"""The daemon's side of a session: a folder that it starts, follows, orders and, when needed, sweeps."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from beadmill import crashpoints, redact
from beadmill.domain.values import Access, Json
from beadmill.errors import Conflict, Unavailable
from beadmill.processes import folder as files
from beadmill.processes import forks, procs
from beadmill.processes.alive import all_of, still_running
from beadmill.processes.environment import for_runner, marks
from beadmill.processes.folder import State
from beadmill.processes.servers import Servers, is_server
from beadmill.processes.session import FolderSession, Pause, folder_name, read_all
from beadmill.processes.spec import AgentTask, Batch, BoxSpec, Service
from beadmill.processes.starting import LOG, Starter
from beadmill.processes.wire import encode, encode_work

START_PATIENCE: Final = 20.0  # seconds until `started` must be there


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where the runner finds an agent. ``env`` names variables of the daemon that it may see (a provider's key);
    ``site`` lets it import installed packages, for plugins that are more than standard library. ``server_idle`` is how
    many seconds the agent's server outlives its last session; None = it has none. ``server_files`` are what a server
    reads when it starts: a change makes a new one."""

    path: str
    options: Mapping[str, Json] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    site: bool = False
    server_idle: float | None = None
    server_files: tuple[Path, ...] = ()


class FolderSessions:
    """contract.Sessions over ``root``. ``adapters`` by agent name, ``sandboxes`` by name as dotted paths."""

    def __init__(
        self,
        root: Path,
        *,
        adapters: Mapping[str, Adapter],
        sandboxes: Mapping[str, str],
        starter: Starter | None = None,
    ) -> None:
        self.root, self.adapters, self.sandboxes = root, adapters, sandboxes
        self._starter = starter or forks.of_this_process()
        # A copied home has the same tokens; what its marks begin with tells its processes from ours.
        self._home = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12] + "."
        self.servers = Servers(root, self._begin)

    def folder(self, token: str) -> Path:
        return self.root / folder_name(token)

    def find(self, token: str) -> FolderSession | None:
        folder = self.folder(token)
        return FolderSession(folder, token) if (folder / "spec.json").exists() else None

    def all(self) -> Iterator[FolderSession]:
        """Every session with a readable spec."""
        yield from read_all(sorted(path.parent for path in self.root.glob("*/spec.json")))

    def _open(self) -> Iterator[FolderSession]:
        """Folders that have an end are passed by unread: there are as many as there ever were sessions."""
        folders = (path.parent for path in self.root.glob("*/spec.json"))
        yield from read_all(sorted(folder for folder in folders if not (folder / "end.json").exists()))

    def sweep_temporary(self) -> tuple[Path, ...]:
        """Removes what a killed writer left half-written; it never was the file. For start-up, before any session.

        Only folders without an end are looked into: there are as many others as there ever were sessions.
        """
        gone: list[Path] = []
        for folder in (path for path in self.root.glob("*") if not (path / "end.json").exists()):
            found = [path for path in folder.glob(".*") if path.name.startswith(files.TEMPORARY)]
            if found and files.state(folder) is not State.LIVE:
                gone += found
        for path in gone:
            path.unlink(missing_ok=True)
        return tuple(gone)

    async def sweep(self, owned: Collection[str]) -> tuple[str, ...]:
        """Ends what lost sessions left running, and sessions that nobody owns: not among the tokens ``owned``, for
        whoever put the database back to an older state. Returns the tokens of what it ended. For start-up.

        Raises Unavailable with all that could not be ended, behind having tried everything.
        """
        swept = [s for s in self._open() if self._stray(s, owned)]
        await all_of([s.stop("nobody waits for it any more") for s in swept])
        return tuple(s.token for s in swept)

    def _stray(self, session: FolderSession, owned: Collection[str]) -> bool:
        """A server belongs to whoever uses it, and ends by itself when nobody does."""
        if files.state(session.folder) is State.LOST:
            return True
        return session.token not in owned and not is_server(session.token)

    async def sweep_gone(self, token: str) -> None:
        """Ends what still runs of a session whose folder somebody deleted. Raises Unavailable when it cannot."""
        left = await procs.end_all(lambda: procs.of_token(token, self._home))
        if left:
            raise still_running(token, left)

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> FolderSession:
        """Raises Unavailable when the agent or sandbox is not registered, the runner cannot start, a lost session's
        processes cannot be ended, or this system cannot follow processes at all."""
        procs.require()
        session = FolderSession(self.folder(token), token)
        spec = self._prepare(session, work, box)
        match files.state(session.folder):
            case State.NEW:
                await self._choose_server(session, work, box)
                await self._start(session, spec)
            case State.LOST:
                await session.stop("its runner is gone")
            case _:
                pass
        return session

    async def _choose_server(self, session: FolderSession, work: AgentTask | Batch, box: BoxSpec) -> None:
        """Starts or finds the server that the agent needs, if it needs one. Raises Unavailable where none can be reached."""
        adapter = self.adapters.get(work.seat.agent) if isinstance(work, AgentTask) else None
        if adapter is None or adapter.server_idle is None or not isinstance(work, AgentTask):
            return
        if box.policy.network == "allow-list":  # in a network of its own no session would reach it
            raise Unavailable(
                f"{work.seat.agent} is a server that its sessions reach over the network, so no allow-list can hold it",
                code="SANDBOX_POLICY",
                next="Set network to on or off, or take an agent that is not a server.",
            )
        tree = box.workspace / "empty" / "servers" if work.access is Access.NONE else work.cwd
        service = Service(work.seat.agent, work.access, tree, timedelta(seconds=adapter.server_idle))
        like = [encode(adapter), str(tree), *(files.digest(path) for path in adapter.server_files)]
        server = await self.servers.choose(session.token, service, box, like=like)
        files.write_json(session.folder / "server.json", {"folder": str(server)})

    async def _begin(self, session: FolderSession, work: Service, box: BoxSpec) -> None:
        await self._start(session, self._prepare(session, work, box))

    def _prepare(self, session: FolderSession, work: AgentTask | Batch | Service, box: BoxSpec) -> Mapping[str, Json]:
        """The first spec of a token wins: later calls attach to it."""
        path = session.folder / "spec.json"
        spec: Mapping[str, Json] | None = files.read_json(path)
        if spec is None:
            session.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            session.folder.mkdir(mode=0o700, exist_ok=True)
            crashpoints.reach("session.folder")
            files.write_json(path, self._spec(session.token, work, box), replace=False)
            spec = files.read_json(path)
            crashpoints.reach("session.spec")
        if spec is None or spec["token"] != session.token:
            raise Conflict(f"{session.folder} is not the folder of session {session.token}", code="SESSION_FOLDER")
        return spec

    def _spec(self, token: str, work: AgentTask | Batch | Service, box: BoxSpec) -> Json:
        if box.sandbox not in self.sandboxes:
            raise Unavailable(f"there is no sandbox {box.sandbox!r}", code="NO_SANDBOX")
        adapter = None
        if not isinstance(work, Batch):
            agent = work.agent if isinstance(work, Service) else work.seat.agent
            adapter = self.adapters.get(agent)
            if adapter is None:
                raise Unavailable(f"there is no agent {agent!r}", code="NO_AGENT")
        return {
            "token": token,
            "mark": self._home + secrets.token_hex(16),
            "work": encode_work(work),
            "box": encode(box),
            "sandbox": self.sandboxes[box.sandbox],
            "adapter": encode(adapter),
        }

    async def _start(self, session: FolderSession, spec: Mapping[str, Json]) -> None:
        adapter = spec["adapter"] or {}
        env = for_runner(os.environ, also=tuple(adapter.get("env") or ()))
        env |= marks(token=session.token, mark=session.mark)
        runner = self._starter.start(session.folder, env, redact.known(), site=bool(adapter.get("site")))
        crashpoints.reach("session.spawned")
        patience, pause = time.monotonic() + START_PATIENCE, Pause(0.02)
        while True:
            code = runner.code()
            if (session.folder / "started").exists():
                return
            # A runner that lost the race for the lock exits with 0: then the winner is about to say `started`.
            if code or time.monotonic() > patience:
                log = (session.folder / LOG).read_text(errors="replace")
                raise Unavailable(
                    f"the runner of session {session.token} did not start: {log[-2000:].strip() or 'no word from it'}",
                    code="RUNNER",
                    kept="the session can be started again",
                )
            await pause()
