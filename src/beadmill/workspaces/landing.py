"""Landing one bead's work on the ticket's branch.

Today a run has one tree, and its branch is the ticket's. The rule is the one that several trees will need: a bead was
proved on ``expected_head``; when the branch has moved by another bead's commit, the work lands only if it merges
cleanly; otherwise the answer is None and the bead is tried again on the new head.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from beadmill.git import commits, locks, refs, trees, undo
from beadmill.git.run import Repo
from beadmill.workspaces.tree import Tree, acting
from beadmill.workspaces.worktrees import attach_head, branch_tip, bring, found


@asynccontextmanager
async def in_order(tree: Tree) -> AsyncIterator[None]:
    """Alone among the tickets that land on the same base of the same repository. Raises Unavailable after ten minutes."""
    name = hashlib.sha256(f"{tree.common.resolve()}\0{tree.base}".encode(errors="surrogateescape")).hexdigest()[:16]
    async with locks.locked(tree.ticket.parent / ".locks" / f"landing-{name}.lock", within=600):
        yield


async def land(
    tree: Tree, paths: Sequence[str], message: str, trailers: Mapping[str, str], expected_head: str
) -> str | None:
    """The commit of exactly these paths on the branch, None = it does not apply to the moved head.

    Idempotent by ``Beadmill-Key``; nothing to commit = the head. Commits that are not Beadmill's (an agent committed by
    itself) are folded into the one commit and stay in an undo ref. Raises as Worktrees.commit.
    """
    async with acting(tree) as repo:
        await attach_head(repo, tree)
        head = await branch_tip(repo, tree)
        made = await found(repo, trailers, since=tree.base_commit, until=head)
        if made:
            await commits.settle_index(repo, paths)
            return made
        parent = await _parent(repo, tree, head, expected_head, trailers.get(commits.KEY, ""))
        if not parent:
            return None
        content = await commits.tree_of(repo, tree.scratch, expected_head, paths)
        if parent != expected_head:
            merged = await trees.merge_trees(repo, expected_head, parent, content)
            if merged.conflicts:
                return None
            content = merged.tree
        if content == await refs.tree(repo, parent):
            if parent != head:
                await _drop(repo, tree, head, parent)
            return parent
        made = await commits.write(repo, content, [parent], commits.message_of(message, trailers))
        await commits.show(repo, tree.ref, made, head, why="land")
        if head == expected_head:
            await commits.settle_index(repo, paths)
        else:
            await _catch_up(repo, tree, made, expected=expected_head, parent=parent, landed=paths)
        return made


async def _parent(repo: Repo, tree: Tree, head: str, expected: str, key: str) -> str:
    """What the commit stands on; "" when the branch was rewritten and ``expected`` is not in it any more."""
    if head == expected:
        return head
    if not await refs.is_ancestor(repo, expected, head):
        return ""
    shape = f"--format=%H%x09%(trailers:key={commits.KEY},valueonly,separator=%x09)"
    since = await repo.git("log", "-z", "--first-parent", shape, head, f"^{expected}")
    ours = [entry.split("\t")[0] for entry in since.fields if entry.split("\t", 1)[1].strip()]
    why = "before landing on a moved branch"
    await undo.save(repo, tree.undo_prefix, why=why, scratch=tree.scratch, key=f"{key} land" if key else "")
    return ours[0] if ours else expected


async def _drop(repo: Repo, tree: Tree, head: str, parent: str) -> None:
    """The agent's own commits add up to nothing that lands."""
    await commits.show(repo, tree.ref, parent, head, why="land")
    await repo.git("reset", "--quiet", "--mixed")


async def _catch_up(repo: Repo, tree: Tree, made: str, *, expected: str, parent: str, landed: Sequence[str]) -> None:
    """The files that other beads brought, here too, unless this folder has work on them that did not land."""
    brought = set(await trees.changed(repo, expected, parent))
    state = await trees.working(repo, tree.scratch)
    own = set(await trees.changed(repo, expected, state.tree)) - set(landed)
    await repo.git("reset", "--quiet", "--mixed")
    await bring(repo, made, sorted(brought - own))
