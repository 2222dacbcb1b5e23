"""The outside acts on the run's change: publish, merge, close. Each looks first, decisions are fenced before the act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from beadmill.domain.values import RunId
from beadmill.engine.port import Work
from beadmill.errors import Blocked, Conflict, Refused, Stale
from beadmill.forges.contract import ChangeDraft, ChangeRef, ChangeStatus, Forge
from beadmill.forges.news import News, news
from beadmill.git import trees as objects
from beadmill.store.ledger import Changes
from beadmill.workspaces.landing import in_order
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree, Worktrees


@dataclass(frozen=True, slots=True)
class Published:
    number: int
    url: str
    state: str
    title: str
    head: str
    forge: str


@dataclass(frozen=True, slots=True)
class Settled:
    """``disposition`` "" = nothing happened outside: ``problem`` says why, ``moved`` where the base is now."""

    disposition: str = ""  # merged | closed_unmerged
    sha: str = ""
    method: str = ""
    proof: str = ""
    problem: str = ""
    moved: str = ""


class Publisher:
    def __init__(self, trees: Worktrees, forge: Callable[[Work], Forge], changes: Changes) -> None:
        self.trees = trees
        self.forge = forge
        self.changes = changes

    async def publish(self, run: RunId, work: Work, tree: Tree, title: str, body: str) -> Published:
        """Pushes with a lease, then opens or updates the change, as a draft. Raises Stale, Unavailable, Refused."""
        forge = self.forge(work)
        head = await self.trees.head(tree)
        await self.trees.push(tree, expected_remote=None)
        change = await forge.put(ChangeDraft(title=title, body=body, branch=tree.branch, base=tree.base, head=head))
        await self.changes.put(run, change, forge=forge.name)
        return Published(change.ref.number, change.url, str(change.status), change.title, change.head, forge.name)

    async def merge(self, run: RunId, work: Work, tree: Tree, published: Published, verified: str) -> Settled:
        """Merges exactly the approved head and proves it by plain git. A refusal lifts the fence again. Tickets of one
        base merge one by one, and none on a base that is not the ``verified`` one.

        Raises Blocked("PULL_REQUEST_MERGE_FAILED") when the forge says merged and the base does not hold the change.
        """
        async with in_order(tree):
            return await self._merge(run, work, tree, published, verified)

    async def _merge(self, run: RunId, work: Work, tree: Tree, published: Published, verified: str) -> Settled:
        forge, ref = self.forge(work), ChangeRef(published.number)
        tip = await self.trees.fetch_base(tree)
        if tip != verified and (await forge.read(ref)).change.status is not ChangeStatus.MERGED:
            return Settled(moved=tip)
        if (held := await self.changes.decide(run, "merge")) != "merge":
            return Settled(problem=f"it was already decided to {held} this change")
        try:
            merged = await forge.merge(ref, expected_head=published.head)
        except (Stale, Conflict, Refused) as refused:
            if (await forge.read(ref)).change.status is not ChangeStatus.MERGED:
                await self.changes.withdraw(run, "merge")
            return Settled(problem=f"{refused.message}. {refused.next}".strip())
        if merged.queued:  # the change is seen as merged later (operations/outside.py); until then it may be closed
            await self.changes.withdraw(run, "merge")
            return Settled(problem=f"it waits in the merge queue of {merged.base}; it is seen when it is merged")
        return await self._landed(run, tree, published, sha=merged.sha, method=merged.method)

    async def look(self, work: Work, published: Published, handled: tuple[str, ...]) -> News:
        """What people and machines said on the change, but for what became work already."""
        forge, ref = self.forge(work), ChangeRef(published.number)
        return await news(forge, ref, await forge.read(ref), handled=handled)

    async def close(self, run: RunId, work: Work, tree: Tree, published: Published, note: str) -> Settled:
        """Closes the change and keeps its branch. One that was merged outside meanwhile counts as merged."""
        forge, ref = self.forge(work), ChangeRef(published.number)
        state = await forge.read(ref)
        if state.change.status is ChangeStatus.MERGED:
            return await self._landed(run, tree, published, sha=state.merge_sha, method="outside")
        if (held := await self.changes.decide(run, "close")) != "close":
            return Settled(problem=f"it was already decided to {held} this change")
        await forge.close(ref, note=note)
        await self.changes.closed(run)
        return Settled("closed_unmerged")

    async def _landed(self, run: RunId, tree: Tree, published: Published, *, sha: str, method: str) -> Settled:
        base = await self.trees.fetch_base(tree)
        proof = await objects.contains(repo_of(tree), base, published.head)
        if not proof:
            raise Blocked(
                "PULL_REQUEST_MERGE_FAILED",
                f"the forge says that #{published.number} is merged, yet {tree.base} does not hold its change",
                kept=f"the candidate {published.head[:12]} and the decision to merge",
                next=f"look at {tree.base} on the remote, then retry",
            )
        await self.changes.merged(run, sha)
        return Settled("merged", sha, method, proof)
