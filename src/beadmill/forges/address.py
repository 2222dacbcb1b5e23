"""From a remote's address to the service behind it: host, kind, repository, where its API is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from beadmill.errors import Invalid, Unavailable

KINDS: Final = ("local", "github", "gitlab", "gitea", "gogs", "direct")
KNOWN: Final[Mapping[str, str]] = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "codeberg.org": "gitea",
    "gitea.com": "gitea",
}
ALIASES: Final[Mapping[str, str]] = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
ROOTS: Final[Mapping[str, str]] = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1", "gogs": "/api/v1"}
_SCP = re.compile(r"(?:[^/@:]+@)?(\[[^\]]+\]|[^/:@]+):(?!//|:)(.+)")


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` is without slashes at its ends and without ``.git``. ``web`` is set for http(s): scheme, host and port."""

    host: str
    path: str
    web: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """One repository at one service. ``web`` and ``api`` end without a slash."""

    kind: str
    host: str
    web: str
    api: str
    project: str

    @property
    def quoted(self) -> str:
        """The project as one part of a path."""
        return quote(self.project, safe="")


def parse(url: str) -> Address | None:
    """None for a path and for file://: that is no host."""
    if "://" in url:
        parts = urlsplit(url)
        if parts.scheme not in ("ssh", "git", "git+ssh", "ssh+git", "http", "https") or not parts.hostname:
            return None
        host, web = parts.hostname.lower(), ""
        if parts.scheme in ("http", "https"):
            shown = f"[{host}]" if ":" in host else host
            web = f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port else "")
        return Address(ALIASES.get(host, host), _clean(unquote(parts.path)), web)
    found = _SCP.fullmatch(url)
    if found is None or url.startswith(("/", ".", "~")):
        return None
    host = found[1].strip("[]").lower()
    return Address(ALIASES.get(host, host), _clean(found[2]))


def _clean(path: str) -> str:
    return path.strip("/").removesuffix(".git").strip("/")


def kind_of(url: str) -> str:
    """The kind that a remote's address says by itself, "" when only its owner knows."""
    address = parse(url)
    return "local" if address is None else KNOWN.get(address.host, "")


def checked_url(url: str) -> str:
    """The web address of a service, without a slash at its end, "" stays "". Raises Invalid."""
    text = url.strip().rstrip("/")
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise Invalid(
            f"{url!r} is no web address of a service", code="FORGE_URL", next="For example: https://git.example.org"
        )
    if parts.username or parts.password:
        raise Invalid(
            "the address holds a user or a password", code="FORGE_URL", next="Tokens go elsewhere: docs/forges.md."
        )
    return text


def place(kind: str, address: Address, *, url: str = "") -> Place:
    """``url`` is the service's own web address, when a person set it. Raises Unavailable."""
    web, path = url or address.web or f"https://{address.host}", address.path
    prefix = urlsplit(web).path.strip("/")
    if prefix and address.web and path.startswith(f"{prefix}/"):
        path = path.removeprefix(f"{prefix}/")
    parts = path.split("/")
    if kind != "gitlab" and len(parts) > 2 and not url and address.web:  # https://corp.test/gitea/o/r
        web, parts = f"{web}/{'/'.join(parts[:-2])}", parts[-2:]
    if len(parts) < 2 or (kind != "gitlab" and len(parts) > 2) or not all(parts):
        raise Unavailable(
            f"{address.path!r} is no repository of {address.host}: an owner and a name are wanted",
            code="FORGE_ADDRESS",
            next="Check the remote (git remote -v), and the project's forge address when the service has a path of its own.",
        )
    host = urlsplit(web).netloc
    return Place(kind, host, web, _api(kind, host, web), "/".join(parts))


def _api(kind: str, host: str, web: str) -> str:
    if kind == "github" and (host == "github.com" or host.endswith(".ghe.com")):
        return f"https://api.{host}"
    return f"{web}{ROOTS[kind]}"
