"""Running commands as things were at an earlier commit, in the same prepared tree, behind an undo ref."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import anyio.to_thread

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
        await v.step("rewind", self.rewind, tree, commit, tuple(paths), saved.ref)
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

    async def rewind(self, tree: Tree, commit: str, paths: tuple[str, ...], kept: str) -> None:
        await anyio.to_thread.run_sync(_forget_bytecode, tree, paths)
        await self.trees.restore_paths(tree, commit, paths, kept)

    async def restore(self, tree: Tree, saved: Saved, *, key: str = "") -> str:
        await self.trees.stash_apply(tree, saved.ref, key=key)
        return await self.trees.tree_hash(tree)

    def _batch(self, v: Visit, tree: Tree, specs: Sequence[CommandSpec], env: Mapping[str, str]) -> Batch:
        own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": ""}
        return Batch(
            specs=tuple(specs),
            cwd=Path(tree.path),
            env={**env, **own},
            stop_at_first_failure=False,
            budget=timedelta(seconds=v.settings.build.command_s),
        )


def _forget_bytecode(tree: Tree, paths: Sequence[str]) -> None:
    """Python keys its bytecode on size and whole seconds, so it could run the wrong state's code: what was compiled of
    these files goes, and the run writes none."""
    root = Path(tree.path).resolve()
    for file in (Path(tree.path) / path for path in paths if path.endswith(".py")):
        cache = file.parent / "__pycache__"
        if cache.resolve().is_relative_to(root):
            for compiled in cache.glob(f"{glob.escape(file.stem)}.*.pyc"):
                compiled.unlink(missing_ok=True)
