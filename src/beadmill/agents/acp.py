"""Any CLI that speaks the Agent Client Protocol over its pipes. One process per turn, the conversation is loaded again.

What differs between the CLIs is data: acp_cli.py. The daemon's side is standard library; ``drive`` imports the
package ``agent-client-protocol``, so the runner loads this adapter with its site packages.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from beadmill.agents import _install, _spent, acp_options, acp_permission
from beadmill.agents._lines import event
from beadmill.agents.acp_cli import describe
from beadmill.agents.acp_stream import AcpStream, Broken
from beadmill.agents.contract import Capabilities, Child, Installed, Model, Say, SessionIO, quiet
from beadmill.agents.opencode_home import require_no_code
from beadmill.domain.ended import Ended
from beadmill.domain.values import Access, Json
from beadmill.errors import Unavailable
from beadmill.processes import executables, within
from beadmill.processes.environment import allowed
from beadmill.processes.spec import AgentTask, EventKind

if TYPE_CHECKING:
    from beadmill.agents.acp_talk import Talk

EXIT: Final = 3.0  # seconds for an agent that closed its output
NUDGES: Final = 3  # times a turn that ended over a refused call is taken up again
NUDGE: Final = (
    "That call was refused by the rules of this session, not by a person: with access {access!r} you cannot do it. "
    "Do not try it again. Go on with what you may do, and give the reply that you were asked for."
)
_WRITES: Final = (Access.WRITE, Access.ONLINE)


class AcpAgent:
    """Options: ``name`` of the agent · ``path`` of the executable · ``prefix`` where install puts it · ``home`` where its sign-in lies (default ~) · every
    field of the table (acp_cli.Cli) · ``adapter`` the entry of the table to start from."""

    def __init__(self, options: Mapping[str, Json]) -> None:
        self.name = str(options.get("name") or options.get("adapter") or "acp")
        self.cli = describe(self.name, options)
        self.can = Capabilities(resume=self.cli.resume, cost=self.cli.cost, efforts=self.cli.efforts)
        self._chosen = str(options.get("path") or "")
        self._path = self._chosen or next(iter(self.cli.argv), "")
        self._prefix = _install.prefix(options, self.name)
        self._home = Path(str(options.get("home") or "~")).expanduser().absolute()

    @property
    def auth_paths(self) -> tuple[Path, ...]:
        """Nothing of its configuration, and no folder: what lies there would run in the user's next session."""
        return tuple(self._home / path for path in self.cli.auth)

    @property
    def read_paths(self) -> tuple[Path, ...]:
        """The packages around a program that npm installed: a script needs them beside itself."""
        program = self._program() if self._path else None
        packages = [place for place in program.parents if place.name == "node_modules"] if program else []
        return tuple(packages[-1:])

    @property
    def env_names(self) -> tuple[str, ...]:
        """Variables of the daemon that the runner hands on."""
        return self.cli.keys

    # --- what is installed

    async def detect(self) -> Installed | None:
        program = self._program()
        if program is None:
            return None
        executables.require_trusted(program, os.environ)
        note = "" if self.cli.verified else "unverified: no test of Beadmill drives this CLI"
        if not self.cli.version_argv:
            return Installed(program, "", signed_in=self._signed_in(), note=note, sign_in=self.cli.sign_in)
        argv = [str(program), *self.cli.version_argv[1:]]
        code, out, err = await executables.ask(argv, env={**self._environment(), "HOME": str(self._home)})
        found = re.search(r"\d+(?:\.\d+)+(?:-[\w.]+)?", out)
        if code != 0 or found is None:
            note = f"{' '.join(self.cli.version_argv)} failed: {err.strip()[-200:]}"
        version = found[0] if found else ""
        return Installed(program, version, signed_in=self._signed_in(), note=note, sign_in=self.cli.sign_in)

    async def install(self, say: Say = quiet) -> Installed:
        if not self.cli.package:
            raise Unavailable(
                f"nobody said how to install {self.name}", code="AGENT_INSTALL", next="install it by hand"
            )
        return await _install.installed(self.cli.package, self._prefix, self.detect, say=say)

    async def models(self) -> Sequence[Model]:
        """None: such a CLI names its models inside a session only."""
        return ()

    def _program(self) -> Path | None:
        """Raises Unavailable when the settings name an agent without saying what to run."""
        if not self._path:
            raise Unavailable(
                f"there is no argv for {self.name}", code="AGENT_MISSING", next=f'set [agents.{self.name}] argv = ["…"]'
            )
        path = self._environment().get("PATH")
        given = "/" in self._path or bool(self._chosen)
        found = executables.find(self._path, path=path) if given else _install.find(self._path, self._prefix, path=path)
        return None if found is None else _install.native(found, self.cli.native)

    def _environment(self) -> dict[str, str]:
        keys = {name: os.environ[name] for name in self.cli.keys if name in os.environ}
        told = {name: value.replace("{home}", str(self._home)) for name, value in self.cli.env.items()}
        return {**allowed(os.environ), **keys, **told}

    def _signed_in(self) -> bool | None:
        env = self._environment()
        if any(env.get(name) for name in self.cli.signs_in):
            return True
        if any((self._home / path).exists() for path in self.cli.signed_in_by):
            return True
        return False if self.cli.signed_in_by else None

    # --- one turn

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        program = self._program()
        if program is None:
            hint = f"beadmill agent install {self.name}" if self.cli.package else "install it by hand"
            raise Unavailable(
                f"{self.name} is not installed: {self._path!r} was not found", code="AGENT_MISSING", next=hint
            )
        executables.require_trusted(program, os.environ)
        if self.cli.runs_plugins and not self.cli.trust_project:
            require_no_code(task.cwd, agent=self.name)
        self._lend(io.workspace / "home")
        conversation = task.resume.conversation if task.resume is not None else ""
        stream = AcpStream(self.cli, io.token, spent=_before(io, self.name, conversation), model=task.seat.model)
        argv = [str(program), *self.cli.argv[1:], *self._flags(task)]
        child = await io.spawn(argv, env=self._variables(task.access), cwd=task.cwd, stdin=None)
        try:
            await self._follow(child, stream, task, io)
            return stream.end(await _exit(child, stream), child.stderr_tail())
        finally:
            if stream.conversation and stream.spent is not None:
                _spent.keep(io.workspace, self.name, stream.conversation, {"cost_usd": stream.spent})
            await child.terminate()

    def _flags(self, task: AgentTask) -> Iterator[str]:
        if task.access not in _WRITES:
            yield from self.cli.limited_argv
        if task.seat.model:
            yield from (part.replace("{model}", task.seat.model) for part in self.cli.model_argv)
        if task.seat.effort:
            yield from (part.replace("{effort}", task.seat.effort) for part in self.cli.effort_argv)

    def _variables(self, access: Access) -> dict[str, str]:
        limits = {} if access in _WRITES else self.cli.limited_env
        return {k: v for k, v in {**self._environment(), **limits}.items() if k not in ("HOME", "TMPDIR")}

    def _lend(self, home: Path) -> None:
        """The session has a HOME of its own: the user's sign-in is linked into it, his configuration copied."""
        for path in self.cli.auth:
            if (self._home / path).exists():
                within.link(home, path, self._home / path)
        for path in self.cli.copied:
            if (self._home / path).is_file():
                within.write(home, path, (self._home / path).read_text(encoding="utf-8", errors="replace"))

    async def _follow(self, child: Child, stream: AcpStream, task: AgentTask, io: SessionIO) -> None:
        from beadmill.agents.acp_talk import Talk

        roots = (task.cwd, io.workspace) if task.access in _WRITES else (task.cwd,)

        def may(call: Mapping[str, Json]) -> str:
            yes = acp_permission.allowed(call, task.access, cwd=task.cwd, roots=roots)
            return "" if yes else task.access.value

        try:
            async with Talk(child, stream, io, may=may) as talk:
                await self._converse(talk, stream, task, io)
        except Broken:
            return

    async def _converse(self, talk: Talk, stream: AcpStream, task: AgentTask, io: SessionIO) -> None:
        """Raises Broken."""
        offered = await self._open(talk, task)
        for warning in await acp_options.choose(talk, stream, offered, cli=self.cli, task=task):
            await io.emit(event(EventKind.WARNING, message=warning))
        text = task.brief.text
        for _ in range(NUDGES + 1):
            await talk.prompt(stream.conversation, text)
            if not stream.refused:
                return
            text = NUDGE.format(access=task.access.value)

    async def _open(self, talk: Talk, task: AgentTask) -> Mapping[str, Json]:
        can = (await talk.initialize()).get("agentCapabilities") or {}
        if task.resume is None or not task.resume.conversation:
            return await talk.open(task.cwd)
        if "resume" in (can.get("sessionCapabilities") or {}):
            return await talk.resume(task.resume.conversation, task.cwd)
        return await talk.load(task.resume.conversation, task.cwd)


async def _exit(child: Child, stream: AcpStream) -> int | None:
    """The exit code of an agent that ended before its answer; None = it lives."""
    if stream.answered:
        return None
    try:
        async with asyncio.timeout(EXIT):
            return await child.wait()
    except TimeoutError:
        return None


def _before(io: SessionIO, agent: str, conversation: str) -> float | None:
    known = _spent.known(io.workspace, agent, conversation)
    return None if known is None else known["cost_usd"]
