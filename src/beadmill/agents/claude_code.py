"""Claude Code: ``claude -p`` with JSON lines per turn, resumed by session id. Standard library only.

Facts measured with 2.1.332: what a conversation has used and cost is its total after a resume; root may not bypass
permissions; the environment reaches every command of the model; settings, hooks and MCP servers of the repository run
without a question in print mode unless their sources are switched off.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.agents import _install, _spent
from beadmill.agents._lines import follow
from beadmill.agents.claude_home import ClaudeHome, secrets_among
from beadmill.agents.claude_stream import ClaudeStream, Totals
from beadmill.agents.contract import Capabilities, Installed, Model, Say, SessionIO, quiet
from beadmill.domain.ended import Ended
from beadmill.domain.values import Access, Json
from beadmill.processes import executables, within
from beadmill.processes.environment import allowed
from beadmill.processes.spec import AgentTask
from beadmill.processes.wire import encode

PACKAGE: Final = "@anthropic-ai/claude-code"
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
ALIASES: Final = ("fable", "opus", "sonnet", "haiku")
READS: Final = ("Read", "Grep", "Glob")
# Tasks are its list of what is to do. Subagents, schedules, worktrees of its own and background work are not offered:
# a turn is one agent, and nothing of it goes on behind its end.
WRITES: Final = (*READS, "Edit", "Write", "NotebookEdit", "Bash", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate")
WEB: Final = ("WebFetch", "WebSearch")
_LAYOUTS: Final = ("@anthropic-ai/claude-code-*/claude",)
_SCHEMA_LIMIT: Final = 100_000  # bytes: one argument may be 128 KiB
_QUIET: Final[Mapping[str, str]] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # seats of a council share a workspace, and must not hear each other
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "BASH_DEFAULT_TIMEOUT_MS": "600000",  # without background work a command that is cut at 2 minutes is lost
    "BASH_MAX_TIMEOUT_MS": "3600000",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",  # the repository's CLAUDE.md, without its settings
}


class ClaudeCodeAgent:
    """Options: ``path`` of the executable · ``prefix`` where install puts it · ``config_home`` of the user (default
    CLAUDE_CONFIG_DIR, ~/.claude) · ``env`` {NAME: value} · ``retries`` of a request (4) · ``request_timeout`` (600) and
    ``stream_idle`` (180), seconds."""

    name = "claude_code"
    can = Capabilities(schema=True, resume=True, cost=True, steps=True, efforts=EFFORTS)

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._path = str(options.get("path") or "")
        self._prefix = _install.prefix(options, self.name)
        home = options.get("config_home") or os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
        self.home = ClaudeHome(Path(str(home)).expanduser().absolute(), options.get("env") or {})
        self._patience = {
            "CLAUDE_CODE_MAX_RETRIES": str(int(options.get("retries", 4))),
            "API_TIMEOUT_MS": str(int(1000 * options.get("request_timeout", 600))),
            "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": str(int(1000 * options.get("stream_idle", 180))),
        }

    @property
    def auth_paths(self) -> tuple[Path, ...]:
        """The sign-in alone: whoever may write the user's settings would run code in the user's next session."""
        return (self.home.credentials,) if self.home.credentials.exists() else ()

    @property
    def env_names(self) -> tuple[str, ...]:
        """Variables of the daemon that the runner hands on: keys, and where the sign-in and the provider are."""
        return self.home.wanted

    # --- what is installed

    async def detect(self) -> Installed | None:
        program = self._program()
        if program is None:
            return None
        executables.require_trusted(program, os.environ)
        code, out, err = await executables.ask([str(program), "--version"], env=self._probing())
        note = "" if code == 0 else f"claude --version failed: {err.strip()[-200:]}"
        how = "claude auth login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN where the daemon starts"
        version = out.strip().partition(" ")[0]
        return Installed(program, version, signed_in=self.home.signed_in, note=note, sign_in=how)

    async def install(self, say: Say = quiet) -> Installed:
        return await _install.installed(PACKAGE, self._prefix, self.detect, say=say)

    async def models(self) -> Sequence[Model]:
        """The configured one, the CLI's aliases, and what else it keeps on disk for this account."""
        more = self.home.state.get("additionalModelOptionsCache")
        rows = [row for row in more if isinstance(row, dict)] if isinstance(more, list) else []
        told = self.home.variables.get("ANTHROPIC_MODEL") or self.home.settings.get("model")
        found = {str(told): ""} if told else {}
        found |= dict.fromkeys(ALIASES, "the newest of its kind")
        found |= {str(row["value"]): str(row.get("label") or "") for row in rows if row.get("value")}
        return [Model(name, label, EFFORTS) for name, label in found.items()]

    def _program(self) -> Path | None:
        path = self.home.variables.get("PATH") or os.environ.get("PATH")
        found = (
            executables.find(self._path, path=path) if self._path else _install.find("claude", self._prefix, path=path)
        )
        return None if found is None else _install.native(found, _LAYOUTS)

    def _probing(self) -> dict[str, str]:
        return {**allowed(os.environ), **_QUIET, "CLAUDE_CONFIG_DIR": str(self.home.folder)}

    # --- one turn

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        program = _install.required(self._program(), self._path or "claude", agent=self.name)
        resumed = task.resume.conversation if task.resume is not None else ""
        schema = _argument(task.schema)
        stream = ClaudeStream(io.token, before=_totals(io, resumed), schema=schema is not None)
        argv = [str(program), *self._flags(task, resumed, schema)]
        child = await io.spawn(argv, env=self._environment(io), cwd=task.cwd, stdin=task.brief.text.encode())
        try:
            return await follow(child, stream, io)
        except asyncio.CancelledError:
            used = stream.so_far()
            if used is not None:
                await io.emit(used)
            raise
        finally:
            if stream.totals is not None:
                _spent.keep(io.workspace, self.name, stream.conversation, encode(stream.totals))

    def _flags(self, task: AgentTask, resumed: str, schema: str | None) -> Iterator[str]:
        yield from ("-p", "--output-format", "stream-json", "--verbose")
        yield from ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
        yield from ("--settings", json.dumps({**self.home.taken, "disableAllHooks": True}))
        yield from _rights(task.access)
        yield from ("--add-dir", str(task.cwd))
        if resumed:
            yield from ("--resume", resumed)
        if task.seat.model:
            yield from ("--model", task.seat.model)
        if task.seat.effort:
            yield from ("--effort", task.seat.effort)
        if task.max_steps:
            yield from ("--max-turns", str(task.max_steps))
        if schema is not None:
            yield from ("--json-schema", schema)

    def _environment(self, io: SessionIO) -> dict[str, str]:
        told = {**_QUIET, **self._patience, **self.home.variables}
        return {
            **told,
            "CLAUDE_CONFIG_DIR": str(io.workspace / "home" / ".claude"),
            "CLAUDE_SECURESTORAGE_CONFIG_DIR": str(self.home.folder),
            "CLAUDE_CODE_TMPDIR": str(io.workspace / "tmp"),
            "CLAUDE_ENV_FILE": str(_blindfold(io, told)),
        }


def _rights(access: Access) -> Iterator[str]:
    """Edits are let pass below the working directory and nowhere else; what is not named is denied, not asked for."""
    if access in (Access.WRITE, Access.ONLINE):
        tools = (*WRITES, *(WEB if access is Access.ONLINE else ()))
        free = [tool for tool in tools if tool not in (*READS, "Edit", "Write", "NotebookEdit")]
        yield from ("--permission-mode", "acceptEdits", "--tools", ",".join(tools), "--allowedTools", ",".join(free))
    else:
        tools = READS if access is Access.READ else ()
        yield from ("--permission-mode", "dontAsk", "--tools", ",".join(tools))


def _blindfold(io: SessionIO, told: Mapping[str, str]) -> Path:
    """A file that the CLI reads before every command of the model: keys are not in their environment."""
    hidden = (*secrets_among(told), "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_MESSAGING_SOCKET")
    return within.write(io.workspace / "tmp", f"claude-env-{os.getpid()}.sh", f"unset {' '.join(hidden)}\n")


def _argument(schema: Json) -> str | None:
    """The schema as the CLI takes it; None when it takes none such: the brief asks for it too."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    text = json.dumps({key: value for key, value in schema.items() if key != "$schema"})
    return text if len(text.encode()) <= _SCHEMA_LIMIT else None


def _totals(io: SessionIO, conversation: str) -> Totals:
    return Totals(**(_spent.known(io.workspace, ClaudeCodeAgent.name, conversation) or {}))
