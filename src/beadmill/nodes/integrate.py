"""Integrate: audit the files, squash into one candidate commit, put it on a moved base (reference §9.4, §9.5 step 1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import FileAudit, FinalTestReport, IntegrationReport
from beadmill.artifacts.reading.shapes import CANDIDATE_AUDIT
from beadmill.artifacts.setup import CommandRun, SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.command import CommandSpec
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Access, Brief, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.engine.structured import structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes._config import NoConfig
from beadmill.nodes._ground import Ground
from beadmill.nodes._ledger import book
from beadmill.nodes._material import diff_part, environment, part, ticket_part
from beadmill.nodes._rework import with_rework
from beadmill.nodes._seating import implementer
from beadmill.nodes._squash import Branch, Candidate, Squasher
from beadmill.processes.spec import AgentTask
from beadmill.proof.regress import Gate, Measure, gated
from beadmill.proof.runs import told
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Tree, Worktrees

AUDIT_TIME = timedelta(minutes=5)


class IntegrateNode:
    spec = NodeSpec(
        "integrate",
        NoConfig,
        frozenset({"ok", "conflict"}),
        reads=(Beads, SetupPlan, SetupProfile, FinalTestReport),
        writes=(IntegrationReport,),
        place=True,
    )

    def __init__(self, *, trees: Worktrees, ledger: Ledger, briefs: Briefs) -> None:
        self.ground = Ground(trees, ledger)
        self.squasher = Squasher(self.ground)
        self.gate = Gate(trees)
        self.ledger = ledger
        self.briefs = briefs

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        await v.phase(Phase.INTEGRATING_CHANGES)
        tree = await v.step("tree", self.ground.open, v)
        profile = await v.get(SetupProfile)
        branch = await v.step("branch", self.squasher.read, tree)
        if not branch.paths:
            raise Blocked(
                "NOTHING_TO_INTEGRATE",
                f"{tree.branch} does not differ from {tree.base}",
                forget=("branch",),
                next="cancel the ticket",
            )
        audit = await v.step("prior", self._audited, v, branch.paths) or await self._audit(v, branch)
        paths = tuple(one.path for one in audit if one.decision != "exclude")
        message, inputs = f"{v.work.key}: {v.work.title}", profile.inputs_copied
        candidate = await v.step("squash", self.squasher.squash, tree, branch, paths, message, inputs)
        if branch.base_tip != branch.fork:
            candidate = await v.step("rebase", self.squasher.rebase, tree, branch, candidate, message, inputs)
            if candidate.conflicts:
                return await self._conflict(
                    v, _conflict_told(tree, candidate), candidate.conflicts, candidate.conflicts
                )
            broken = await self._verify_again(v, tree, profile, branch.base_tip)
            if broken:
                told_ = (
                    f"{tree.base} moved on. The change merges with it, yet these commands fail now.\n\n{told(broken)}"
                )
                return await self._conflict(v, told_, [f"{run.command} passes again" for run in broken], paths)
        report = _report(tree, branch, candidate, audit, await v.step("now", _now))
        report = report.model_copy(update={"manual_qa": await v.step("manual-qa", self._manual_qa, v)})
        ref = await v.put(report, by=SYSTEM)
        return Outcome("ok", made=(ref,), note=f"{len(paths)} files in {candidate.commit[:12]} on {tree.base}")

    async def _audited(self, v: Visit, paths: tuple[str, ...]) -> tuple[FileAudit, ...]:
        """What an earlier visit made of the same files, when only the base moved since; else nothing."""
        if v.ref.n == 1:
            return ()
        try:
            kept = tuple(one for one in (await v.latest(IntegrationReport)).files if one.decision != "exclude")
        except Blocked:  # the earlier visit made no report
            return ()
        return kept if {one.path for one in kept} == set(paths) else ()

    async def _audit(self, v: Visit, branch: Branch) -> tuple[FileAudit, ...]:
        """Every changed file once. An audit that cannot be had, or excludes everything, includes everything."""
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        parts = [
            ticket_part(v.work), _slim(await v.get(FinalTestReport)),
            PartText("files", "\n".join(branch.paths)), diff_part(branch.diff),
        ]  # fmt: skip
        try:
            done = await structured(
                v, "audit", shape=CANDIDATE_AUDIT, task=partial(self._task, v),
                brief=lambda: briefs.write("candidate_audit", parts, ticket=v.work.key, shape=CANDIDATE_AUDIT),
                retries=v.settings.council.structured_retries, briefs=briefs, context={"paths": branch.paths},
            )  # fmt: skip
        except (TurnFailed, Blocked) as failed:
            why = f"no audit: {failed.message}"
            return tuple(FileAudit(path=path, decision="include", reason=why) for path in branch.paths)
        return complete(done.value, branch.paths)

    def _task(self, v: Visit, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.NONE,
            cwd=Path(v.work.workspace),
            budget=AUDIT_TIME,
            idle=AUDIT_TIME,
        )

    async def _manual_qa(self, v: Visit) -> str:
        return next((one.line for one in reversed(await self.ledger.rounds(v.ref.run))), "")

    async def _verify_again(self, v: Visit, tree: Tree, profile: SetupProfile, base: str) -> tuple[CommandRun, ...]:
        """On a moved base the project's tests and the beads' own commands must pass again. What fails on that base by
        itself in the same way is not this change's."""
        here = v.at("again")
        plan, beads = await here.get(SetupPlan), await here.get(Beads)
        specs = _distinct([*gated(plan.project_commands), *(c for b in beads.beads for c in b.test_commands)])
        if not specs:
            return ()
        measure = Measure(specs, profile.baseline, base, environment(profile), "rebased", "again")
        found = await self.gate.run(v, tree, measure)
        await v.step("book", self._book, v, tree, profile.inputs_copied, found.runs)
        known = await v.step("known", self._known, v)
        return tuple(r for r in found.runs if r.command in found.regressions and r.command not in known)

    async def _known(self, v: Visit) -> tuple[str, ...]:
        """Commands that beads could not hold to: failing at their start already, or replaced."""
        found: list[str] = []
        for attempt in await v.attempts():
            found += attempt.proof.get("known_failures", ())
            found += [one["original"] for one in attempt.proof.get("deviations", ()) if one["accepted"]]
        return tuple(found)

    async def _book(
        self, v: Visit, tree: Tree, inputs: tuple[str, ...], runs: tuple[CommandRun, ...], *, key: str = ""
    ) -> None:
        head = await self.ground.trees.head(tree)
        await book(self.ledger, v.ref, runs, commit=head, key=key)
        await self.ground.clean(tree, head, inputs, "what the tests left behind", key=key)

    async def _conflict(self, v: Visit, description: str, criteria: Sequence[str], files: Sequence[str]) -> Outcome:
        here = v.at("conflict")
        plan, beads = await here.get(SetupPlan), await here.get(Beads)
        rework = with_rework(
            beads, v.ref, title="Bring the change onto the moved base", description=description,
            criteria=criteria, commands=plan.project_commands.test_full, files=files,
        )  # fmt: skip
        made = await v.put(rework, by=SYSTEM)
        return Outcome("conflict", made=(made,), note=description.splitlines()[0])


def _there(path: str, candidate: Candidate) -> bool:
    """A moved base may hold a file of the change already. None: recorded by an earlier release."""
    return candidate.paths is None or path in candidate.paths


async def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _report(
    tree: Tree, branch: Branch, candidate: Candidate, audit: tuple[FileAudit, ...], completed_at: str
) -> IntegrationReport:
    return IntegrationReport(
        candidate_commit=candidate.commit,
        merge_base=candidate.onto,
        pre_squash_head=branch.head,
        commit_count=branch.commits,
        files=tuple(one for one in audit if one.decision == "exclude" or _there(one.path, candidate)),
        base=tree.base,
        branch=tree.branch,
        undo_ref=candidate.undo_ref,
        completed_at=completed_at,
    )


def complete(audit: Sequence[FileAudit], paths: Sequence[str]) -> tuple[FileAudit, ...]:
    """One decision per path, in path order; what was not named, or an audit that leaves nothing, is included."""
    said = {one.path: one for one in audit}
    if all(path in said and said[path].decision == "exclude" for path in paths):
        return tuple(FileAudit(path=p, decision="include", reason="the audit excluded everything") for p in paths)
    default = "the audit does not name it"
    return tuple(said.get(path) or FileAudit(path=path, decision="include", reason=default) for path in paths)


def _conflict_told(tree: Tree, candidate: Candidate) -> str:
    listed = "\n".join(f"- {path}" for path in candidate.conflicts)
    return (
        f"{tree.base} moved on and these files conflict with it.\n\n{listed}\n\nThe files hold both versions between "
        "conflict markers: above ======= the base's, below it this change's. Resolve them so that both intentions hold, "
        "and leave no marker."
    )


def _distinct(specs: Sequence[CommandSpec]) -> tuple[CommandSpec, ...]:
    return tuple({str(spec): spec for spec in specs}.values())


def _slim(report: FinalTestReport) -> PartText:
    return part("final_test_report", report.model_copy(update={"runs": (), "regression": ()}))
