"""Prove one bead: its own commands, known failures, replaced commands, red on base, the tamper guard → BeadEvidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from beadmill.artifacts.beads import Bead, BeadStatus
from beadmill.artifacts.delivery import BeadEvidence, RedOnBase, TestChange
from beadmill.artifacts.setup import CommandRun
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.engine.port import Visit
from beadmill.processes.spec import Batch
from beadmill.proof import checks, red, tamper
from beadmill.proof.frameworks import is_test
from beadmill.proof.noise import meant
from beadmill.proof.runs import run_of, told
from beadmill.proof.start import Rewind
from beadmill.workspaces.worktrees import Tree, Worktrees

NOTHING = (
    "It is reported as done and nothing was changed. If the repository meets it already, say in `reason` what does, "
    "and that will be shown to people."
)
BROKEN = "The bead's own commands pass, but it breaks what proved earlier beads.\n\n"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is judged: the bead, where and since when it was built, and what its agent says about it. ``earlier`` are the
    commands that proved earlier beads."""

    bead: Bead
    tree: Tree
    start: str
    attempt: int
    status: BeadStatus
    env: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    earlier: tuple[CommandSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Proven:
    """``holding`` are the commands that pass on the work, replacements included."""

    evidence: BeadEvidence
    holding: tuple[CommandSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """What the working tree holds against the start commit. ``paths`` are what a commit would take."""

    paths: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    findings: tuple[tuple[str, str, str, str], ...] = ()  # path, kind, detail, framework
    insertions: int = 0
    deletions: int = 0

    @property
    def test_changes(self) -> tuple[TestChange, ...]:
        return tuple(
            TestChange.model_validate({"path": path, "kind": kind, "detail": detail, "framework": framework})
            for path, kind, detail, framework in self.findings
        )


class Prover:
    def __init__(self, trees: Worktrees) -> None:
        self.trees = trees
        self.rewind = Rewind(trees)

    async def bead(self, v: Visit, claim: Claim) -> Proven:
        """Durable: every act has its name in ``v``. Raises Blocked when the tree could not be put back."""
        changed = await v.step("changed", self.changed, claim.tree, claim.start, claim.inputs, claim.bead.target_files)
        specs = claim.bead.test_commands
        results = await self._run(v, "checks", claim, specs)
        at_start = await self._at_start(v.at("start"), claim, changed, _failed(results))
        sorted_ = checks.sort(specs, results, at_start, claim.status.replaced_commands)
        replaced = await self._run(v, "replacements", claim, tuple(sorted_.replacements.values()))
        failing = [*(results[n] for n in sorted_.failing if n < len(results)), *(r for r in replaced if not r.ok)]
        missing = await v.step("missing", self.missing, claim.tree, claim.bead.test_files)
        # What failed before may go on failing beside work, not instead of it, nor because the bead's tests are not there.
        idle = [n for n in sorted_.known if not changed.paths or red.naming([specs[n]], missing)]
        failing += [results[n] for n in idle]
        cut_short = any(n >= len(results) for n in sorted_.failing) or len(replaced) < len(sorted_.replacements)
        holding = [spec for spec, result in zip(specs, results, strict=False) if result.ok]
        holding += [s for s, r in zip(sorted_.replacements.values(), replaced, strict=False) if r.ok]
        proof = RedOnBase(result="not_applicable", detail="the checks do not hold")
        broken: tuple[CommandResult, ...] = ()
        if not failing and not cut_short:
            others = tuple(spec for spec in claim.earlier if spec not in holding)
            broken = await self.again(v.at("earlier"), claim, others)
            proof = await self._red(v.at("red"), claim, changed, holding)
        runs = (*(run_of(r, "bead") for r in results), *(run_of(r, "replacement") for r in replaced))
        broke = tuple(run_of(r, "earlier bead") for r in broken)
        why = _why_not(v, claim, changed, red_on_base=proof, failing=failing, broken=broken, cut_short=cut_short)
        evidence = _evidence(claim, changed, why_not=why, red_on_base=proof, sorted_=sorted_, runs=(*runs, *broke))
        return Proven(evidence, tuple(holding))

    async def again(self, v: Visit, claim: Claim, specs: Sequence[CommandSpec]) -> tuple[CommandResult, ...]:
        """Those of the commands that fail in the tree as it is."""
        results = await self._run(v, "checks", claim, specs)
        return tuple(result for result in results if not result.ok)

    async def changed(self, tree: Tree, since: str, inputs: tuple[str, ...], wanted: tuple[str, ...]) -> Changed:
        """Reads the tree against a commit; used for a bead and, by verify, for the whole change."""
        untracked = {status.path for status in await self.trees.status(tree) if status.code.strip() == "??"}
        paths = meant(await self.trees.changed(tree, since), untracked=untracked, inputs=inputs, wanted=wanted)
        diff = await self.trees.diff(tree, since, paths=paths) if paths else ""
        files = tamper.split(diff)
        return Changed(
            paths=paths,
            tests=tuple(path for path in paths if is_test(path)),
            findings=tuple((f.path, f.kind, f.detail, f.framework) for f in tamper.findings(diff)),
            insertions=sum(len(file.added) for file in files),
            deletions=sum(len(file.removed) for file in files),
        )

    async def missing(self, tree: Tree, tests: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the bead's test files that do not exist."""
        return tuple(path for path in tests if not (Path(tree.path) / path).exists())

    async def _run(self, v: Visit, name: str, claim: Claim, specs: Sequence[CommandSpec]) -> tuple[CommandResult, ...]:
        if not specs:
            return ()
        budget = timedelta(seconds=v.settings.build.command_s)
        ran = await v.command(
            name,
            lambda: Batch(tuple(specs), Path(claim.tree.path), claim.env, stop_at_first_failure=False, budget=budget),
        )
        return ran.results

    async def _at_start(
        self, v: Visit, claim: Claim, changed: Changed, failed: Mapping[int, CommandResult]
    ) -> dict[int, CommandResult]:
        """The failed commands once more, on the start commit. Nothing changed = the same state, hence the same result."""
        if not failed or not changed.paths:
            return dict(failed)
        results = await self.rewind.run(
            v, claim.tree, commit=claim.start, paths=changed.paths, env=claim.env,
            specs=[claim.bead.test_commands[n] for n in failed], why="a run at the start commit",
        )  # fmt: skip
        return dict(zip(failed, results or (), strict=False))

    async def _red(self, v: Visit, claim: Claim, changed: Changed, holding: Sequence[CommandSpec]) -> RedOnBase:
        if v.settings.build.red_on_base == "off":
            return RedOnBase(result="off")
        tests = tuple(dict.fromkeys((*claim.bead.test_files, *changed.tests)))
        specs = red.naming(holding, tests)
        paths = [path for path in changed.paths if path not in tests and not is_test(path)]
        if not specs or not paths:
            why = "no code changed beside tests" if not paths else "no command names a test file of this bead"
            return RedOnBase(result="not_applicable", detail=why)
        results = await self.rewind.run(
            v, claim.tree, commit=claim.start, paths=paths, specs=specs, env=claim.env, why="red on base"
        )
        if results is None:
            return RedOnBase(result="not_applicable", detail="the run without the change was lost or stopped")
        return red.verdict(results)


def _failed(results: Sequence[CommandResult]) -> dict[int, CommandResult]:
    return {n: result for n, result in enumerate(results) if not result.ok}


def _evidence(
    claim: Claim,
    changed: Changed,
    *,
    why_not: str,
    red_on_base: RedOnBase,
    sorted_: checks.Sorted,
    runs: tuple[CommandRun, ...],
) -> BeadEvidence:
    known = tuple(str(claim.bead.test_commands[n]) for n in sorted_.known)
    return BeadEvidence(
        bead=claim.bead.id,
        bead_sha=claim.bead.sha,
        attempt=claim.attempt,
        holds=not why_not,
        why_not=why_not,
        checks=runs,
        known_failures=known,
        red_on_base=red_on_base,
        test_changes=changed.test_changes,
        deviations=sorted_.deviations,
        interfaces=claim.status.interfaces,
        paths=changed.paths,
        insertions=changed.insertions,
        deletions=changed.deletions,
        warnings=_warnings(claim, changed, known),
    )


def _why_not(
    v: Visit, claim: Claim, changed: Changed, *, red_on_base: RedOnBase, failing: Sequence[CommandResult],
    broken: Sequence[CommandResult], cut_short: bool,
) -> str:  # fmt: skip
    """The first reason, in the words the next session reads; "" = the bead holds."""
    policy = v.settings.build
    if failing:
        return "Beadmill ran the bead's commands and they do not pass.\n\n" + told(failing)
    if cut_short:
        return "The commands were stopped before all had run."
    if not changed.paths and not claim.status.reason.strip():
        return NOTHING
    if broken:
        return BROKEN + told(broken)
    if policy.tamper == "fail" and changed.findings:
        listed = "\n".join(f"- {path}: {kind} ({detail})" for path, kind, detail, _ in changed.findings)
        return "Tests were weakened, which this project does not accept:\n" + listed
    if policy.red_on_base == "fail" and red_on_base.result in ("not_proved", "absent"):
        return f"The new tests do not prove the change: {red_on_base.detail}."
    return ""


def _warnings(claim: Claim, changed: Changed, known: Sequence[str]) -> tuple[str, ...]:
    specs, found = claim.bead.test_commands, []
    if not changed.paths:
        found.append(f"nothing was changed: {claim.status.reason.strip()[:300] or 'no reason was given'}")
    if not specs:
        found.append(f"no command proves this bead: {claim.bead.test_command_reason}")
    elif len(known) == len(specs):
        found.append("every command of this bead already failed at the start commit")
    return tuple(found)
