"""How the local forge keeps a change: refs/beadmill/changes/<n> of the bare repository.

Each state is a commit with one file, ``change.json``; its parents are the state before and the head it speaks of, so
history stays readable with git alone and the head's objects outlive the branch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from beadmill.errors import Conflict, NotFound, Stale
from beadmill.forges.contract import ChangeDraft, ChangeStatus
from beadmill.git import refs
from beadmill.git.run import Repo
from beadmill.git.trees import NOBODY

PREFIX = "refs/beadmill/changes"
TRIES = 20


@dataclass(frozen=True, slots=True)
class Record:
    """``base_commit`` is the base's tip when the change was last put; ``note`` is what it was closed with."""

    number: int
    title: str
    body: str
    branch: str
    base: str
    base_commit: str
    head: str
    status: str
    merge_sha: str = ""
    method: str = ""
    note: str = ""

    @property
    def open(self) -> bool:
        return self.status in (ChangeStatus.OPEN, ChangeStatus.DRAFT)


@dataclass(frozen=True, slots=True)
class Kept:
    """A record with the commit that holds it: what a compare-and-set compares."""

    record: Record
    commit: str


async def read(repo: Repo, number: int) -> Kept:
    """Raises NotFound; Conflict when what lies there cannot be read."""
    commit = await refs.commit(repo, f"{PREFIX}/{number}")
    if not commit:
        raise NotFound(f"there is no change #{number}", code="NO_CHANGE")
    done = await repo.git("cat-file", "blob", f"{commit}:change.json")
    try:
        return Kept(Record(**json.loads(done.out)), commit)
    except (ValueError, TypeError) as error:
        raise Conflict(
            f"the record of change #{number} cannot be read: {error}",
            code="BAD_CHANGE",
            kept=f"It is {PREFIX}/{number} of the repository.",
            next="Look at its history there, and point the ref at the last good state.",
        ) from error


async def numbers(repo: Repo) -> tuple[int, ...]:
    """Newest first."""
    names = (name.rpartition("/")[2] for name in await refs.listing(repo, PREFIX))
    return tuple(sorted((int(name) for name in names if name.isdigit()), reverse=True))


async def newest(repo: Repo, branch: str) -> Kept | None:
    for number in await numbers(repo):
        kept = await read(repo, number)
        if kept.record.branch == branch:
            return kept
    return None


async def create(repo: Repo, record: Record) -> Kept:
    """Under the next free number."""
    for _ in range(TRIES):
        number = max(await numbers(repo), default=0) + 1
        numbered = replace(record, number=number)
        commit = await _write(repo, numbered, ())
        try:
            await refs.update(repo, f"{PREFIX}/{number}", commit, old="", why="beadmill: open")
        except Stale:
            continue
        return Kept(numbered, commit)
    raise Conflict("no free change number was found", code="CHANGE_RACE", next="Try again.")


async def change(repo: Repo, kept: Kept, record: Record) -> Kept:
    """Replaces ``kept`` if nobody changed it meanwhile. Raises Stale. The same content is no change."""
    if record == kept.record:
        return kept
    commit = await _write(repo, record, (kept.commit,))
    await refs.update(repo, f"{PREFIX}/{record.number}", commit, old=kept.commit, why=f"beadmill: {record.status}")
    return Kept(record, commit)


async def after_close(repo: Repo, kept: Kept, draft: ChangeDraft) -> Kept | None:
    """What new work on a closed change's branch goes on with, None = a new change. Raises Conflict."""
    if draft.after_close == "new":
        return None
    if draft.after_close == "reopen":
        return await reopen(repo, kept)
    raise Conflict(
        f"somebody closed change #{kept.record.number} of {draft.branch}",
        code="CHANGE_CLOSED",
        details={"number": kept.record.number, "choices": ["reopen", "new"]},
        kept="The branch is pushed; the closed change is as it was.",
        next="Reopen it, or open a new one.",
    )


async def reopen(repo: Repo, kept: Kept) -> Kept:
    """Raises Conflict when it is merged."""
    if kept.record.status == ChangeStatus.MERGED:
        raise over(kept.record)
    if kept.record.open:
        return kept
    return await change(repo, kept, replace(kept.record, status=ChangeStatus.OPEN, note=""))


def over(record: Record) -> Conflict:
    if record.status == ChangeStatus.MERGED:
        return Conflict(
            f"change #{record.number} is merged", code="CHANGE_MERGED", kept=f"Its merge is {record.merge_sha}."
        )
    return Conflict(
        f"change #{record.number} is closed", code="CHANGE_CLOSED", next="Reopen it, or push new work for a new one."
    )


async def _write(repo: Repo, record: Record, before: tuple[str, ...]) -> str:
    data = json.dumps(asdict(record), ensure_ascii=False, indent=1, sort_keys=True).encode("utf-8", "replace")
    blob = (await repo.git("hash-object", "-w", "--stdin", input=data)).text
    tree = (await repo.git("mktree", "-z", input=f"100644 blob {blob}\tchange.json\0".encode())).text
    flags = [part for parent in dict.fromkeys((*before, record.head)) for part in ("-p", parent)]
    message = f"change #{record.number}: {record.status}".encode()
    return (await repo.git("commit-tree", tree, *flags, input=message, env=NOBODY)).text
