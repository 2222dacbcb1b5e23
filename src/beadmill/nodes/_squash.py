"""Integration in git: one candidate commit of exact paths, put on the base when that moved (reference §9.4)."""

from __future__ import annotations

from dataclasses import dataclass

from beadmill.errors import Conflict
from beadmill.git import trees as objects
from beadmill.nodes import _inputs
from beadmill.nodes._ground import Ground
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree

REVIEW_DIFF = 30_000  # characters of the patch for the audit


@dataclass(frozen=True, slots=True)
class Branch:
    """The branch before the squash."""

    head: str
    fork: str
    base_tip: str
    commits: int
    paths: tuple[str, ...]
    diff: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """``onto`` is what the commit stands on and ``paths`` where it differs from that; ``conflicts`` are paths whose
    content holds conflict markers."""

    commit: str
    onto: str
    undo_ref: str
    conflicts: tuple[str, ...] = ()
    paths: tuple[str, ...] | None = None


class Squasher:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.trees = ground.trees

    async def read(self, tree: Tree) -> Branch:
        """Fetches the base and says what the branch holds since it left it. Raises Unavailable."""
        tip = await self.trees.fetch_base(tree)
        fork, head = await self.trees.merge_base(tree), await self.trees.head(tree)
        repo = repo_of(tree)
        count = await repo.git("rev-list", "--count", f"{fork}..{head}")
        paths = await objects.changed(repo, fork, head)
        diff = await self.trees.diff(tree, fork, head)
        return Branch(head, fork, tip, int(count.text), tuple(sorted(paths)), diff[:REVIEW_DIFF])

    async def squash(
        self,
        tree: Tree,
        branch: Branch,
        paths: tuple[str, ...],
        message: str,
        inputs: tuple[str, ...],
        *,
        key: str = "",
    ) -> Candidate:
        """One commit on the fork point; what the audit left out goes behind an undo ref and out of the tree."""
        undo = await self.trees.undo(tree, "before integration", key=key)
        trailers = {"Beadmill-Key": key}
        commit = await self.trees.squash(tree, branch.fork, paths, message, trailers=trailers)
        await self.ground.clean(tree, commit, inputs, "files that are not part of the candidate", key=key)
        return Candidate(commit, branch.fork, undo, paths=paths)

    async def rebase(
        self, tree: Tree, branch: Branch, candidate: Candidate, message: str, inputs: tuple[str, ...], *, key: str = ""
    ) -> Candidate:
        """The candidate on the moved base. With conflicts the commit holds their markers, for a bead to resolve."""
        repo = repo_of(tree)
        merged = await objects.merge(repo, branch.base_tip, candidate.commit)
        paths = await objects.changed(repo, branch.base_tip, merged.tree)
        if not paths:
            raise Conflict(
                f"{tree.base} already holds the whole change",
                code="NOTHING_LEFT",
                kept=candidate.undo_ref,
                next="close the ticket without a merge, or request more",
            )
        undo = await self.trees.reset(tree, branch.base_tip, why="onto the moved base", key=key)
        await self.trees.restore_paths(tree, merged.tree, paths, undo)
        commit = await self.trees.commit(tree, paths, message, trailers={"Beadmill-Key": key})
        await _inputs.again(tree, inputs)
        return Candidate(commit, branch.base_tip, undo, merged.conflicts, tuple(sorted(paths)))
