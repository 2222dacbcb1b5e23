"""Gogs: git and a small API, none of it for pull requests.

The change is a record in the user's repository (records.py); the branch is pushed as everywhere, and a merge is a push of
the base with a lease, under the server's own rules. ``url`` is the page where a person may open a pull request by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import quote

from beadmill.errors import BeadmillError, NotFound, Unavailable
from beadmill.forges import _faults, address
from beadmill.forges._http import Http, Nature
from beadmill.forges.address import Place
from beadmill.forges.credentials import Tokens
from beadmill.forges.plain import PlainForge
from beadmill.forges.records import Record
from beadmill.git import refs, remotes
from beadmill.git.run import Repo, discover
from beadmill.processes.box import Health

SEEN: Final = "refs/beadmill/forge"  # <SEEN>/<branch>: the remote's branch as last looked at
LIMITS: Final = (
    "Gogs has no API for pull requests: the change is kept here, merged by a push, and shows no checks or reviews"
)


class GogsForge(PlainForge):
    name: ClassVar[str] = "gogs"

    def __init__(
        self,
        repository: Path,
        remote: str = "origin",
        *,
        url: str = "",
        tokens: Tokens | None = None,
        nature: Nature | None = None,
    ) -> None:
        super().__init__(repository, remote)
        self._url = url
        self._tokens = tokens or Tokens()
        self._nature = nature or Nature()

    async def probe(self) -> Health:
        """By plain git, and by the API when there is a token: only the API knows whether we may push."""
        try:
            repo = await self.keeper()
            place = await self._place(repo)
            await self._listed(repo, "*")
            token = await self._tokens.find(place.host, self.name)
            detail = {"host": place.host, "repository": place.project, "drafts": "no"}
            if token is not None:
                http = Http(place.host, place.api, {"Authorization": f"token {token.value}"}, self._nature)
                detail |= {"token": token.source, **await _asked(http, place)}
        except BeadmillError as error:
            return Health(ok=False, message=f"{error.message}. {error.next}".strip())
        said = f"{place.project} at {place.host}. {LIMITS}"
        if detail.get("push") == "no":
            return Health(ok=False, message=f"{said}; this account may not push there", detail=detail)
        return Health(ok=True, message=said, detail=detail)

    async def keeper(self) -> Repo:
        return await discover(self._checkout)

    async def tip(self, repo: Repo, branch: str) -> str:
        """Fetched, so that its objects are here. Raises Unavailable."""
        if not await self._listed(repo, branch):
            return ""
        ref = f"{SEEN}/{branch}"
        quiet = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=")
        what = f"+refs/heads/{branch}:{ref}"
        done = await repo.git("fetch", "--quiet", *quiet, self._remote, what, ok=(), timeout=600)
        if done.code:
            raise refs.outside(done, remote=self._remote, doing=f"fetching {branch}")
        return await refs.commit(repo, ref)

    def target(self, repo: Repo) -> str:  # noqa: ARG002 - the same for every repository
        return self._remote

    async def address(self, repo: Repo, record: Record) -> str:
        place = await self._place(repo)
        return f"{place.web}/{place.project}/compare/{quote(record.base)}...{quote(record.branch)}"

    async def _listed(self, repo: Repo, branch: str) -> bool:
        done = await repo.git("ls-remote", self._remote, f"refs/heads/{branch}", ok=(), timeout=60)
        if done.code:
            raise refs.outside(done, remote=self._remote, doing="asking for its branches")
        return bool(done.text)

    async def _place(self, repo: Repo) -> Place:
        found = address.parse(await remotes.url_of(repo, self._remote))
        if found is None:
            raise Unavailable(
                f"{self._remote} is a folder on this machine, no repository of a service",
                code="FORGE_LOCAL",
                next="Set the project's forge to local, or the remote to the service's address.",
            )
        return address.place(self.name, found, url=self._url)


async def _asked(http: Http, place: Place) -> dict[str, str]:
    async with http.open():
        me = await http.get("/user", "asking who the token is")
        seen = await http.get(f"/repos/{place.project}", "looking at the repository", also=(404,))
    if seen.status == 404:
        raise NotFound(
            f"{place.host} shows no repository {place.project} to this token",
            code="FORGE_NOT_FOUND",
            details={"host": place.host, "repository": place.project},
            kept=_faults.KEPT,
            next="Check the remote's address, and that the token's user may see the repository.",
        )
    push = (seen.body.get("permissions") or {}).get("push")
    return {"login": me.body.get("username") or me.body.get("login") or "", "push": "yes" if push else "no"}
