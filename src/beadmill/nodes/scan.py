"""scan: open the run's worktree and find the files that matter (reference looptroop-lifecycle §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs
from beadmill.council import implementer
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._rescan import scan
from beadmill.workspaces.worktrees import Tree


class Opener(Protocol):
    """The part of Worktrees that the scan needs."""

    async def open(self, repository: str, workspace: str, *, branch: str, base: str) -> Tree: ...


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """Nothing to set yet: the implementer's seat reads."""


class ScanNode:
    spec = NodeSpec("scan", ScanConfig, frozenset({"ok"}), writes=(ScanReport, RelevantFiles))

    def __init__(self, trees: Opener, briefs: Briefs) -> None:
        self.trees = trees
        self.briefs = briefs

    async def visit(self, v: Visit, _cfg: ScanConfig, /) -> Outcome:
        await v.phase(Phase.SCANNING_RELEVANT_FILES)
        work = v.work
        tree = await v.step(
            "tree", self.trees.open, work.repository, work.workspace, branch=work.branch, base=work.base
        )
        place = await v.put(report(tree), by=SYSTEM)
        found = await scan(v, tree.path, self.briefs)
        files = found.value.model_copy(update={"ticket_id": work.key, "base_commit": tree.base_commit})
        ref = await v.put(files, by=implementer(v.settings))
        dropped = [one.detail for one in found.interventions if one.category == "dropped"]
        return Outcome("ok", made=(place, ref), note="; ".join((f"{len(files.files)} files", *dropped)))


def report(tree: Tree) -> ScanReport:
    return ScanReport(
        branch=tree.branch, base=tree.base, base_commit=tree.base_commit, tree=tree.path, notes=tree.warnings
    )
