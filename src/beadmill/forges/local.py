"""Changes without a hosting service: a bare repository on this machine is both origin and forge.

Objects are written into the bare repository; branches move by a push into it, so its own hooks run as they would for
anybody. The user's checkout is read (address of origin, identity) and never written.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from beadmill.errors import BeadmillError, Unavailable
from beadmill.forges.plain import PlainForge
from beadmill.forges.records import Record
from beadmill.git import refs
from beadmill.git.run import Repo, discover
from beadmill.processes.box import Health


class LocalForge(PlainForge):
    """The checkout's ``remote`` is a path or file:// address of a bare repository."""

    name: ClassVar[str] = "local"

    async def probe(self) -> Health:
        try:
            bare = await self.keeper()
        except BeadmillError as error:
            return Health(ok=False, message=f"{error.message}. {error.next}".strip())
        return Health(ok=True, message="changes are kept in the bare repository", detail={"path": str(bare.git_dir)})

    async def keeper(self) -> Repo:
        """Raises Unavailable when origin is no bare repository on this machine."""
        repo = await discover(self._checkout)
        done = await repo.git("remote", "get-url", self._remote, ok=())
        if done.code:
            raise Unavailable(
                f"{self._checkout} has no remote {self._remote!r}",
                code="NO_ORIGIN",
                next=f"git remote add {self._remote} <path of a bare repository>.",
            )
        place = local_path(done.text, repo.work_tree or repo.git_dir)
        if place is None:
            raise Unavailable(
                f"{self._remote} is not a repository on this machine",
                code="FORGE_NOT_LOCAL",
                next="Choose its forge: beadmill project set <project> --forge github (or gitlab, gitea, gogs).",
            )
        return await _open_bare(place)

    async def tip(self, repo: Repo, branch: str) -> str:
        return await refs.commit(repo, f"refs/heads/{branch}")

    def target(self, repo: Repo) -> str:
        return str(repo.git_dir)

    async def address(self, repo: Repo, record: Record) -> str:
        return f"{repo.git_dir.as_uri()}#change-{record.number}"


def local_path(url: str, relative_to: Path) -> Path | None:
    """The folder a remote's address means, None when it is elsewhere."""
    if url.startswith("file://"):
        parts = urlsplit(url)
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    head, colon, _ = url.partition(":")
    if colon and "/" not in head:  # scheme://… or host:path
        return None
    return (relative_to / Path(url).expanduser()).absolute()


async def _open_bare(place: Path) -> Repo:
    try:
        repo = await discover(place)
    except BeadmillError as error:
        raise Unavailable(
            f"{place} is no git repository", code="FORGE_MISSING", next="Create it: git init --bare, then push."
        ) from error
    if repo.work_tree is not None:
        raise Unavailable(
            f"{place} is a checkout, and its branches are somebody's work in progress",
            code="FORGE_NOT_BARE",
            next=f"Use a bare repository: git clone --bare {place} <new path>.",
        )
    return repo
