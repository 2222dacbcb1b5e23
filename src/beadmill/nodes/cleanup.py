"""Cleanup: the workspace goes, documents and what people may want stay; it never fails a ticket (reference §9.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from beadmill.artifacts.delivery import CleanupReport, MergeReport
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome, RunId
from beadmill.engine.port import NodeSpec, Visit, Work
from beadmill.errors import BeadmillError
from beadmill.git import kept, refs
from beadmill.git.run import Repo
from beadmill.nodes._config import NoConfig
from beadmill.processes.contract import Servers
from beadmill.processes.places import LANES
from beadmill.workspaces import lanes, leftovers
from beadmill.workspaces.worktrees import Tree, Worktrees

FOLDERS = ("tmp", "home", "empty", LANES)
SAVED = ("set-aside", "foreign-git-*")  # in runtime: what no undo ref could keep


@dataclass(frozen=True, slots=True)
class Cleaned:
    removed: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CleanupNode:
    spec = NodeSpec("cleanup", NoConfig, frozenset({"done"}), reads=(MergeReport,), writes=(CleanupReport,))

    def __init__(self, *, trees: Worktrees, servers: Servers) -> None:
        self.trees, self.servers = trees, servers

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        await v.phase(Phase.CLEANING_ENV)
        merge = await v.get(MergeReport)
        tree = await v.step("tree", self._open, v)  # by itself: opened again after its removal it would be made anew
        await v.step("servers", self._close_servers, v.ref.run)
        cleaned = await v.step("clean", self.clean, v.work, tree, merge.disposition)
        report = CleanupReport(
            status="warning" if cleaned.warnings else "clean",
            removed=cleaned.removed,
            preserved=cleaned.preserved,
            warnings=cleaned.warnings,
        )
        ref = await v.put(report, by=SYSTEM)
        return Outcome("done", made=(ref,), note=cleaned.warnings[0] if cleaned.warnings else "")

    async def _open(self, v: Visit) -> Tree | None:
        work = v.work
        try:
            return await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)
        except (BeadmillError, OSError):
            return None

    async def _close_servers(self, run: RunId) -> str:
        """They live in the workspace. One that does not end is named, and stopped again once the run is over."""
        try:
            await self.servers.close(run, "the workspace goes")
        except BeadmillError as error:
            return error.message
        return ""

    async def clean(self, work: Work, tree: Tree | None, disposition: str) -> Cleaned:
        """Each part by itself: what cannot be removed is named and left."""
        if tree is None:
            return Cleaned(warnings=("the worktree cannot be found",), preserved=(work.workspace,))
        parts: list[Cleaned] = []
        gone = await lanes.remove_lanes(tree)
        parts.append(Cleaned(removed=gone.removed, warnings=gone.warnings))
        if gone.warnings:
            return _together([*parts, Cleaned(preserved=(work.workspace,))])
        try:
            await self.trees.remove(tree)
            parts.append(Cleaned(removed=(tree.path,), preserved=(f"undo refs below {tree.undo_prefix}",)))
            parts.append(await self._branch(tree, merged=disposition == "merged"))
        except (BeadmillError, OSError) as error:
            parts.append(Cleaned(warnings=(f"the worktree stays: {error}",), preserved=(work.workspace,)))
        else:
            parts += [await anyio.to_thread.run_sync(_remove, Path(work.workspace) / name) for name in FOLDERS]
            parts.append(await anyio.to_thread.run_sync(_runtime, Path(work.workspace) / "runtime"))
        return _together(parts)

    async def _branch(self, tree: Tree, *, merged: bool) -> Cleaned:
        """A merged branch goes when another ref has its tip (the base, or an undo ref); one that was closed may still be
        wanted."""
        if not merged:
            return Cleaned(preserved=(f"branch {tree.branch}",))
        repo = Repo(tree.common, None)
        tip = await refs.commit(repo, tree.ref)
        if tip and not await kept.holders(repo, tip, but=tree.ref):
            return Cleaned(preserved=(f"branch {tree.branch}: its last commit {tip[:12]} is on no other ref",))
        if tip:
            await repo.git("update-ref", "-d", tree.ref, tip)
        return Cleaned(removed=(f"branch {tree.branch}",))


def _together(parts: Sequence[Cleaned]) -> Cleaned:
    return Cleaned(
        tuple(one for part in parts for one in part.removed),
        (*(one for part in parts for one in part.preserved), "documents, events and session logs of the run"),
        tuple(one for part in parts for one in part.warnings),
    )


def _remove(path: Path) -> Cleaned:
    if not path.exists():
        return Cleaned()
    try:
        leftovers.wipe(path)
    except OSError as error:
        return Cleaned(warnings=(f"{path} stays: {error}",), preserved=(str(path),))
    return Cleaned(removed=(str(path),))


def _runtime(path: Path) -> Cleaned:
    """With the record of the tree, so it comes last. What was saved there stays."""
    saved = sorted(found for pattern in SAVED for found in path.glob(pattern))
    if not saved:
        return _remove(path)
    rest = [_remove(one) for one in sorted(path.iterdir()) if one not in saved]
    return Cleaned(
        tuple(one for part in rest for one in part.removed),
        tuple(f"{one}: no undo ref could keep it" for one in saved),
        tuple(one for part in rest for one in part.warnings),
    )
