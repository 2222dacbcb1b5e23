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
from beadmill.forges.pushed import PushedForge
from beadmill.forges.records import Record
from beadmill.git import remotes
from beadmill.git.run import Repo
from beadmill.processes.box import Health

LIMITS: Final = (
    "Gogs has no API for pull requests: the change is kept here, merged by a push, and shows no checks or reviews"
)


class GogsForge(PushedForge):
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
            await self.listed(repo, "*")
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

    async def address(self, repo: Repo, record: Record) -> str:
        place = await self._place(repo)
        return f"{place.web}/{place.project}/compare/{quote(record.base)}...{quote(record.branch)}"

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
