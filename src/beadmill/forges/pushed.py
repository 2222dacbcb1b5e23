"""A change at any git server, by plain git: its record in the user's repository, its merge a push with a lease."""

from __future__ import annotations

from typing import ClassVar, Final

from beadmill.errors import BeadmillError
from beadmill.forges.plain import PlainForge
from beadmill.forges.records import Record
from beadmill.git import refs, remotes
from beadmill.git.run import Repo, discover
from beadmill.processes.box import Health

SEEN: Final = "refs/beadmill/forge"  # <SEEN>/<branch>: the remote's branch as last looked at


class PushedForge(PlainForge):
    async def keeper(self) -> Repo:
        return await discover(self._checkout)

    async def tip(self, repo: Repo, branch: str) -> str:
        """Fetched, so that its objects are here. Raises Unavailable."""
        if not await self.listed(repo, branch):
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

    async def listed(self, repo: Repo, branch: str) -> bool:
        done = await repo.git("ls-remote", self._remote, f"refs/heads/{branch}", ok=(), timeout=60)
        if done.code:
            raise refs.outside(done, remote=self._remote, doing="asking for its branches")
        return bool(done.text)


class DirectForge(PushedForge):
    """No pull request anywhere: after the decision the change goes straight to the shared branch. Whether we may push
    there shows when it is tried."""

    name: ClassVar[str] = "direct"

    async def probe(self) -> Health:
        try:
            repo = await self.keeper()
            await self.listed(repo, "*")
            url = await remotes.url_of(repo, self._remote)
        except BeadmillError as error:
            return Health(ok=False, message=f"{error.message}. {error.next}".strip())
        where = remotes.without_sign_in(url)
        said = f"the change is merged straight into the base at {where}; there is no pull request"
        return Health(ok=True, message=said, detail={"remote": where, "drafts": "no"})

    async def address(self, repo: Repo, record: Record) -> str:
        return f"{remotes.without_sign_in(await remotes.url_of(repo, self._remote))}#{record.branch}"
