"""scan: open the run's worktree and find the files that matter (reference looptroop-lifecycle §6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from beadmill.artifacts.reading.shapes import RELEVANT_FILES
from beadmill.artifacts.relevant_files import RelevantFile, RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs
from beadmill.council import implementer
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Access, ArtifactRef, Brief, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.engine.structured import Structured, structured
from beadmill.nodes._planning import ticket_part
from beadmill.processes.spec import AgentTask
from beadmill.workspaces.worktrees import Tree

MOST_FILES = 30
MOST_CHARACTERS = 160_000  # rationale and preview of all files together
_RANK = {"high": 0, "medium": 1, "low": 2}


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
        found = await self._scan(v, tree)
        files, dropped = trimmed(found.value)
        done = files.model_copy(update={"ticket_id": work.key, "base_commit": tree.base_commit})
        ref: ArtifactRef = await v.put(done, by=implementer(v.settings))
        note = f"{len(done.files)} files" + (f", {dropped} of lowest relevance left out" if dropped else "")
        return Outcome("ok", made=(place, ref), note=note)

    async def _scan(self, v: Visit, tree: Tree) -> Structured[RelevantFiles]:
        council = v.settings.council
        budget = timedelta(seconds=council.deadline_s)
        briefs = self.briefs.within(v.settings.context_tokens)

        def brief() -> Brief:
            return briefs.write("scan", [ticket_part(v.work)], ticket=v.work.key, shape=RELEVANT_FILES)

        def task(given: Brief) -> AgentTask:
            seat = implementer(v.settings)
            return AgentTask(
                seat=seat, brief=given, access=Access.READ, cwd=Path(tree.path), budget=budget, idle=budget
            )

        return await structured(
            v,
            "files",
            shape=RELEVANT_FILES,
            task=task,
            brief=brief,
            retries=council.structured_retries,
            briefs=briefs,
        )


def report(tree: Tree) -> ScanReport:
    return ScanReport(branch=tree.branch, base=tree.base, base_commit=tree.base_commit, tree=str(tree.path))


def trimmed(found: RelevantFiles) -> tuple[RelevantFiles, int]:
    """Each path once, high relevance first, at most 30 files and 160,000 characters; how many were left out.

    The order within one relevance is the model's.
    """
    once = {file.path: file for file in reversed(found.files)}
    ordered = sorted(reversed(once.values()), key=lambda file: _RANK[file.relevance])
    kept: list[RelevantFile] = []
    room = MOST_CHARACTERS
    for file in ordered[:MOST_FILES]:
        room -= len(file.rationale) + len(file.content_preview)
        if room < 0:
            break
        kept.append(file)
    return found.model_copy(update={"files": tuple(kept)}), len(once) - len(kept)
