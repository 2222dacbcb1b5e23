"""Manual QA: a checklist for a person, their results, and what comes of them (reference §9.2, §9.3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import FinalTestReport
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.qa import QaBaseline, QaChecklist, QaFixBeads, QaResults, QaRound, groups, problems
from beadmill.artifacts.qa_cover import criteria, numbered
from beadmill.artifacts.reading.shapes import QA_CHECKLIST
from beadmill.artifacts.setup import SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, ArtifactRef, Event, GateAnswer, GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit, Work
from beadmill.engine.structured import structured
from beadmill.nodes._config import QaConfig
from beadmill.nodes._ground import Ground
from beadmill.nodes._material import part, ticket_part
from beadmill.nodes._qa_drift import Drift, Settled
from beadmill.nodes._qa_fix import Fixes, reading, with_fixes
from beadmill.nodes._qa_summary import read, round_of, wishes
from beadmill.nodes._qa_told import beads_part, earlier_part, files_part, lines_of, told
from beadmill.store.journal.qa import Earlier, Wish
from beadmill.store.ledger import Ledger, QaBooks
from beadmill.workspaces.worktrees import Tree, Worktrees


@dataclass(frozen=True, slots=True)
class Change:
    """The change since the branch left its base: paths with added and removed lines, no patch."""

    since: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a round is about."""

    tree: Tree
    prd: Prd
    plan: Beads
    report: FinalTestReport
    change: Change

    def material(self, work: Work) -> list[PartText]:
        return [ticket_part(work), part("prd", self.prd), beads_part(self.plan), files_part(self.change.files)]


@dataclass(frozen=True, slots=True)
class Checked:
    """A submitted or skipped round, before anything was made of it."""

    checklist: QaChecklist
    ref: ArtifactRef
    results: QaResults
    answer: GateAnswer
    began: str
    settled: Settled


class QaNode:
    spec = NodeSpec(
        "qa",
        QaConfig,
        frozenset({"passed", "waived", "skipped", "fixes"}),
        reads=(Beads, Prd, FinalTestReport, SetupProfile),
        writes=(QaChecklist, QaBaseline, QaResults, QaFixBeads, QaRound, Beads),
        notes=True,
    )

    def __init__(self, *, trees: Worktrees, ledger: Ledger, briefs: Briefs, books: QaBooks) -> None:
        self.trees = trees
        self.briefs = briefs
        self.books = books
        self.ground = Ground(trees, ledger)
        self.drift = Drift(self.ground)
        self.fixes = Fixes(briefs)

    async def visit(self, v: Visit, cfg: QaConfig, /) -> Outcome:
        """The round is the visit's number: reserved with it, and the same after a retry."""
        wanted = v.settings.manual_qa
        if wanted == "off" or (wanted == "auto" and not cfg.by_default):
            return Outcome("skipped", note="Manual QA is off for this run")
        await v.phase(Phase.GENERATING_QA_CHECKLIST)
        began = await v.step("began", _now)
        tree = await v.step("tree", self.ground.open, v)
        profile, report = await v.get(SetupProfile), await v.get(FinalTestReport)
        base = await v.step("baseline", self.drift.baseline, tree, report, profile.inputs_copied, v.work.key, v.ref.n)
        shown = await v.put(base, by=SYSTEM)
        change = await v.step("change", self._change, tree, base.head)
        seen = Seen(tree, await v.get(Prd), await v.get(Beads), report, change)
        checklist = await self._checklist(v, seen)
        ref = await v.put(checklist, by=SYSTEM)
        await v.emit("ready", Event("qa.checklist_ready", {"version": v.ref.n, "items": len(checklist.items)}))
        await v.phase(Phase.WAITING_MANUAL_QA)
        answer, results = await self._ask(v, tree, checklist, ref)
        settled = await self.drift.settle(v.at("drift"), tree, base, (ref, shown))
        await v.put(results, by=answer.by)
        done = Checked(checklist, ref, results, answer, began, settled)
        return await self._made(v, seen, done)

    async def _change(self, tree: Tree, head: str) -> Change:
        since = await self.trees.merge_base(tree)
        return Change(since, told(await self.trees.diff(tree, since, head)))

    # --- checklist ----------------------------------------------------------------------------------------------------
    async def _checklist(self, v: Visit, seen: Seen) -> QaChecklist:
        earlier = await v.step("earlier", self._earlier, v)
        lines, known = lines_of(earlier), criteria(seen.prd)
        slim = seen.report.model_copy(update={"runs": (), "regression": ()})
        parts = [*seen.material(v.work), part("final_test_report", slim), earlier_part(earlier)]
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        done = await structured(
            v, "checklist", shape=QA_CHECKLIST, task=reading(v, seen.tree),
            brief=partial(
                briefs.write, "qa_checklist", parts, ticket=v.work.key, subject=f"v{v.ref.n}", shape=QA_CHECKLIST
            ),
            retries=v.settings.council.structured_retries, briefs=briefs,
            context={"criteria": tuple(known), "beads": tuple(bead.id for bead in seen.plan.beads), "earlier": lines},
        )  # fmt: skip
        form, own = done.value, {name: line for name, (line, _) in lines.items()}
        return numbered(form.summary, form.items, form.not_applicable_prd_refs, version=v.ref.n, known=known, lines=own)

    async def _earlier(self, v: Visit) -> tuple[Earlier, ...]:
        return await self.books.earlier(v.ref)

    # --- the person ---------------------------------------------------------------------------------------------------
    async def _ask(
        self, v: Visit, tree: Tree, checklist: QaChecklist, ref: ArtifactRef
    ) -> tuple[GateAnswer, QaResults]:
        """Until the results can stand. The doors check them too; what comes past them is said at the next asking."""
        wrong: tuple[str, ...] = ()
        for turn in count(1):
            answer = await v.ask(f"qa-{turn}", _gate(v, tree, checklist, ref, wrong))
            here = v.at(f"qa-{turn}")
            evidence = await here.step("evidence", self.books.evidence, v.ref)
            results, wrong = read(checklist, answer, evidence)
            wrong = wrong or (() if answer.choice == "skip" else problems(checklist, results.results))
            if not wrong:
                return answer, results
        raise AssertionError("count never ends")

    # --- what comes of it ---------------------------------------------------------------------------------------------
    async def _made(self, v: Visit, seen: Seen, done: Checked) -> Outcome:
        """Candidates first, all of them; then tickets; then beads. Each is found again by its name."""
        wanted = () if done.results.skipped else groups(done.checklist, done.results)
        fixes = None
        if wanted:
            fixes = await self.fixes.write(
                v.at("fixes"), seen.tree, done.checklist, done.results, seen.material(v.work)
            )
            await v.put(fixes, by=SYSTEM, parent=done.ref)
            await v.emit("fixes", Event("qa.fixes_created", {"version": v.ref.n, "beads": list(fixes.ids)}))
        tickets: dict[str, str] = {}
        for wish in () if done.results.skipped else wishes(v, done.checklist, done.results):
            key = f"{v.ref}#{wish.item}"
            tickets[wish.item] = await v.at("improve").step(wish.item, self._improve, wish, key)
        plan = None
        if fixes is not None:
            current = await v.found(Beads)
            grown = with_fixes(await v.get(Beads, current), fixes, wanted, ticket=v.work.key)
            plan = await v.put(grown, by=SYSTEM, parent=current)
        return await self._ended(v, done, fixes, tickets, plan)

    async def _improve(self, wish: Wish, once: str) -> str:
        return await self.books.improve(wish, key=once)

    async def _ended(
        self, v: Visit, done: Checked, fixes: QaFixBeads | None, tickets: dict[str, str], plan: ArtifactRef | None
    ) -> Outcome:
        ended = await v.step("ended", _now)
        round_ = round_of(
            done.checklist, done.results, done.answer, began=done.began, ended=ended, head=done.settled.head,
            drift=done.settled.receipts, fixes=fixes, tickets=tickets,
        )  # fmt: skip
        ref = await v.put(round_, by=done.answer.by)
        await v.emit("completed", Event("qa.completed", {"version": v.ref.n, "outcome": round_.outcome}))
        made = (plan,) if plan is not None else (ref,)
        return Outcome(round_.outcome, made=made, note=round_.line)


def _gate(v: Visit, tree: Tree, checklist: QaChecklist, ref: ArtifactRef, wrong: tuple[str, ...]) -> GateRequest:
    form = {
        "type": "object",
        "properties": {"results": {"type": "array", "items": {"type": "object"}, "maxItems": 1000}},
        "additionalProperties": False,
    }
    return GateRequest(
        GateKind.QA,
        f"Check {v.work.key} by hand: {len(checklist.items)} items",
        ("submit", "skip"),
        shows=(ref,),
        form=form,
        detail={
            "version": checklist.version,
            "worktree": tree.path,
            "coverage": checklist.totals,
            "problems": list(wrong),
            "required": sum(item.required for item in checklist.items),
        },
    )


async def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
