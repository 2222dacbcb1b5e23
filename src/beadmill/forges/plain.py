"""Changes without an API for them: Beadmill keeps the record itself (records.py) and merges by a push with a lease."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from beadmill import crashpoints
from beadmill.errors import Conflict, Refused, Stale
from beadmill.forges import records
from beadmill.forges.contract import METHODS, Change, ChangeDraft, ChangeRef, ChangeState, ChangeStatus, Comment, Merged
from beadmill.forges.merging import build, signature
from beadmill.forges.records import Kept, Record
from beadmill.git import refs, trees
from beadmill.git.run import Repo, discover


class PlainForge:
    """``repository`` is the user's checkout. A subclass says which repository keeps the records, and how a branch of the
    remote is looked at and moved."""

    name: ClassVar[str] = ""

    def __init__(self, repository: Path, remote: str = "origin") -> None:
        self._checkout = Path(repository)
        self._remote = remote

    async def keeper(self) -> Repo:
        """Where records and objects lie. Raises Unavailable."""
        raise NotImplementedError

    async def tip(self, repo: Repo, branch: str) -> str:
        """The remote's branch, with its objects in ``repo``; "" = there is none."""
        raise NotImplementedError

    def target(self, repo: Repo) -> str:
        """What git pushes to."""
        raise NotImplementedError

    async def address(self, repo: Repo, record: Record) -> str:
        """Where a person looks at the change."""
        raise NotImplementedError

    async def find(self, branch: str) -> Change | None:
        repo = await self.keeper()
        kept = await records.newest(repo, branch)
        return await self._change(repo, (await self._fresh(repo, kept)).record) if kept else None

    async def put(self, draft: ChangeDraft) -> Change:
        repo = await self.keeper()
        base = await self._tips(repo, draft)
        kept = await records.newest(repo, draft.branch)
        kept = await self._fresh(repo, kept) if kept else None
        if kept and not kept.record.open and kept.record.head == draft.head:
            return await self._change(repo, kept.record)
        if kept and kept.record.status == ChangeStatus.CLOSED:
            kept = await records.after_close(repo, kept, draft)
        if await refs.is_ancestor(repo, draft.head, base):
            raise Conflict(
                f"{draft.branch} has nothing that {draft.base} does not have",
                code="NOTHING_TO_MERGE",
                next="Cancel it.",
            )
        wanted = _wanted(draft, base)
        if kept and kept.record.status == ChangeStatus.OPEN:  # made ready, it stays ready
            wanted = replace(wanted, status=ChangeStatus.OPEN)
        crashpoints.reach("forge.put")
        if kept and kept.record.open:
            kept = await records.change(repo, kept, replace(wanted, number=kept.record.number))
        else:
            kept = await records.create(repo, wanted)
        crashpoints.reach("forge.put")
        return await self._change(repo, kept.record)

    async def ready(self, change: ChangeRef) -> Change:
        repo = await self.keeper()
        kept = await self._fresh(repo, await records.read(repo, change.number))
        if not kept.record.open:
            raise records.over(kept.record)
        kept = await records.change(repo, kept, replace(kept.record, status=ChangeStatus.OPEN))
        return await self._change(repo, kept.record)

    async def read(self, change: ChangeRef) -> ChangeState:
        """Looks at the base each time: a change that landed by other hands is merged from then on."""
        repo = await self.keeper()
        record = (await self._fresh(repo, await records.read(repo, change.number))).record
        shown = await self._change(repo, record)
        if not record.open:
            return ChangeState(shown, record.body, merge_sha=record.merge_sha)
        merged = await trees.merge(repo, await self._base(repo, record.base), record.head)
        return ChangeState(shown, record.body, mergeable="no" if merged.conflicts else "yes")

    async def comments(
        self,
        change: ChangeRef,  # noqa: ARG002 - the contract's signature
        since: datetime | None = None,  # noqa: ARG002 - the contract's signature
    ) -> AsyncIterator[Comment]:
        """There is no place to comment."""
        return
        yield

    async def merge(self, change: ChangeRef, *, expected_head: str, method: str = "") -> Merged:
        method = method or METHODS[0]
        if method not in METHODS:
            raise Refused(f"{method!r} is no way to merge", code="BAD_METHOD", next=f"Choose {', '.join(METHODS)}.")
        repo = await self.keeper()
        kept = await self._fresh(repo, await records.read(repo, change.number))
        record = kept.record
        if record.head != expected_head:
            raise _moved(record, expected_head)
        if record.status == ChangeStatus.MERGED:
            return Merged(record.merge_sha, record.base, record.method)
        if record.status == ChangeStatus.CLOSED:
            raise records.over(record)
        base = await self._base(repo, record.base)
        new = await build(repo, record, base, method=method, env=await signature(await discover(self._checkout)))
        crashpoints.reach("forge.merge")
        await self._publish(repo, record.base, new, base)
        crashpoints.reach("forge.merge")
        done = replace(record, status=ChangeStatus.MERGED, merge_sha=new, method=method)
        await records.change(repo, kept, done)
        return Merged(new, record.base, method)

    async def close(self, change: ChangeRef, *, note: str) -> None:
        repo = await self.keeper()
        kept = await self._fresh(repo, await records.read(repo, change.number))
        if kept.record.status == ChangeStatus.MERGED:
            raise records.over(kept.record)
        if kept.record.status == ChangeStatus.CLOSED:
            return
        crashpoints.reach("forge.close")
        await records.change(repo, kept, replace(kept.record, status=ChangeStatus.CLOSED, note=note))
        crashpoints.reach("forge.close")

    async def reopen(self, change: ChangeRef) -> Change:
        repo = await self.keeper()
        kept = await self._fresh(repo, await records.read(repo, change.number))
        return await self._change(repo, (await records.reopen(repo, kept)).record)

    async def _fresh(self, repo: Repo, kept: Kept) -> Kept:
        """The record as the branches stand now."""
        if not kept.record.open:
            return kept
        head = await self.tip(repo, kept.record.branch) or kept.record.head
        record = replace(kept.record, head=head)
        base = await self.tip(repo, record.base)
        if base and base != record.base_commit:
            landed = await trees.landed(repo, base, head)
            if landed.how:
                record = replace(record, status=ChangeStatus.MERGED, merge_sha=landed.sha, method=landed.how)
        try:
            return await records.change(repo, kept, record)
        except Stale:
            return await self._fresh(repo, await records.read(repo, record.number))

    async def _tips(self, repo: Repo, draft: ChangeDraft) -> str:
        """The base's tip, after making sure that the branch is where the draft says."""
        head = await self.tip(repo, draft.branch)
        if head != draft.head:
            raise Conflict(
                f"{draft.branch} is at {head[:12] or 'nothing'} on the remote, not at {draft.head[:12]}",
                code="HEAD_MISMATCH",
                details={"expected": draft.head, "found": head},
                next="Push the branch, then try again.",
            )
        return await self._base(repo, draft.base)

    async def _base(self, repo: Repo, branch: str) -> str:
        tip = await self.tip(repo, branch)
        if not tip:
            raise Conflict(f"the remote has no branch {branch!r}", code="BASE_MISSING", next=f"Push {branch}.")
        return tip

    async def _publish(self, repo: Repo, branch: str, new: str, old: str) -> None:
        """Moves the base by a push with a lease, so the remote's own rules hold. Raises Stale, Refused."""
        lease = f"--force-with-lease=refs/heads/{branch}:{old}"
        place, what = self.target(repo), f"{new}:refs/heads/{branch}"
        done = await repo.git("push", "--porcelain", "--no-verify", lease, place, what, ok=(), timeout=600)
        if done.code == 0:
            return
        now = await self.tip(repo, branch)
        if now != old:
            raise Stale(f"{branch} moved meanwhile", details={"expected": old, "found": now}, next="Try again.")
        raise Refused(
            f"the repository refused the merge: {done.err.strip()[-2000:]}",
            code="MERGE_REFUSED",
            kept="Nothing was merged.",
        )

    async def _change(self, repo: Repo, record: Record) -> Change:
        return Change(
            ref=ChangeRef(record.number),
            url=await self.address(repo, record),
            status=ChangeStatus(record.status),
            title=record.title,
            branch=record.branch,
            base=record.base,
            head=record.head,
        )


def _wanted(draft: ChangeDraft, base: str) -> Record:
    return Record(
        number=0,
        title=draft.title,
        body=draft.body,
        branch=draft.branch,
        base=draft.base,
        base_commit=base,
        head=draft.head,
        status=ChangeStatus.DRAFT if draft.draft else ChangeStatus.OPEN,
    )


def _moved(record: Record, expected: str) -> Stale:
    return Stale(
        f"change #{record.number} is at {record.head[:12]}, not at the approved {expected[:12]}",
        code="HEAD_MOVED",
        details={"expected": expected, "found": record.head},
        kept="Nothing was merged.",
        next="Review the new head.",
    )
