"""The forge contract over a hosting service: one course for all of them, in the words of a ``Service`` each.

Every act looks first, so doing it twice is doing it once; what a service would refuse is refused before it is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from beadmill import crashpoints
from beadmill.errors import BeadmillError, Conflict, Refused, Unavailable
from beadmill.forges import _faults, address, credentials
from beadmill.forges._http import Http, Nature
from beadmill.forges.address import Place
from beadmill.forges.contract import METHODS, Change, ChangeDraft, ChangeRef, ChangeState, ChangeStatus, Comment, Merged
from beadmill.forges.service import (
    Ends,
    Exists,
    Pull,
    Service,
    blocked,
    conflicting,
    cut,
    method_of,
    moved,
    over,
)
from beadmill.git import remotes
from beadmill.git.run import discover
from beadmill.processes.box import Health

SETTLE = (0.5, 1.0, 2.0, 4.0)  # seconds between looks at what a service has not worked out yet
TITLE = 240  # characters, a draft's prefix not counted


@dataclass(slots=True)
class HostedForge:
    """``repository`` is the user's checkout, ``url`` the service's web address when a person set it."""

    repository: Path
    remote: str = "origin"
    url: str = ""
    tokens: credentials.Tokens = field(default_factory=credentials.Tokens)
    nature: Nature = field(default_factory=Nature)
    name: ClassVar[str] = ""
    body_limit: ClassVar[int] = 65_000  # characters

    def service(self, http: Http, ends: Ends) -> Service:
        raise NotImplementedError

    def headers(self, token: str) -> dict[str, str]:
        raise NotImplementedError

    async def probe(self) -> Health:
        try:
            ends = await self._ends()
            token = await self._token(ends.base)
            async with self._at(ends, token) as (service, http):
                access = await service.access()
        except BeadmillError as error:
            return Health(ok=False, message=f"{error.message}. {error.next}".strip())
        detail = {
            "host": ends.base.host,
            "repository": ends.base.project,
            "login": access.login,
            "token": token.source,
            "drafts": "yes" if access.drafts else "no",
            "push": "yes" if access.push else "no",
        }
        said = f"{ends.base.project} at {ends.base.host}, as {access.login} (token from {token.source})"
        if http.moved:
            said += f"; the repository moved to {http.moved}: set the remote anew (git remote set-url)"
        if access.note:
            said += f"; {access.note}"
        if not access.push and not ends.forked:
            missing = "this account may not push there: ask for write access, or work from a fork"
            return Health(ok=False, message=f"{said}; {missing}", detail=detail)
        return Health(ok=True, message=said, detail=detail)

    async def find(self, branch: str) -> Change | None:
        async with self._open() as service:
            found = await service.newest(branch)
        return found.change if found else None

    async def put(self, draft: ChangeDraft) -> Change:
        draft = replace(draft, title=cut(draft.title, TITLE), body=cut(draft.body, self.body_limit))
        async with self._open() as service:
            await _at_head(service, draft)
            found = await service.newest(draft.branch)
            if found and not found.open:
                if found.change.head == draft.head:
                    return found.change
                if found.change.status is ChangeStatus.CLOSED:
                    found = await self._after_close(service, found, draft)
            if found is None or not found.open:
                found = await self._create(service, draft)
            return (await self._update(service, found, draft)).change

    async def ready(self, change: ChangeRef) -> Change:
        async with self._open() as service:
            pull = await service.get(change.number)
            if not pull.open:
                raise over(pull)
            if pull.change.status is ChangeStatus.DRAFT:
                await service.ready(pull)
                pull = await service.get(change.number)
            return pull.change

    async def read(self, change: ChangeRef) -> ChangeState:
        async with self._open() as service:
            pull = await service.get(change.number)
            return replace(pull.state, checks=await service.checks(pull), reviews=await service.reviews(pull))

    async def comments(self, change: ChangeRef, since: datetime | None = None) -> AsyncIterator[Comment]:
        async with self._open() as service:
            found = [one async for one in service.comments(change.number, since) if since is None or one.at >= since]
        for one in sorted(found, key=lambda one: (one.at, one.id)):
            yield one

    async def merge(self, change: ChangeRef, *, expected_head: str, method: str = "") -> Merged:
        async with self._open() as service:
            pull = await self._settled(service, change.number)
            if pull.change.head != expected_head:
                raise moved(pull, expected_head)
            if pull.change.status is ChangeStatus.MERGED:
                return Merged(pull.state.merge_sha, pull.change.base, method or METHODS[0])
            way = method_of(method, await service.methods())
            queued = Merged("", pull.change.base, way, queued=True)
            if pull.state.queued:
                return queued
            _mergeable(pull)
            crashpoints.reach("forge.merge")
            if await self._act(service, pull, way):
                return queued
            crashpoints.reach("forge.merge")
            done = await self._landed(service, change.number)
            return Merged(done.state.merge_sha, done.change.base, way)

    async def _act(self, service: Service, pull: Pull, way: str) -> bool:
        """A draft is made ready first, and is one again when the merge is refused."""
        if pull.change.status is not ChangeStatus.DRAFT:
            return await service.merge(pull, way)
        await service.ready(pull)
        try:
            pull = await self._settled(service, pull.number)
            _mergeable(pull)
            return await service.merge(pull, way)
        except (Conflict, Refused):
            await service.unready(pull)
            raise

    async def close(self, change: ChangeRef, *, note: str) -> None:
        async with self._open() as service:
            pull = await service.get(change.number)
            if pull.change.status is ChangeStatus.MERGED:
                raise over(pull)
            if pull.change.status is ChangeStatus.CLOSED:
                return
            crashpoints.reach("forge.close")
            await service.close(change.number)
            crashpoints.reach("forge.close")
            if note.strip():
                await service.note(change.number, note)

    async def reopen(self, change: ChangeRef) -> Change:
        async with self._open() as service:
            pull = await service.get(change.number)
            if pull.change.status is ChangeStatus.MERGED:
                raise over(pull)
            if pull.change.status is ChangeStatus.CLOSED:
                await service.reopen(change.number)
                pull = await service.get(change.number)
            return pull.change

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Service]:
        ends = await self._ends()
        async with self._at(ends, await self._token(ends.base)) as (service, _):
            yield service

    @asynccontextmanager
    async def _at(self, ends: Ends, token: credentials.Token) -> AsyncIterator[tuple[Service, Http]]:
        http = Http(ends.base.host, ends.base.api, self.headers(token.value), self.nature)
        async with http.open():
            yield self.service(http, ends), http

    async def _ends(self) -> Ends:
        repo = await discover(self.repository)
        base = await remotes.base_of(repo, self.remote)
        places = []
        for remote in (self.remote, base):
            found = address.parse(await remotes.url_of(repo, remote))
            if found is None:
                raise Unavailable(
                    f"{remote} is a folder on this machine, no repository of a service",
                    code="FORGE_LOCAL",
                    next="Set the project's forge to local, or the remote to the service's address.",
                )
            places.append(address.place(self.name, found, url=self.url))
        return Ends(*places)

    async def _token(self, place: Place) -> credentials.Token:
        found = await self.tokens.find(place.host, self.name)
        if found is None:
            raise _faults.no_token(place.host, credentials.variable(place.host))
        return found

    async def _after_close(self, service: Service, pull: Pull, draft: ChangeDraft) -> Pull | None:
        if draft.after_close == "new":
            return None
        if draft.after_close == "reopen":
            await service.reopen(pull.number)
            return await service.get(pull.number)
        raise Conflict(
            f"somebody closed change #{pull.number} of {draft.branch}",
            code="CHANGE_CLOSED",
            details={"number": pull.number, "choices": ["reopen", "new"], "url": pull.change.url},
            kept="The branch is pushed; the closed change is as it was.",
            next="Reopen it, or open a new one.",
        )

    async def _create(self, service: Service, draft: ChangeDraft) -> Pull:
        if not await service.ahead(draft):
            raise Conflict(
                f"{draft.branch} has nothing that {draft.base} does not have",
                code="NOTHING_TO_MERGE",
                next="Cancel it.",
            )
        crashpoints.reach("forge.put")
        try:
            made = await service.create(draft)
        except Exists as said:
            found = await service.newest(draft.branch)
            if found is None or not found.open:
                raise Conflict(
                    f"the service says that {draft.branch} has a change already, and shows none: {said}",
                    code="CHANGE_HIDDEN",
                    kept=_faults.KEPT,
                    next="Look at the service's own page, then retry.",
                ) from said
            return found
        crashpoints.reach("forge.put")
        return made

    async def _update(self, service: Service, pull: Pull, draft: ChangeDraft) -> Pull:
        """Changes what differs. A service may need a moment to see a push."""
        now = pull.change
        same = (now.title, pull.state.body.strip(), now.base) == (draft.title, draft.body.strip(), draft.base)
        if not same:
            await service.edit(pull, draft)
            pull = await service.get(pull.number)
        if now.status is ChangeStatus.DRAFT and not draft.draft:
            await service.ready(pull)
            pull = await service.get(pull.number)
        for pause in SETTLE:
            if pull.change.head == draft.head:
                return pull
            await self.nature.pause(pause)
            pull = await service.get(pull.number)
        if pull.change.head == draft.head:
            return pull
        raise Unavailable(
            f"change #{pull.number} still shows {pull.change.head[:12]}, not the pushed {draft.head[:12]}",
            code="FORGE_LAGS",
            kept=_faults.KEPT,
            next="Retry in a minute.",
        )

    async def _settled(self, service: Service, number: int) -> Pull:
        """After the service has worked out whether base and head merge."""
        pull = await service.get(number)
        for pause in SETTLE:
            if not (pull.open and pull.waits):
                break
            await self.nature.pause(pause)
            pull = await service.get(number)
        return pull

    async def _landed(self, service: Service, number: int) -> Pull:
        """The merged change. Some services answer before they have written its merge."""
        for pause in SETTLE:
            pull = await service.get(number)
            if pull.change.status is ChangeStatus.MERGED and pull.state.merge_sha:
                return pull
            await self.nature.pause(pause)
        raise Unavailable(
            f"the service took the merge of change #{number} and does not show it yet",
            code="FORGE_LAGS",
            kept="The merge is on its way.",
            next="Retry in a minute: a merge that is done is found.",
        )


async def _at_head(service: Service, draft: ChangeDraft) -> None:
    tip = await service.tip(draft.branch)
    if tip != draft.head:
        raise Conflict(
            f"{draft.branch} is at {tip[:12] or 'nothing'} on the remote, not at {draft.head[:12]}",
            code="HEAD_MISMATCH",
            details={"expected": draft.head, "found": tip},
            next="Push the branch, then try again.",
        )


def _mergeable(pull: Pull) -> None:
    state = pull.state
    if pull.change.status is ChangeStatus.CLOSED:
        raise over(pull)
    if state.mergeable == "no":
        raise conflicting(pull)
    if state.blocked:
        raise blocked(pull, state.blocked)
