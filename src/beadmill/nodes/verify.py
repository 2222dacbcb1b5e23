"""Verify: final test, regression gate, tamper guard over the whole change, independent review (reference §9.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import FinalTestReport, Review
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.setup import SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.command import CommandSpec
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._config import NoConfig
from beadmill.nodes._final_test import Final, FinalTest
from beadmill.nodes._ground import Ground
from beadmill.nodes._ledger import book
from beadmill.nodes._material import diff_part, environment, part, ticket_part
from beadmill.nodes._review import Reviewer, serious
from beadmill.nodes._rework import with_rework
from beadmill.nodes._seating import implementer
from beadmill.proof.prover import Changed, Prover
from beadmill.proof.regress import Gate, Gated, Measure, gated
from beadmill.proof.runs import told
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Tree, Worktrees

REVIEW_DIFF = 120_000  # characters of the patch that the reviewer is shown


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole change since the branch left its base."""

    since: str
    changed: Changed
    diff: str


class VerifyNode:
    spec = NodeSpec(
        "verify",
        NoConfig,
        frozenset({"ok", "failed"}),
        reads=(Beads, Prd, SetupPlan, SetupProfile),
        writes=(FinalTestReport,),
        notes=True,
        place=True,
    )

    def __init__(self, *, trees: Worktrees, ledger: Ledger, briefs: Briefs) -> None:
        self.trees = trees
        self.ledger = ledger
        self.ground = Ground(trees, ledger)
        self.prover = Prover(trees)
        self.gate = Gate(trees)
        self.final = FinalTest(self.ground, briefs)
        self.reviewer = Reviewer(briefs)

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        await v.phase(Phase.RUNNING_FINAL_TEST)
        tree = await v.step("tree", self.ground.open, v)
        profile = await v.get(SetupProfile)
        beads, prd, plan = await v.get(Beads), await v.get(Prd), await v.get(SetupPlan)
        material = [ticket_part(v.work), part("prd", prd), part("beads", beads)]
        final = await self.final.write(v.at("final"), tree, profile, material)
        suite = await self._suite(v, tree, gated(plan.project_commands), profile)
        whole = await v.step("whole", self._whole, tree, profile.inputs_copied)
        report = _report(v, final, suite, whole)
        review = await self.reviewer.review(v, tree, [*material, *_shown(report, whole)])
        report = report.model_copy(update={"review": review})
        problems = _problems(v, report)
        report = report.model_copy(update={"passed": not problems, "notes": (*final.notes, *problems)})
        ref = await v.put(report, by=SYSTEM)
        await v.step("book", self._book, v, report)
        if not problems:
            return Outcome("ok", made=(ref,), note=report.summary)
        rework = with_rework(
            beads, v.ref, title="Mend what the verification found", description=_told(report, problems),
            criteria=problems, commands=plan.project_commands.test_full or final.wrote.commands, files=whole.changed.paths,
        )  # fmt: skip
        made = await v.put(rework, by=SYSTEM)
        return Outcome("failed", made=(ref, made), note=problems[0])

    async def _suite(self, v: Visit, tree: Tree, specs: tuple[CommandSpec, ...], profile: SetupProfile) -> Gated:
        """The project's commands once more; what they leave behind goes out of the tree."""
        if not specs:
            return Gated()
        base = await v.step("base", self.trees.merge_base, tree)
        measure = Measure(specs, profile.baseline, base, environment(profile), "regression", "suite")
        found = await self.gate.run(v, tree, measure)
        await v.step("tidy", self._tidy, tree, profile.inputs_copied)
        return found

    async def _tidy(self, tree: Tree, inputs: tuple[str, ...], *, key: str = "") -> str:
        head = await self.trees.head(tree)
        return await self.ground.clean(tree, head, inputs, "what the tests left behind", key=key)

    async def _whole(self, tree: Tree, inputs: tuple[str, ...]) -> Whole:
        since = await self.trees.merge_base(tree)
        changed = await self.prover.changed(tree, since, inputs, ())
        return Whole(since, changed, (await self.trees.diff(tree, since))[:REVIEW_DIFF])

    async def _book(self, v: Visit, report: FinalTestReport, *, key: str = "") -> None:
        runs = (*report.runs, *report.regression)
        await book(self.ledger, v.ref, runs, commit=report.commit, key=key)


def _report(v: Visit, final: Final, suite: Gated, whole: Whole) -> FinalTestReport:
    return FinalTestReport(
        passed=True,
        attempt=final.attempt,
        planned_by=str(implementer(v.settings)),
        summary=final.wrote.summary,
        test_files=final.wrote.test_files,
        runs=final.runs,
        file_effects=final.effects.dispositions,
        regression=suite.runs,
        regressions=suite.regressions,
        flaky=suite.flaky,
        theirs=suite.theirs,
        test_changes=whole.changed.test_changes,
        commit=final.effects.commit,
        notes=final.notes,
    )


def _shown(report: FinalTestReport, whole: Whole) -> list[PartText]:
    shown = report.model_copy(update={"runs": (), "regression": ()})
    files = "\n".join(whole.changed.paths)
    return [part("final_test_report", shown), PartText("files", files), diff_part(whole.diff, most=REVIEW_DIFF)]


def _problems(v: Visit, report: FinalTestReport) -> list[str]:
    """What sends the run back to build: regressions always, the rest when its policy is ``fail``."""
    found = [f"{command} passed before the change and fails now" for command in report.regressions]
    if v.settings.build.tamper == "fail":
        found += [f"{change.path}: {change.kind} ({change.detail})" for change in report.test_changes]
    if v.settings.build.review == "fail":
        found += [f"{f.path or 'review'}: {f.text}" for f in serious(report.review)]
    return found


def _told(report: FinalTestReport, problems: Sequence[str]) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems)
    failed = told(run for run in report.regression if run.command in report.regressions)
    said = report.review.summary if isinstance(report.review, Review) else ""
    return "\n\n".join(text for text in ("The verification of the whole change found:", listed, failed, said) if text)
