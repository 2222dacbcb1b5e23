"""Changes without a hosting service: a bare repository on this machine is both origin and forge.

Objects are written into the bare repository; branches move by a push into it, so its own hooks run as they would for
anybody. The user's checkout is read (address of origin, identity) and never written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from beadmill import crashpoints
from beadmill.errors import BeadmillError, Conflict, Refused, Stale, Unavailable
from beadmill.forges import records
from beadmill.forges.contract import METHODS, Change, ChangeDraft, ChangeRef, ChangeState, ChangeStatus, Comment, Merged
from beadmill.forges.merging import build, signature
from beadmill.forges.records import Kept, Record
from beadmill.git import refs, trees
from beadmill.git.run import Repo, discover
from beadmill.processes.box import Health


class LocalForge:
    """``repository`` is the user's checkout; its ``remote`` is a path or file:// address of a bare repository."""

    name = "local"

    def __init__(self, repository: Path, remote: str = "origin") -> None:
        self._checkout = Path(repository)
        self._remote = remote

    async def probe(self) -> Health:
        try:
            bare = await self._bare()
        except BeadmillError as error:
            return Health(ok=False, message=f"{error.message}. {error.next}".strip())
        return Health(ok=True, message="changes are kept in the bare repository", detail={"path": str(bare.git_dir)})

    async def find(self, branch: str) -> Change | None:
        bare = await self._bare()
        kept = await records.newest(bare, branch)
        return _change(bare, (await self._fresh(bare, kept)).record) if kept else None

    async def put(self, draft: ChangeDraft) -> Change:
        bare = await self._bare()
        base = await self._tips(bare, draft)
        kept = await records.newest(bare, draft.branch)
        kept = await self._fresh(bare, kept) if kept else None
        if kept and not kept.record.open and kept.record.head == draft.head:
            return _change(bare, kept.record)
        if kept and kept.record.status == ChangeStatus.CLOSED:
            kept = await records.after_close(bare, kept, draft)
        if await refs.is_ancestor(bare, draft.head, base):
            raise Conflict(
                f"{draft.branch} has nothing that {draft.base} does not have",
                code="NOTHING_TO_MERGE",
                next="Cancel it.",
            )
        wanted = Record(
            number=0,
            title=draft.title,
            body=draft.body,
            branch=draft.branch,
            base=draft.base,
            base_commit=base,
            head=draft.head,
            status=ChangeStatus.DRAFT if draft.draft else ChangeStatus.OPEN,
        )
        if kept and kept.record.status == ChangeStatus.OPEN:  # made ready, it stays ready
            wanted = replace(wanted, status=ChangeStatus.OPEN)
        crashpoints.reach("forge.put")
        if kept and kept.record.open:
            kept = await records.change(bare, kept, replace(wanted, number=kept.record.number))
        else:
            kept = await records.create(bare, wanted)
        crashpoints.reach("forge.put")
        return _change(bare, kept.record)

    async def ready(self, change: ChangeRef) -> Change:
        bare = await self._bare()
        kept = await self._fresh(bare, await records.read(bare, change.number))
        if not kept.record.open:
            raise records.over(kept.record)
        kept = await records.change(bare, kept, replace(kept.record, status=ChangeStatus.OPEN))
        return _change(bare, kept.record)

    async def read(self, change: ChangeRef) -> ChangeState:
        """Looks at the base each time: a change that landed by other hands is merged from then on."""
        bare = await self._bare()
        record = (await self._fresh(bare, await records.read(bare, change.number))).record
        if not record.open:
            return ChangeState(_change(bare, record), record.body, merge_sha=record.merge_sha)
        merged = await trees.merge(bare, await _tip(bare, record.base), record.head)
        return ChangeState(_change(bare, record), record.body, mergeable="no" if merged.conflicts else "yes")

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
        bare = await self._bare()
        kept = await self._fresh(bare, await records.read(bare, change.number))
        record = kept.record
        if record.head != expected_head:
            raise _moved(record, expected_head)
        if record.status == ChangeStatus.MERGED:
            return Merged(record.merge_sha, record.base, record.method)
        if record.status == ChangeStatus.CLOSED:
            raise records.over(record)
        base = await _tip(bare, record.base)
        new = await build(bare, record, base, method=method, env=await self._signature())
        crashpoints.reach("forge.merge")
        await _publish(bare, record.base, new, base)
        crashpoints.reach("forge.merge")
        done = replace(record, status=ChangeStatus.MERGED, merge_sha=new, method=method)
        await records.change(bare, kept, done)
        return Merged(new, record.base, method)

    async def close(self, change: ChangeRef, *, note: str) -> None:
        bare = await self._bare()
        kept = await self._fresh(bare, await records.read(bare, change.number))
        if kept.record.status == ChangeStatus.MERGED:
            raise records.over(kept.record)
        if kept.record.status == ChangeStatus.CLOSED:
            return
        crashpoints.reach("forge.close")
        await records.change(bare, kept, replace(kept.record, status=ChangeStatus.CLOSED, note=note))
        crashpoints.reach("forge.close")

    async def reopen(self, change: ChangeRef) -> Change:
        bare = await self._bare()
        kept = await self._fresh(bare, await records.read(bare, change.number))
        return _change(bare, (await records.reopen(bare, kept)).record)

    async def _bare(self) -> Repo:
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
                f"{self._remote} is not a repository on this machine", code="FORGE_NOT_LOCAL", next="Choose its forge."
            )
        return await _open_bare(place)

    async def _fresh(self, bare: Repo, kept: Kept) -> Kept:
        """The record as the branches stand now."""
        if not kept.record.open:
            return kept
        head = await refs.commit(bare, f"refs/heads/{kept.record.branch}") or kept.record.head
        record = replace(kept.record, head=head)
        base = await refs.commit(bare, f"refs/heads/{record.base}")
        if base and base != record.base_commit:
            landed = await trees.landed(bare, base, head)
            if landed.how:
                record = replace(record, status=ChangeStatus.MERGED, merge_sha=landed.sha, method=landed.how)
        try:
            return await records.change(bare, kept, record)
        except Stale:
            return await self._fresh(bare, await records.read(bare, record.number))

    async def _tips(self, bare: Repo, draft: ChangeDraft) -> str:
        """The base's tip, after making sure that the branch is where the draft says."""
        head = await refs.commit(bare, f"refs/heads/{draft.branch}")
        if head != draft.head:
            raise Conflict(
                f"{draft.branch} is at {head[:12] or 'nothing'} on the remote, not at {draft.head[:12]}",
                code="HEAD_MISMATCH",
                details={"expected": draft.head, "found": head},
                next="Push the branch, then try again.",
            )
        return await _tip(bare, draft.base)

    async def _signature(self) -> Mapping[str, str]:
        return await signature(await discover(self._checkout))


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


async def _tip(bare: Repo, branch: str) -> str:
    tip = await refs.commit(bare, f"refs/heads/{branch}")
    if not tip:
        raise Conflict(f"the remote has no branch {branch!r}", code="BASE_MISSING", next=f"Push {branch}.")
    return tip


async def _publish(bare: Repo, branch: str, new: str, old: str) -> None:
    """Moves the base by a push with a lease, so the repository's own rules hold. Raises Stale, Refused."""
    lease = f"--force-with-lease=refs/heads/{branch}:{old}"
    done = await bare.git(
        "push", "--porcelain", "--no-verify", lease, str(bare.git_dir), f"{new}:refs/heads/{branch}", ok=(), timeout=600
    )
    if done.code == 0:
        return
    now = await refs.commit(bare, f"refs/heads/{branch}")
    if now != old:
        raise Stale(f"{branch} moved meanwhile", details={"expected": old, "found": now}, next="Try again.")
    raise Refused(
        f"the repository refused the merge: {done.err.strip()[-2000:]}",
        code="MERGE_REFUSED",
        kept="Nothing was merged.",
    )


def _moved(record: Record, expected: str) -> Stale:
    return Stale(
        f"change #{record.number} is at {record.head[:12]}, not at the approved {expected[:12]}",
        code="HEAD_MOVED",
        details={"expected": expected, "found": record.head},
        kept="Nothing was merged.",
        next="Review the new head.",
    )


def _change(bare: Repo, record: Record) -> Change:
    return Change(
        ref=ChangeRef(record.number),
        url=f"{bare.git_dir.as_uri()}#change-{record.number}",
        status=ChangeStatus(record.status),
        title=record.title,
        branch=record.branch,
        base=record.base,
        head=record.head,
    )
