"""Running commands as things were at an earlier commit, in the same prepared tree, behind an undo ref."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.engine.port import Visit
from beadmill.errors import Blocked, TurnFailed
from beadmill.processes.spec import Batch
from beadmill.workspaces.worktrees import Tree, Worktrees


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the whole working state is kept, and its hash."""

    ref: str
    tree_hash: str


class Rewind:
    """Puts some paths back to a commit, runs commands, puts everything back and compares the tree hash."""

    def __init__(self, trees: Worktrees) -> None:
        self.trees = trees

    async def run(
        self,
        v: Visit,
        tree: Tree,
        *,
        commit: str,
        paths: Sequence[str],
        specs: Sequence[CommandSpec],
        env: Mapping[str, str],
        why: str,
    ) -> tuple[CommandResult, ...] | None:
        """None when the batch was lost or stopped. Raises Blocked("TREE_NOT_RESTORED") when the hashes differ."""
        saved = await v.step("save", self.save, tree, why)
        await v.step("rewind", self.trees.restore_paths, tree, commit, tuple(paths), saved.ref)
        try:
            ran = await v.command("run", lambda: self._batch(v, tree, specs, env))
            results: tuple[CommandResult, ...] | None = ran.results
        except TurnFailed:
            results = None
        if await v.step("restore", self.restore, tree, saved) != saved.tree_hash:
            raise Blocked(
                "TREE_NOT_RESTORED",
                f"after {why} the worktree is not what it was",
                kept=f"the whole state is kept in {saved.ref}",
                next="look at the worktree, then retry",
                details={"undo_ref": saved.ref},
            )
        return results

    async def save(self, tree: Tree, why: str) -> Saved:
        return Saved(await self.trees.undo(tree, why), await self.trees.tree_hash(tree))

    async def restore(self, tree: Tree, saved: Saved, *, key: str = "") -> str:
        await self.trees.stash_apply(tree, saved.ref, key=key)
        return await self.trees.tree_hash(tree)

    def _batch(self, v: Visit, tree: Tree, specs: Sequence[CommandSpec], env: Mapping[str, str]) -> Batch:
        # Python keys its bytecode on size and whole seconds: an own prefix, or it may run the wrong state's code.
        own = {"PYTHONPYCACHEPREFIX": str(Path(tree.workspace) / "tmp" / "pycache" / v.scope.replace("/", "-"))}
        return Batch(
            specs=tuple(specs),
            cwd=Path(tree.path),
            env={**env, **own},
            stop_at_first_failure=False,
            budget=timedelta(seconds=v.settings.build.command_s),
        )
