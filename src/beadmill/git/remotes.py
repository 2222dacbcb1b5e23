"""The remotes of a repository: their addresses as git uses them, and which one takes changes."""

from __future__ import annotations

import re

from beadmill.errors import Unavailable
from beadmill.git.run import Repo

UPSTREAM = "upstream"
_HOST = re.compile(r"(?:\w[\w+.-]*://)?(?:[^/@]+@)?(\[[^\]]+\]|[^/:@]+)")


async def url_of(repo: Repo, remote: str) -> str:
    """As git would use it, insteadOf applied. Raises Unavailable when there is no such remote."""
    done = await repo.git("remote", "get-url", remote, ok=())
    if done.code or not done.text:
        raise Unavailable(
            f"the repository has no remote {remote!r}", code="NO_ORIGIN", next=f"git remote add {remote} <address>."
        )
    return done.text.splitlines()[0]


async def base_of(repo: Repo, remote: str) -> str:
    """The remote whose repository takes the changes pushed to ``remote``: what ``gh repo set-default`` chose, else
    ``upstream`` at the same host (``remote`` is a fork then), else ``remote`` itself."""
    chosen = await repo.git("config", "--get-regexp", r"^remote\..*\.gh-resolved$", "^base$", ok=(0, 1))
    for line in chosen.text.splitlines():
        return line.partition(" ")[0].removeprefix("remote.").removesuffix(".gh-resolved")
    names = (await repo.git("remote")).text.splitlines()
    if remote != UPSTREAM and {UPSTREAM, remote} <= set(names):
        hosts = [_HOST.match(await url_of(repo, name)) for name in (UPSTREAM, remote)]
        if hosts[0] and hosts[1] and hosts[0][1].lower() == hosts[1][1].lower():
            return UPSTREAM
    return remote
