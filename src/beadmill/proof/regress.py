"""The regression gate: project commands that did pass before the change and do not pass now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from beadmill.artifacts.setup import CommandRun, ProjectCommands
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.engine.port import Visit
from beadmill.processes.spec import Batch
from beadmill.proof.failures import same_failure
from beadmill.proof.runs import result_of, run_of
from beadmill.proof.start import Rewind
from beadmill.workspaces.worktrees import Tree, Worktrees


def gated(commands: ProjectCommands) -> tuple[CommandSpec, ...]:
    """Everything that is compared with the state before the change, each once: tests, lint, types."""
    wanted = (*commands.test_full, *commands.lint_full, *commands.typecheck_full)
    return tuple({str(spec): spec for spec in wanted}.values())


def regressions(baseline: Sequence[CommandRun], now: Sequence[CommandRun]) -> tuple[str, ...]:
    """Commands that fail now and passed, or failed differently, in the baseline; a command without one must pass."""
    before = {run.command: run for run in baseline}
    return tuple(run.command for run in now if not run.ok and not _known(run, before.get(run.command)))


def _known(run: CommandRun, before: CommandRun | None) -> bool:
    return before is not None and same_failure(result_of(run), result_of(before), before=before.failing)


@dataclass(frozen=True, slots=True)
class Gated:
    """``runs`` are the first ones. ``flaky`` failed and passed with nothing changed in between; ``theirs`` fail on the
    base by itself in the same way."""

    runs: tuple[CommandRun, ...] = ()
    regressions: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """``base`` is the commit that the change stands on, ``name`` that of the durable call."""

    specs: tuple[CommandSpec, ...]
    baseline: tuple[CommandRun, ...]
    base: str
    env: Mapping[str, str]
    purpose: str
    name: str


class Gate:
    def __init__(self, trees: Worktrees) -> None:
        self.trees = trees
        self.rewind = Rewind(trees)

    async def run(self, v: Visit, tree: Tree, measure: Measure) -> Gated:
        """What fails is run once more, then on the base by itself; only what then still is new counts."""
        runs = await self._run(v, measure.name, tree, measure, measure.specs)
        failing = regressions(measure.baseline, runs)
        if not failing:
            return Gated(runs)
        again = await self._run(v, f"{measure.name}-again", tree, measure, _of(measure.specs, failing))
        flaky = tuple(run.command for run in again if run.ok)
        left = _of(measure.specs, [run.command for run in again if not run.ok])
        theirs = await self._theirs(v, tree, measure, left, again) if left else ()
        new = tuple(command for command in failing if command not in (*flaky, *theirs))
        return Gated(runs, new, flaky, theirs)

    async def _run(
        self, v: Visit, name: str, tree: Tree, measure: Measure, specs: tuple[CommandSpec, ...]
    ) -> tuple[CommandRun, ...]:
        budget = timedelta(seconds=v.settings.build.command_s)
        ran = await v.command(
            name, lambda: Batch(specs, Path(tree.path), measure.env, stop_at_first_failure=False, budget=budget)
        )
        return tuple(run_of(result, measure.purpose) for result in ran.results)

    async def _theirs(
        self, v: Visit, tree: Tree, measure: Measure, specs: tuple[CommandSpec, ...], again: Sequence[CommandRun]
    ) -> tuple[str, ...]:
        paths = await v.step(f"{measure.name}-paths", self.trees.changed, tree, measure.base)
        if not paths:
            return ()
        alone = await self.rewind.run(
            v.at(f"{measure.name}-base"), tree, commit=measure.base, paths=paths, specs=specs, env=measure.env,
            why="a run on the base by itself",
        )  # fmt: skip
        now = {run.command: run for run in again}
        return tuple(r.command for r in alone or () if _fails_like(now.get(r.command), r))


def _of(specs: Sequence[CommandSpec], commands: Sequence[str]) -> tuple[CommandSpec, ...]:
    return tuple(spec for spec in specs if str(spec) in commands)


def _fails_like(run: CommandRun | None, alone: CommandResult) -> bool:
    return run is not None and same_failure(result_of(run), alone)
