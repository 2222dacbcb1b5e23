"""Codex CLI: ``codex exec --json`` per turn, resumed by thread id. Standard library only.

Facts measured with 0.171.0: usage is the thread's total after a resume; helper binaries are refused when CODEX_HOME
lies under TMPDIR; the npm entry is a node script whose native child survives it, so the native binary is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.agents import _install, _spent, _strict
from beadmill.agents._lines import follow
from beadmill.agents.codex_home import CodexHome
from beadmill.agents.codex_stream import CodexStream, Totals
from beadmill.agents.contract import Capabilities, Installed, Model, Say, SessionIO, quiet
from beadmill.domain.ended import Ended
from beadmill.domain.values import Access, Json
from beadmill.processes import executables
from beadmill.processes.environment import allowed
from beadmill.processes.folder import read_json, write_json
from beadmill.processes.spec import AgentTask
from beadmill.processes.wire import encode

PACKAGE: Final = "@openai/codex"
EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh")
KEYS: Final = ("OPENAI_API_KEY", "CODEX_API_KEY")
_LAYOUTS: Final = tuple(
    f"@openai/codex{more}/vendor/*/{place}/codex" for more in ("-*", "") for place in ("bin", "codex")
)


class CodexAgent:
    """Options: ``path`` of the executable · ``prefix`` where install puts it · ``codex_home`` (default CODEX_HOME, ~/.codex) · ``env`` {NAME: value} ·
    ``bypass_sandbox`` true = Codex's own sandbox is off, for use inside one of ours."""

    name = "codex"
    can = Capabilities(schema=True, resume=True, efforts=EFFORTS)

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._path = str(options.get("path") or "")
        self._prefix = _install.prefix(options, self.name)
        home = options.get("codex_home") or os.environ.get("CODEX_HOME") or "~/.codex"
        self.home = CodexHome(Path(str(home)).expanduser().absolute())
        self._env: Mapping[str, str] = options.get("env") or {}
        self._bypass = bool(options.get("bypass_sandbox"))

    @property
    def auth_paths(self) -> tuple[Path, ...]:
        """The sign-in alone: whoever may write the user's settings would run code in his next session."""
        return self.home.shared

    @property
    def env_names(self) -> tuple[str, ...]:
        """Variables of the daemon that the runner hands on: keys, and where the sign-in lies."""
        return ("CODEX_HOME", *KEYS, *filter(None, (self._provider_key(),)))

    # --- what is installed

    async def detect(self) -> Installed | None:
        program = self._program()
        if program is None:
            return None
        executables.require_trusted(program, os.environ)
        code, out, err = await executables.ask([str(program), "--version"], env=self._environment())
        version = out.strip().rpartition(" ")[2]
        note = "" if code == 0 else f"codex --version failed: {err.strip()[-200:]}"
        return Installed(program, version, signed_in=self._signed_in(), note=note, sign_in=self._how())

    async def install(self, say: Say = quiet) -> Installed:
        return await _install.installed(PACKAGE, self._prefix, self.detect, say=say)

    async def models(self) -> Sequence[Model]:
        """What Codex itself keeps on disk: its list of models, and the configured one."""
        cached = (read_json(self.home.folder / "models_cache.json") or {}).get("models") or []
        found = [_model(row) for row in cached if isinstance(row, dict) and row.get("slug")]
        configured = str(self.home.config.get("model") or "")
        known = {m.id for m in found}
        return [*([Model(configured)] if configured and configured not in known else []), *found]

    def _program(self) -> Path | None:
        path = self._environment().get("PATH")
        found = (
            executables.find(self._path, path=path) if self._path else _install.find("codex", self._prefix, path=path)
        )
        return None if found is None else native(found)

    def _provider_key(self) -> str:
        return str(self.home.provider.get("env_key") or "")

    def _signed_in(self) -> bool:
        env = {**os.environ, **self._env}
        provider, key = self.home.provider, self._provider_key()
        if provider and not provider.get("requires_openai_auth"):
            return not key or bool(env.get(key))
        return self.home.sign_in.exists() or any(env.get(name) for name in KEYS)

    def _how(self) -> str:
        own = self._provider_key()
        return (
            f"set {own} where the daemon starts"
            if own
            else "codex login, or set OPENAI_API_KEY where the daemon starts"
        )

    # --- one turn

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        program = _install.required(self._program(), self._path or "codex", agent=self.name)
        resumed = task.resume.conversation if task.resume is not None else ""
        schema, file = self._schema(task, io)
        again = ("resume", resumed) if resumed else ()
        argv = [str(program), "exec", *again, *self._flags(task, io, resumed, file), "-"]
        model = task.seat.model or str(self.home.config.get("model") or "")
        stream = CodexStream(io.token, before=_totals(io, resumed), schema=schema, model=model)
        env = {k: v for k, v in self._environment().items() if k not in ("HOME", "TMPDIR")}
        env["CODEX_HOME"] = str(self.home.furnish(io.workspace / "home"))
        child = await io.spawn(argv, env=env, cwd=task.cwd, stdin=task.brief.text.encode())
        end = await follow(child, stream, io)
        if stream.totals is not None:
            _spent.keep(io.workspace, self.name, stream.thread, encode(stream.totals))
        return end

    def _environment(self) -> dict[str, str]:
        keys = {name: os.environ[name] for name in self.env_names if name in os.environ}
        return {**allowed(os.environ), **keys, **self._env, "CODEX_HOME": str(self.home.folder)}

    def _flags(self, task: AgentTask, io: SessionIO, resumed: str, schema: Path | None) -> Iterator[str]:
        yield from ("--json", "--skip-git-repo-check")
        yield from self._sandbox(task.access, resumed, boxed=io.boxed)
        if task.seat.model:
            yield from ("-m", task.seat.model)
        if task.seat.effort:
            yield from _set("model_reasoning_effort", task.seat.effort)
        yield from _set("approval_policy", "never")
        yield from _set("check_for_update_on_startup", value=False)
        # Commands of the model do not see the provider's key.
        yield from _set("shell_environment_policy.ignore_default_excludes", value=False)
        yield from _set("web_search", "live" if task.access is Access.ONLINE else "disabled")
        if schema is not None:
            yield from ("--output-schema", str(schema))

    def _sandbox(self, access: Access, resumed: str, *, boxed: bool) -> Iterator[str]:
        if self._bypass or boxed:  # inside of our box the kernel opens no second one
            yield "--dangerously-bypass-approvals-and-sandbox"
            return
        mode = "workspace-write" if access in (Access.WRITE, Access.ONLINE) else "read-only"
        # ``exec resume`` has no -s.
        yield from _set("sandbox_mode", mode) if resumed else ("-s", mode)
        if mode == "workspace-write":
            yield from _set("sandbox_workspace_write.exclude_slash_tmp", value=True)
            yield from _set("sandbox_workspace_write.exclude_tmpdir_env_var", value=True)
            yield from _set("sandbox_workspace_write.network_access", value=access is Access.ONLINE)

    def _schema(self, task: AgentTask, io: SessionIO) -> tuple[Json, Path | None]:
        """The wanted schema and the file with its strict form; nothing when it has none: the brief asks for it too."""
        made = _strict.strict(task.schema) if task.schema else None
        if made is None:
            return None, None
        path = io.workspace / "tmp" / f"schema-{os.getpid()}.json"
        write_json(path, made)
        return task.schema, path


def _set(name: str, value: Json) -> tuple[str, str]:
    return ("-c", f"{name}={json.dumps(value)}")


def _model(row: Mapping[str, Json]) -> Model:
    levels = row.get("supported_reasoning_levels") or []
    efforts = tuple(str(v["effort"]) for v in levels if isinstance(v, dict) and v.get("effort"))
    return Model(str(row["slug"]), str(row.get("display_name") or ""), efforts)


def native(program: Path) -> Path:
    """The binary behind npm's node script, whatever the layout; the program itself when it is no script."""
    return _install.native(program, _LAYOUTS)


def _totals(io: SessionIO, thread: str) -> Totals:
    return Totals(**(_spent.known(io.workspace, CodexAgent.name, thread) or {}))
