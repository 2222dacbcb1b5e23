"""Forges by name. Loaded when they are wanted, so that nobody pays for the others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from beadmill.errors import Unavailable
from beadmill.forges.contract import Forge
from beadmill.forges.credentials import Tokens

PLACELESS = ("local", "direct")  # they need no web address and no token of an API
BUILTIN: Mapping[str, str] = {
    "local": "beadmill.forges.local:LocalForge",
    "github": "beadmill.forges.github:GitHubForge",
    "gitlab": "beadmill.forges.gitlab:GitLabForge",
    "gitea": "beadmill.forges.gitea:GiteaForge",
    "gogs": "beadmill.forges.gogs:GogsForge",
    "direct": "beadmill.forges.pushed:DirectForge",
}


def load(chosen: str, repository: Path, *, remote: str = "origin", tokens: Tokens | None = None) -> Forge:
    """The forge of a project for its checkout. ``chosen`` is what ``joined`` makes: a kind, and the service's web address
    when a person set one.

    Raises Unavailable for an unknown kind.
    """
    name, url = split(chosen)
    path = BUILTIN.get(name)
    if path is None:
        known = ", ".join(sorted(BUILTIN))
        raise Unavailable(f"there is no forge {name!r}", code="NO_FORGE", next=f"Choose one of: {known}.")
    module, _, attribute = path.partition(":")
    given = {} if name in PLACELESS else {"url": url, "tokens": tokens or Tokens()}
    made: Forge = getattr(import_module(module), attribute)(repository, remote=remote, **given)
    return made


def joined(name: str, url: str) -> str:
    """How a project and a run keep their forge."""
    return f"{name} {url}".strip()


def split(chosen: str) -> tuple[str, str]:
    """Kind and web address; "" = the remote's own."""
    name, _, url = chosen.partition(" ")
    return name, url
