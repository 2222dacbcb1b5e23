"""The remotes of a repository: their addresses as git uses them, and which one takes changes."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from beadmill.errors import Unavailable
from beadmill.git.run import Repo

_SIGN_IN = re.compile(r"(\w+://)[^/@\s]+@")

UPSTREAM = "upstream"
_SCP = re.compile(r"(?:[^/@:]+@)?([^/@:.~][^/@:]*):(?!:)")


async def url_of(repo: Repo, remote: str) -> str:
    """As git would use it, insteadOf applied. Raises Unavailable when there is no such remote."""
    done = await repo.git("remote", "get-url", remote, ok=())
    if done.code or not done.text:
        raise Unavailable(
            f"the repository has no remote {remote!r}", code="NO_ORIGIN", next=f"git remote add {remote} <address>."
        )
    return done.text.splitlines()[0]


async def base_of(repo: Repo, remote: str) -> str:
    """The remote whose repository takes the changes pushed to ``remote``: ``upstream`` at the same host (``remote`` is a
    fork then), unless ``gh repo set-default`` chose ``remote``; else ``remote`` itself.

    No other remote is asked: git/trust.py watches the addresses of these two.
    """
    names = (await repo.git("remote")).text.splitlines()
    if remote == UPSTREAM or not {UPSTREAM, remote} <= set(names):
        return remote
    chosen = await repo.git("config", "--get", f"remote.{remote}.gh-resolved", ok=(0, 1))
    if chosen.text == "base":
        return remote
    theirs, ours = _host(await url_of(repo, UPSTREAM)), _host(await url_of(repo, remote))
    return UPSTREAM if theirs and theirs == ours else remote


def _host(url: str) -> str:
    """ "" for a folder."""
    if "://" in url:
        parts = urlsplit(url)
        return "" if parts.scheme == "file" else (parts.hostname or "").lower()
    found = _SCP.match(url)
    return found[1].lower() if found else ""


def without_sign_in(url: str) -> str:
    """Of an address, as it may be shown."""
    return _SIGN_IN.sub(r"\1", url)
