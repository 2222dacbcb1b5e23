"""Forges by name. Loaded when they are wanted, so that nobody pays for the others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from beadmill.errors import Unavailable
from beadmill.forges.contract import Forge
from beadmill.forges.credentials import Tokens

BUILTIN: Mapping[str, str] = {
    "local": "beadmill.forges.local:LocalForge",
    "github": "beadmill.forges.github:GitHubForge",
    "gitlab": "beadmill.forges.gitlab:GitLabForge",
    "gitea": "beadmill.forges.gitea:GiteaForge",
    "gogs": "beadmill.forges.gogs:GogsForge",
}


def load(name: str, repository: Path, *, remote: str = "origin", url: str = "", tokens: Tokens | None = None) -> Forge:
    """The forge ``name`` for a checkout. ``url`` is the service's web address, "" = what the remote says.

    Raises Unavailable for an unknown name.
    """
    path = BUILTIN.get(name)
    if path is None:
        known = ", ".join(sorted(BUILTIN))
        raise Unavailable(f"there is no forge {name!r}", code="NO_FORGE", next=f"Choose one of: {known}.")
    module, _, attribute = path.partition(":")
    given = {} if name == "local" else {"url": url, "tokens": tokens or Tokens()}
    made: Forge = getattr(import_module(module), attribute)(repository, remote=remote, **given)
    return made
