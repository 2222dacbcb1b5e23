"""OpenCode: one ``opencode serve`` per workspace and access, driven over HTTP. Standard library only.

Facts measured with 1.18.33: a request that comes while it boots is never answered; a provider's 500, a cut stream and a
spent quota are retried without end; tools lie in process sessions of their own and outlive a killed server; a message
with a schema cannot be read again; plugins of the repository are loaded whatever its switches say.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from beadmill.agents import _install, opencode_home
from beadmill.agents._http import Client, Gone, Slow
from beadmill.agents.contract import Capabilities, Installed, Model, Say, ServerIO, SessionIO, quiet
from beadmill.agents.opencode_home import Home
from beadmill.agents.opencode_turn import Odd, Server, Turn
from beadmill.domain.ended import Ended
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes import executables
from beadmill.processes.environment import allowed
from beadmill.processes.folder import read_json
from beadmill.processes.spec import AgentTask, Service

PACKAGE: Final = "opencode-ai"
_NEW: Final = ("opencode-*-x64/bin/opencode", "opencode-*64/bin/opencode", "opencode-*/bin/opencode")
_OLD: Final = ("opencode-*-baseline/bin/opencode", *_NEW)
SLOW: Final = 30.0  # seconds that it may take to say its version: a second of work, on a busy machine more
SIGN_IN: Final = "opencode auth login, or set a provider's key (ANTHROPIC_API_KEY, …) where the daemon starts"
LISTENING: Final = re.compile(rb"opencode server listening on (http://\S+)")
KEYS: Final = (
    "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY",
    "MISTRAL_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY",
)  # fmt: skip
_NAMED = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


class OpenCodeAgent:
    """Options: ``path`` of the executable · ``prefix`` where install puts it · ``config_home`` (folder of opencode.json, default ~/.config/opencode) ·
    ``data_home`` (folder of auth.json, default ~/.local/share/opencode) · ``env`` {NAME: value} · ``server_idle_s`` ·
    ``retries`` of the provider until the turn counts as failed · ``trust_project`` true = plugins and tools of the
    repository's own OpenCode configuration may run."""

    name = "opencode"
    can = Capabilities(schema=True, resume=True, questions=True, cost=True, catalog=True)

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._path = str(options.get("path") or "")
        self._prefix = _install.prefix(options, self.name)
        self.config_home = _folder(options, "config_home", "XDG_CONFIG_HOME", "~/.config")
        self.data_home = _folder(options, "data_home", "XDG_DATA_HOME", "~/.local/share")
        self._known_models = _folder({}, "", "XDG_CACHE_HOME", "~/.cache") / "models.json"
        self._env: Mapping[str, str] = options.get("env") or {}
        self.server_files = tuple(self.config_home / name for name in opencode_home.NAMES)
        self.server_idle = float(options.get("server_idle_s") or 600)
        self._retries = int(options.get("retries") or 4)
        self._trust = bool(options.get("trust_project"))
        self._client: Client | None = None
        self._own: Path | None = None
        self._tree = Path()

    @property
    def auth_paths(self) -> tuple[Path, ...]:
        return (self.data_home / "auth.json",)

    @property
    def read_paths(self) -> tuple[Path, ...]:
        """Plugins and servers of the user's configuration would run in his next session: nobody inside writes there."""
        return (self._known_models, self.config_home)

    @property
    def env_names(self) -> tuple[str, ...]:
        """Variables of the daemon that the runner hands on: keys, those the user's configuration names among them."""
        file = opencode_home.config_file(self.config_home)
        named = _NAMED.findall(file.read_text(encoding="utf-8", errors="replace")) if file else ()
        places = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
        return tuple(dict.fromkeys((*KEYS, *named, *places)))

    # --- what is installed

    async def detect(self) -> Installed | None:
        program = self._program()
        if program is None:
            return None
        executables.require_trusted(program, os.environ)
        code, out, err = await executables.ask(
            [str(program), "--version"], env={**self._environment(), "HOME": "/"}, patience=SLOW
        )
        note = "" if code == 0 else f"opencode --version failed: {err.strip()[-200:]}"
        return Installed(
            program, out.strip().rpartition(" ")[2], signed_in=self._signed_in(), note=note, sign_in=SIGN_IN
        )

    async def install(self, say: Say = quiet) -> Installed:
        return await _install.installed(PACKAGE, self._prefix, self.detect, say=say)

    async def models(self) -> Sequence[Model]:
        """The configured ones, and what OpenCode's cache knows of the providers that are signed in."""
        config = self._config()
        known = {provider: list(_models(provider, rows)) for provider, rows in self._offered().items()}
        configured = {
            provider: list(_models(provider, _dict(rows))) for provider, rows in _dict(config.get("provider")).items()
        }
        found = {model.id: model for rows in (*known.values(), *configured.values()) for model in rows}
        first = str(config.get("model") or "")
        if first and first not in found:
            return [Model(first), *found.values()]
        return list(found.values())

    def _offered(self) -> Mapping[str, Mapping[str, Json]]:
        cached = _dict(read_json(self._known_models))
        auth = self._auth()
        env = {**os.environ, **self._env}
        return {
            provider: rows
            for provider, rows in cached.items()
            if isinstance(rows, dict) and (provider in auth or any(env.get(n) for n in rows.get("env") or ()))
        }

    def _config(self) -> Mapping[str, Json]:
        file = opencode_home.config_file(self.config_home)
        return opencode_home.read_jsonc(file) if file else {}

    def _auth(self) -> Mapping[str, Json]:
        return _dict(read_json(self.data_home / "auth.json"))

    def _signed_in(self) -> bool | None:
        """A provider of the configuration may need no key, so its absence says nothing."""
        env = {**os.environ, **self._env}
        if self._auth() or any(env.get(name) for name in KEYS):
            return True
        return None if self._config().get("provider") else False

    def _program(self) -> Path | None:
        path = self._environment().get("PATH")
        mine = executables.find(self._path, path=path) if self._path else None
        found = mine if self._path else _install.find("opencode", self._prefix, path=path)
        return None if found is None else native(found)

    def _environment(self) -> dict[str, str]:
        keys = {name: os.environ[name] for name in self.env_names if name in os.environ}
        places = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
        return {k: v for k, v in {**allowed(os.environ), **keys, **self._env}.items() if k not in places}

    # --- the server, in a runner of its own

    async def serve(self, service: Service, io: ServerIO) -> str:
        program = _install.required(self._program(), self._path or "opencode", agent=self.name)
        home = Home.of(io.workspace)
        await asyncio.to_thread(home.furnish, self.data_home / "auth.json")
        password = secrets.token_urlsafe(24)
        env = self._server_environment(service, home, password)
        # Not in the tree: the program itself would read .env and bunfig.toml of the folder it starts in.
        argv = [str(program), "serve", "--hostname", "127.0.0.1", "--port", "0"]
        child = await io.spawn(argv, env=env, cwd=home.root)
        try:
            async for line in child.lines():
                found = LISTENING.search(line)
                if found and self._client is None:
                    address = {"url": found[1].decode(), "password": password}
                    self._client = Client(address["url"], user="opencode", password=password)
                    self._own, self._tree = home.root, service.cwd
                    io.listens(address)
            code = await child.wait()
            return f"opencode serve exited with {code}: {child.stderr_tail().strip()[-1000:] or 'it said nothing'}"
        finally:
            await child.terminate()

    def _server_environment(self, service: Service, home: Home, password: str) -> dict[str, str]:
        file = opencode_home.config_file(self.config_home)
        mine = self._environment()
        hidden = sorted({name for name in (*self.env_names, *self._env) if name in mine})
        config = home.config(service.access, service.cwd)
        made = home.environment(password=password, config=config, hidden=hidden, models=self._known_models)
        kept = {k: v for k, v in mine.items() if k not in ("HOME", "TMPDIR")}
        return {**kept, **made, **({"OPENCODE_CONFIG": str(file)} if file else {})}

    async def release(self, conversation: str) -> bool:
        """Its directory does not matter to an abort that finds nothing, so every one this server knows is asked."""
        if self._client is None or self._own is None:
            return True
        for directory in (self._tree, Home(self._own).nothing):
            server = Server(self._client, directory, Path.cwd())
            try:
                if not await server.quiet(conversation):
                    return False
            except (Gone, Slow, Odd):
                return False
        Home(self._own).unmark(conversation)
        return True

    # --- one turn

    async def drive(self, task: AgentTask, io: SessionIO) -> Ended:
        if not self._trust:
            opencode_home.require_no_code(task.cwd)
        return await Turn(task, io, Home.of(io.workspace), self._model(task.seat.model), self._retries).run()

    def _model(self, wanted: str) -> str:
        """With its provider: the configured model's, when none is said. Raises Unavailable when nothing says one."""
        configured = str(self._config().get("model") or "")
        if not wanted or "/" in wanted:
            return wanted or configured
        provider, slash, _ = configured.partition("/")
        if not slash:
            raise Unavailable(f"OpenCode names models as provider/model, which {wanted!r} does not", code="AGENT_MODEL")
        return f"{provider}/{wanted}"


def _folder(options: Mapping[str, Json], name: str, variable: str, default: str) -> Path:
    chosen = options.get(name)
    if chosen:
        return Path(str(chosen)).expanduser()
    return Path(os.environ.get(variable) or default).expanduser() / "opencode"


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _models(provider: str, rows: Mapping[str, Json]) -> Iterator[Model]:
    for name, row in _dict(rows.get("models")).items():
        efforts = tuple(_dict(_dict(row).get("variants")))
        yield Model(f"{provider}/{name}", str(_dict(row).get("name") or ""), efforts)


def native(program: Path) -> Path:
    """The binary behind npm's node script; the one for old processors only where the other cannot run."""
    old = "avx2" not in _processor()
    return _install.native(program, _OLD if old else _NEW)


def _processor() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "avx2"
