"""Where a token for a host comes from: the environment, a file of the data home, the service's own CLI.

A token is for one host. It is told to ``redact`` the moment it is read, and never stands in an address or an argv.
"""

from __future__ import annotations

import os
import re
import stat
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from beadmill import redact
from beadmill.errors import BeadmillError, Refused
from beadmill.forges import address
from beadmill.processes import executables

FILE: Final = "forge-tokens.toml"  # host = "token", in the data home
FRESH: Final = 300.0  # seconds for which a CLI's answer is kept
# By kind: variables, the variable that names their host, and the host without it ("" = any host of that kind).
USUAL: Final[Mapping[str, tuple[tuple[tuple[str, ...], str, str], ...]]] = {
    "github": (
        (("GH_TOKEN", "GITHUB_TOKEN"), "", "github.com"),
        (("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"), "GH_HOST", ""),
    ),
    "gitlab": ((("GITLAB_TOKEN",), "GITLAB_HOST", "gitlab.com"),),
    "gitea": ((("GITEA_TOKEN", "GITEA_SERVER_TOKEN"), "GITEA_SERVER_URL", "gitea.com"),),
    "gogs": (),
}
CLIS: Final[Mapping[str, tuple[str, ...]]] = {
    "github": ("gh", "auth", "token", "--hostname"),
    "gitlab": ("glab", "config", "get", "token", "--host"),
}
_CLI_SEES: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "GH_CONFIG_DIR")
USERS: Final[Mapping[str, str]] = {"github": "x-access-token", "gitlab": "oauth2"}


@dataclass(frozen=True, slots=True)
class Token:
    """``source`` says where it comes from, for people."""

    value: str = field(repr=False)
    source: str


@dataclass(slots=True)
class Tokens:
    """``home`` is the data home, None = no file."""

    home: Path | None = None
    _asked: dict[str, tuple[float, str]] = field(default_factory=dict, repr=False)

    async def find(self, host: str, kind: str, *, sure: bool = True) -> Token | None:
        """``sure``: a person said that this kind runs there; else a variable for any host of a kind does not count.

        Raises Refused when the file of tokens may be read by others.
        """
        found = _environment(host, kind, os.environ, sure=sure) or self._file(host) or await self._cli(host, kind)
        if found:
            redact.learn(found.value)
        return found

    async def for_git(self, url: str) -> tuple[str, str] | None:
        """User and password for git over http(s), None when there is none. Plain http only on this machine."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
            return None
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            return None
        host = parts.netloc.rpartition("@")[2].lower()
        known = address.KNOWN.get(host)
        for kind in (known,) if known else USUAL:
            token = await self.find(host, kind, sure=bool(known))
            if token:
                return USERS.get(kind, "oauth2"), token.value
        return None

    def _file(self, host: str) -> Token | None:
        if self.home is None:
            return None
        path = self.home / FILE
        try:
            facts = path.stat()
        except OSError:
            return None
        if stat.S_IMODE(facts.st_mode) & 0o077:
            raise Refused(f"{path} may be read by others", code="TOKENS_OPEN", next=f"chmod 600 {path}, then retry.")
        try:
            value = tomllib.loads(path.read_text("utf-8")).get(host)
        except ValueError as error:
            raise Refused(f"{path} is no TOML", code="TOKENS_BROKEN", next='Lines are: "host" = "token"') from error
        return Token(value, str(path)) if isinstance(value, str) and value else None

    async def _cli(self, host: str, kind: str) -> Token | None:
        command = CLIS.get(kind)
        program = executables.find(command[0]) if command else None
        if (
            command is None
            or program is None
            or executables.why_untrusted(program, trusted=executables.trusted_dirs(os.environ))
        ):
            return None
        at, value = self._asked.get(f"{kind} {host}", (-FRESH, ""))
        if time.monotonic() - at > FRESH:
            value = await _ask((str(program), *command[1:], host))
            self._asked[f"{kind} {host}"] = (time.monotonic(), value)
        return Token(value, " ".join(command[:3])) if value else None


async def _ask(argv: tuple[str, ...]) -> str:
    try:
        code, out, _ = await executables.ask(argv, env={k: os.environ[k] for k in _CLI_SEES if k in os.environ})
    except BeadmillError:
        return ""
    return out.strip() if code == 0 and len(out.split()) == 1 else ""


def variable(host: str) -> str:
    """``BEADMILL_FORGE_TOKEN_GIT_EXAMPLE_ORG`` for git.example.org."""
    return f"BEADMILL_FORGE_TOKEN_{re.sub(r'[^A-Z0-9]', '_', host.upper())}"


def _environment(host: str, kind: str, env: Mapping[str, str], *, sure: bool) -> Token | None:
    own = variable(host)
    if env.get(own):
        return Token(env[own], own)
    for names, says, usual in USUAL.get(kind, ()):
        named = env.get(says, "") if says else ""
        wanted = (urlsplit(named).netloc or named).lower() or usual
        if wanted == host or (sure and not wanted and host not in address.KNOWN):
            for name in names:
                if env.get(name):
                    return Token(env[name], name)
    return None
