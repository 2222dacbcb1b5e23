"""Script: one command in the run's workspace."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio

from beadmill.artifacts.setup import CommandRun
from beadmill.domain.values import Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._config import ScriptConfig
from beadmill.nodes._ledger import book
from beadmill.processes.spec import Batch
from beadmill.proof.runs import how, run_of
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Worktrees


class ScriptNode:
    spec = NodeSpec("script", ScriptConfig, frozenset({"ok", "failed"}))

    def __init__(self, *, trees: Worktrees, ledger: Ledger) -> None:
        self.trees = trees
        self.ledger = ledger

    async def visit(self, v: Visit, cfg: ScriptConfig, /) -> Outcome:
        where = await v.step("where", self._where, v)
        budget = timedelta(seconds=cfg.timeout_s)
        ran = await v.command("run", lambda: Batch((cfg.spec,), Path(where), budget=budget))
        runs = tuple(run_of(result, "script") for result in ran.results)
        await v.step("book", self._book, v, runs)
        said = runs[-1].output.strip() if runs else ""
        note = said[-500:] if ran.ok or not runs else f"{how(runs[-1])}: {said[-480:]}"
        return Outcome("ok" if ran.ok else "failed", note=note)

    async def _where(self, v: Visit) -> str:
        """The worktree when the run has a repository, else the workspace itself; it exists afterwards."""
        work = v.work
        if work.repository:
            tree = await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)
            return tree.path
        await anyio.Path(work.workspace).mkdir(mode=0o700, parents=True, exist_ok=True)
        return work.workspace

    async def _book(self, v: Visit, runs: tuple[CommandRun, ...], *, key: str = "") -> None:
        await book(self.ledger, v.ref, runs, commit="", key=key)
