"""Carrying out an approved setup plan: inputs, steps, probes, repair by an agent, baseline → SetupProfile."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.reading.shapes import SETUP_PLAN
from beadmill.artifacts.setup import CommandRun, SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import fails_the_try
from beadmill.domain.values import SYSTEM, Access, Brief
from beadmill.engine.port import Visit
from beadmill.engine.structured import structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes import _escape, _inputs
from beadmill.nodes._inputs import Copied
from beadmill.nodes._material import notes_part, part, ticket_part
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask, Batch
from beadmill.proof.noise import is_noise
from beadmill.proof.regress import gated
from beadmill.proof.runs import run_of, told
from beadmill.workspaces.worktrees import Tree, Worktrees

PROBE_TIME = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Tried:
    """One verification: everything that ran, what failed that had to pass, what a person should know."""

    steps: tuple[CommandRun, ...] = ()
    probes: tuple[CommandRun, ...] = ()
    failed: tuple[CommandRun, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    plan: SetupPlan
    copied: Copied
    tried: Tried
    baseline: tuple[CommandRun, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Preparer:
    def __init__(self, trees: Worktrees, briefs: Briefs) -> None:
        self.trees = trees
        self.briefs = briefs

    async def prepare(self, v: Visit, tree: Tree, plan: SetupPlan) -> SetupProfile:
        """Raises Blocked("EXECUTION_SETUP_FAILED") when verification still fails after the last repair."""
        start = await v.step("start", self.trees.head, tree)
        copied = await v.step("inputs", _inputs.copy, tree, plan.workspace_inputs)
        if copied.refused:
            raise Blocked(
                "WORKSPACE_INPUT_REFUSED",
                "; ".join(copied.refused),
                forget=(v.scope,),
                next="send the run back to setup and let the plan be made again",
            )
        notes: tuple[str, ...] = ()
        tried = Tried()
        for n in count(1):
            here = await v.at(f"try-{n}").renewed()
            tried = await self.verify(here, tree, plan, start, copied)
            notes += tried.notes
            if not tried.failed:
                baseline = await self._baseline(v, tree, plan, start, copied)
                return _profile(Ready(plan, copied, tried, baseline, notes))
            if n >= here.settings.build.attempts:
                break
            then = await here.step("checkout", _escape.before, v, tree)
            watch = _escape.Watch(self.trees, tree, start, then)
            better, escape = await watch.over(
                here, partial(self._repair, here, tree, plan, tried, notes), what="the setup"
            )
            plan, said = (plan, _escape.LEFT) if escape.refused else better
            notes += (said,)
        blocked = SetupProfile(
            status="blocked", summary=told(tried.failed), bootstrap=tried.steps, probes=tried.probes, notes=notes
        )
        await v.put(blocked, by=SYSTEM)
        raise Blocked(
            "EXECUTION_SETUP_FAILED",
            f"the workspace is not ready: {tried.failed[0].command} ({tried.failed[0].purpose})",
            forget=(v.scope,),
            details={"failed": [run.command for run in tried.failed], "output": told(tried.failed)},
            kept="the approved plan, the inputs and everything that was installed",
            next="retry, or send the run back to setup with a note",
        )

    async def verify(self, v: Visit, tree: Tree, plan: SetupPlan, start: str, copied: Copied) -> Tried:
        """Steps in order until a required one fails; then the tree must be as it was; then the probes."""
        steps: tuple[CommandRun, ...] = ()
        notes: tuple[str, ...] = ()
        for step in plan.steps:
            runs = await self._run(v, f"step-{step.id}", tree, step.commands, purpose=f"setup: {step.title}")
            steps += runs
            if all(run.ok for run in runs):
                continue
            if step.required:
                failed = tuple(run for run in runs if not run.ok)
                notes += await v.step("tidy", self._tidy, tree, start, copied.files)
                return Tried(steps, (), failed, notes)
            notes += (f"the optional step {step.title!r} failed",)
        notes += await v.step("tidy", self._tidy, tree, start, copied.files)
        probes: tuple[CommandRun, ...] = ()
        for probe in plan.workspace_probes:
            purpose = f"probe: {probe.purpose or probe.id}"
            probes += await self._run(
                v, f"probe-{probe.id}", tree, (probe.command,), purpose=purpose, budget=PROBE_TIME
            )
        notes += await v.step("tidy-probes", self._tidy, tree, start, copied.files)
        return Tried(steps, probes, tuple(run for run in probes if not run.ok), notes)

    async def _run(
        self, v: Visit, name: str, tree: Tree, specs: tuple[CommandSpec, ...], *, purpose: str,
        budget: timedelta | None = None, all_of_them: bool = False,
    ) -> tuple[CommandRun, ...]:  # fmt: skip
        if not specs:
            return ()
        limit = budget or timedelta(seconds=v.settings.build.setup_s)
        ran = await v.command(
            name, lambda: Batch(specs, Path(tree.path), stop_at_first_failure=not all_of_them, budget=limit)
        )
        return tuple(run_of(result, purpose) for result in ran.results)

    async def _tidy(self, tree: Tree, start: str, inputs: tuple[str, ...], *, key: str = "") -> tuple[str, ...]:
        """No committable change may remain: what is there goes behind an undo ref and is named in a note."""
        dirty = [found.path for found in await self.trees.status(tree) if found.path not in inputs]
        if await self.trees.head(tree) == start and all(is_noise(path) for path in dirty):
            return ()
        ref = await self.trees.reset(tree, start, why="setup must not change the repository", key=key)
        await _inputs.again(tree, inputs)
        shown = ", ".join(dirty[:5]) or "commits"
        return (f"setup changed {shown}; the change is kept in {ref} and was taken out of the tree",)

    async def _repair(
        self, v: Visit, tree: Tree, plan: SetupPlan, tried: Tried, notes: tuple[str, ...]
    ) -> tuple[SetupPlan, str]:
        """An agent with the web may install and correct the commands; inputs stay those a person approved."""
        parts = [
            ticket_part(v.work), part("execution_setup_plan", plan), PartText("failure", told(tried.failed)),
            notes_part("execution_setup_notes", notes, v.retry_notes),
        ]  # fmt: skip
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        turn = v.scope.rpartition("-")[2]
        try:
            done = await structured(
                v,
                "repair",
                shape=SETUP_PLAN,
                task=partial(self._repair_task, v, tree),
                brief=lambda: briefs.write("setup_repair", parts, ticket=v.work.key, turn=turn, shape=SETUP_PLAN),
                retries=v.settings.council.structured_retries,
                briefs=briefs,
            )
        except TurnFailed as failed:
            if not fails_the_try(failed.end):
                raise
            return plan, f"repair {turn} ended without a result: {failed.message}"
        except Blocked as unreadable:
            if unreadable.code != "AGENT_OUTPUT_INVALID":
                raise
            return plan, f"repair {turn} gave no usable plan: {unreadable.message}"
        kept = {"workspace_inputs": plan.workspace_inputs, "ticket_id": plan.ticket_id}
        better = done.value.model_copy(update=kept)
        await v.put(better, by=implementer(v.settings))
        changed = "with other commands" if better.steps != plan.steps else "without changing the plan"
        return better, f"repair {turn} after {tried.failed[0].command!r} failed, {changed}"

    def _repair_task(self, v: Visit, tree: Tree, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.ONLINE,
            cwd=Path(tree.path),
            budget=timedelta(seconds=v.settings.build.setup_s),
            idle=timedelta(seconds=v.settings.build.idle_s),
        )

    async def _baseline(
        self, v: Visit, tree: Tree, plan: SetupPlan, start: str, copied: Copied
    ) -> tuple[CommandRun, ...]:
        """The project's tests, lint and types before any change: what fails here is nobody's regression."""
        here = v.at("baseline")
        runs = await self._run(here, "run", tree, gated(plan.project_commands), purpose="baseline", all_of_them=True)
        await here.step("tidy", self._tidy, tree, start, copied.files)
        return runs


def _profile(ready: Ready) -> SetupProfile:
    steps, probes = len(ready.tried.steps), len(ready.tried.probes)
    passed = sum(run.ok for run in ready.baseline)
    return SetupProfile(
        status="ready",
        summary=f"{steps} setup commands and {probes} probes passed; {passed} of {len(ready.baseline)} project "
        "commands pass before the change",
        bootstrap=ready.tried.steps,
        probes=ready.tried.probes,
        inputs_copied=ready.copied.files,
        baseline=ready.baseline,
        notes=ready.notes,
    )
