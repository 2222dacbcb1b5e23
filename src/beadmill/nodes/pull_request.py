"""Pull request: evidence in its text, a draft on the forge, a person's merge or close (reference §9.5, §9.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import (
    BeadEvidence,
    FinalTestReport,
    IntegrationReport,
    MergeReport,
    PullRequestReport,
    PullRequestText,
)
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.qa import QaRound
from beadmill.artifacts.reading.shapes import PULL_REQUEST
from beadmill.artifacts.setup import SetupPlan
from beadmill.briefs import Briefs, PartText
from beadmill.domain.machine import AttemptState, Phase
from beadmill.domain.values import SYSTEM, Access, ArtifactRef, Brief, GateAnswer, Outcome
from beadmill.engine.port import NodeSpec, Visit, Work
from beadmill.engine.structured import structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.forges.contract import Forge
from beadmill.forges.news import News, told
from beadmill.git import trees as objects
from beadmill.nodes._config import NoConfig
from beadmill.nodes._material import diff_part, part, ticket_part
from beadmill.nodes._merge_gate import Open, first_line, gate
from beadmill.nodes._pr_body import Dossier, body, fallback
from beadmill.nodes._publish import Published, Publisher, Settled
from beadmill.nodes._rework import with_rework
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask
from beadmill.store.journal.facts import Cost
from beadmill.store.ledger import Changes, Facts
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree, Worktrees

TEXT_TIME = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the ledger and git say about the change. ``proofs`` is bead id → evidence without command output; ``prior``
    is the report of an earlier visit."""

    proofs: Mapping[str, BeadEvidence]
    cost: Cost
    diff: str
    patch: str = ""
    prior: PullRequestReport | None = None
    qa: tuple[QaRound, ...] = ()

    @property
    def same(self) -> PullRequestReport | None:
        """The earlier report, when the patch has not changed since."""
        return self.prior if self.prior is not None and self.prior.patch == self.patch else None

    @property
    def handled(self) -> tuple[str, ...]:
        return self.prior.handled if self.prior is not None else ()


class PullRequestNode:
    spec = NodeSpec(
        "pull_request",
        NoConfig,
        frozenset({"merged", "closed", "changes_requested", "checks_failed", "base_moved"}),
        reads=(Beads, Prd, SetupPlan, FinalTestReport, IntegrationReport),
        writes=(PullRequestReport, MergeReport),
    )

    def __init__(
        self, *, trees: Worktrees, briefs: Briefs, forge: Callable[[Work], Forge], changes: Changes, facts: Facts
    ) -> None:
        self.trees = trees
        self.briefs = briefs
        self.facts = facts
        self.publisher = Publisher(trees, forge, changes)

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        await v.phase(Phase.CREATING_PULL_REQUEST)
        tree = await v.step("tree", self._open, v)
        integration = await v.get(IntegrationReport)
        seen = await v.step("seen", self._seen, v, tree, integration)
        dossier = await self._dossier(v, integration, seen)
        title = f"{v.work.key}: {dossier.text.title}"
        published = await v.step("publish", self.publisher.publish, v.ref.run, v.work, tree, title, body(dossier))
        report = _report(tree, published, dossier, seen)
        here = Open(tree, published, integration, report, await self._shown(v, report, integration))
        await v.phase(Phase.WAITING_PR_REVIEW)
        return await self._decide(v, here)

    async def _shown(
        self, v: Visit, report: PullRequestReport, integration: IntegrationReport
    ) -> tuple[ArtifactRef, ArtifactRef]:
        return await v.put(report, by=SYSTEM), await v.put(integration, by=SYSTEM)

    async def _open(self, v: Visit) -> Tree:
        work = v.work
        return await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)

    async def _seen(self, v: Visit, tree: Tree, integration: IntegrationReport) -> Seen:
        landed = {a.bead: a.proof for a in await v.attempts() if a.state is AttemptState.DONE}
        diff = await self.trees.diff(tree, integration.merge_base, integration.candidate_commit)
        proofs = {bead: BeadEvidence.model_validate(proof) for bead, proof in landed.items()}
        patch = await objects.patch_id(repo_of(tree), integration.merge_base, integration.candidate_commit)
        cost, rounds = await self.facts.cost(v.ref.run), await self.facts.rounds(v.ref.run)
        return Seen(proofs, cost, diff[:30_000], patch, await self._prior(v), rounds)

    async def _prior(self, v: Visit) -> PullRequestReport | None:
        if v.ref.n == 1:
            return None
        try:
            return await v.latest(PullRequestReport)
        except Blocked:  # the earlier visit made none
            return None

    async def _dossier(self, v: Visit, integration: IntegrationReport, seen: Seen) -> Dossier:
        prd, beads, report = await v.get(Prd), await v.get(Beads), await v.get(FinalTestReport)
        slim = report.model_copy(update={"runs": (), "regression": ()})
        parts = [
            ticket_part(v.work), part("prd", prd), part("integration_report", integration),
            part("final_test_report", slim), PartText("files", "\n".join(one.path for one in integration.files)),
            diff_part(seen.diff),
        ]  # fmt: skip
        known = seen.same.text if seen.same is not None else None
        text = known or await self._text(v, parts) or fallback(v.work, prd, beads)
        return Dossier(v.work, text, prd, beads, seen.proofs, report, integration, seen.cost, seen.qa)

    async def _text(self, v: Visit, parts: Sequence[PartText]) -> PullRequestText | None:
        """A model's words without tools; None when it has none."""
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        try:
            done = await structured(
                v, "text", shape=PULL_REQUEST, task=partial(self._task, v),
                brief=lambda: briefs.write("pull_request", parts, ticket=v.work.key, shape=PULL_REQUEST),
                retries=v.settings.council.structured_retries, briefs=briefs,
            )  # fmt: skip
        except (TurnFailed, Blocked):
            return None
        return done.value

    def _task(self, v: Visit, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.NONE,
            cwd=Path(v.work.workspace),
            budget=TEXT_TIME,
            idle=TEXT_TIME,
        )

    async def _decide(self, v: Visit, here: Open) -> Outcome:
        """Asks until a decision has been carried out; what could not be done is said at the next asking."""
        problem, found = "", News()
        for turn in count(1):
            answer = await v.ask(f"merge-{turn}", gate(here, problem, found, carried=turn == 1))
            problem = ""
            if answer.choice == "look":
                found = await v.step(f"look-{turn}", self.publisher.look, v.work, here.published, here.report.handled)
            elif answer.choice in ("request_changes", "rework"):
                if answer.choice == "rework" or answer.note.strip():
                    return await self._rework(v, here, answer, found)
                problem = "say in the note what is to be changed"
            else:
                done = await self._act(v.at(f"decision-{turn}"), here, answer)
                if done.moved:
                    return await self._again(v, here, done, answer)
                if done.disposition:
                    return await self._settled(v, here, done, answer)
                problem = done.problem
        raise AssertionError

    async def _act(self, v: Visit, here: Open, answer: GateAnswer) -> Settled:
        run, work, tree, published = v.ref.run, v.work, here.tree, here.published
        if answer.choice == "merge":
            verified = here.integration.merge_base
            return await v.step("merge", self.publisher.merge, run, work, tree, published, verified)
        return await v.step("close", self.publisher.close, run, work, tree, published, answer.note)

    async def _again(self, v: Visit, here: Open, done: Settled, answer: GateAnswer) -> Outcome:
        """The decision goes along: when the patch is the same on the moved base, it is not asked for again."""
        by = here.report.decided_by or str(answer.by)
        made = await v.put(here.report.model_copy(update={"decided_by": by}), by=SYSTEM)
        note = f"{here.tree.base} moved to {done.moved[:12]}; the change is put on it and verified again"
        return Outcome("base_moved", made=(made, here.shows[1]), note=note)

    async def _settled(self, v: Visit, here: Open, done: Settled, answer: GateAnswer) -> Outcome:
        published, merged = here.published, done.disposition == "merged"
        carried = here.report.decided_by if answer.by == SYSTEM and answer.choice == "merge" else ""
        report = MergeReport(
            disposition="merged" if merged else "closed_unmerged",
            number=published.number,
            sha=done.sha,
            method=done.method,
            proof=done.proof,
            reason=answer.note,
            by=carried or str(answer.by),
        )
        ref = await v.put(report, by=answer.by)
        note = (
            f"#{published.number} merged as {done.sha[:12]}"
            if merged
            else f"#{published.number} closed without a merge"
        )
        return Outcome("merged" if merged else "closed", made=(ref,), note=note)

    async def _rework(self, v: Visit, here: Open, answer: GateAnswer, found: News) -> Outcome:
        """``rework`` takes what was said on the forge along, and counts it as handled from then on."""
        at = v.at("rework")
        beads, plan = await at.get(Beads), await at.get(SetupPlan)
        taken = found if answer.choice == "rework" else News()
        words = "\n\n".join(text for text in (answer.note.strip(), told(taken)) if text)
        first = first_line(answer.note, taken)
        rework = with_rework(
            beads, v.ref, title=f"Requested change: {first}", description=words, criteria=[first],
            commands=plan.project_commands.test_full, files=[one.path for one in here.integration.files],
        )  # fmt: skip
        made = await v.put(rework, by=answer.by)
        handled = here.report.model_copy(update={"handled": (*here.report.handled, *taken.ids)})
        report = await v.put(handled, by=SYSTEM)
        only_checks = bool(taken.failed) and not taken.remarks and not answer.note.strip()
        return Outcome("checks_failed" if only_checks else "changes_requested", made=(made, report), note=first)


def _report(tree: Tree, published: Published, dossier: Dossier, seen: Seen) -> PullRequestReport:
    return PullRequestReport(
        number=published.number,
        url=published.url,
        state=published.state,
        title=published.title,
        body=body(dossier),
        head_sha=published.head,
        base=tree.base,
        branch=tree.branch,
        forge=published.forge,
        patch=seen.patch,
        text=dossier.text,
        decided_by=seen.same.decided_by if seen.same is not None else "",
        handled=seen.handled,
    )
