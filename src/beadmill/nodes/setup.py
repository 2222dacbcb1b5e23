"""Setup: a plan a person approves, carried out and verified by Beadmill itself (reference §7.2, §7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading.shapes import SETUP_PLAN
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.gate import automatic, counted
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Access, ArtifactRef, Brief, GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.engine.structured import structured
from beadmill.nodes._config import NoConfig
from beadmill.nodes._ledger import book
from beadmill.nodes._material import notes_part, part, ticket_part
from beadmill.nodes._prepare import Preparer
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask
from beadmill.settings import RunSettings
from beadmill.store.ledger import Ledger
from beadmill.workspaces import readiness
from beadmill.workspaces.worktrees import Tree, Worktrees


class SetupNode:
    spec = NodeSpec(
        "setup",
        NoConfig,
        frozenset({"ready"}),
        reads=(Beads, Prd, RelevantFiles),
        writes=(SetupPlan, SetupProfile),
        notes=True,
        place=True,
    )

    def __init__(self, *, trees: Worktrees, ledger: Ledger, briefs: Briefs) -> None:
        self.trees = trees
        self.ledger = ledger
        self.briefs = briefs
        self.preparer = Preparer(trees, briefs)

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        tree = await v.step("tree", self._open, v)
        differs = await v.step("readiness", self._differs, tree)
        material = [
            ticket_part(v.work),
            part("relevant_files", await v.get(RelevantFiles)),
            part("prd", await v.get(Prd)),
            part("beads", await v.get(Beads)),
            PartText("workspace_locations", _locations(tree) + differs),
        ]
        plan = await self._approved(v, tree, material)
        await v.phase(Phase.PREPARING_EXECUTION_ENV)
        profile = await self.preparer.prepare(v.at("prepare"), tree, plan)
        ref = await v.put(profile, by=SYSTEM)
        await v.step("book", self._book, v, profile)
        return Outcome("ready", made=(ref,), note=profile.summary)

    async def _open(self, v: Visit) -> Tree:
        work = v.work
        return await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)

    async def _differs(self, tree: Tree) -> str:
        return readiness.told(await readiness.look(tree))

    async def _approved(self, v: Visit, tree: Tree, material: Sequence[PartText]) -> SetupPlan:
        """Draft, gate, and again with the person's note until it is approved; what was seen is what is carried out."""
        note, last = v.comment, None
        for turn in count(1):
            await v.phase(Phase.GENERATING_EXECUTION_SETUP_PLAN)
            told = [*material, *_last(last, note)]
            plan = await self._draft(v, tree, turn, told, note)
            ref = await v.put(plan, by=implementer(v.settings))
            await v.phase(Phase.WAITING_EXECUTION_SETUP_APPROVAL)
            answer = await v.ask(f"approve-{turn}", _gate(v.settings, plan, ref))
            last = await v.at(f"seen-{turn}").get(SetupPlan, answer.saw[0])
            if answer.choice == "approve":
                return last
            note = answer.note
        raise AssertionError

    async def _draft(self, v: Visit, tree: Tree, turn: int, parts: Sequence[PartText], note: str) -> SetupPlan:
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        done = await structured(
            v,
            f"plan-{turn}",
            shape=SETUP_PLAN,
            task=partial(self._task, v, tree),
            brief=lambda: briefs.write(
                "setup_plan", parts, ticket=v.work.key, turn=str(turn), shape=SETUP_PLAN, comment=note
            ),
            retries=v.settings.council.structured_retries,
            briefs=briefs,
        )
        return done.value.model_copy(update={"ticket_id": v.work.key})

    def _task(self, v: Visit, tree: Tree, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.READ,
            cwd=Path(tree.path),
            budget=timedelta(seconds=v.settings.build.setup_s),
            idle=timedelta(seconds=v.settings.build.idle_s),
        )

    async def _book(self, v: Visit, profile: SetupProfile, *, key: str = "") -> None:
        runs = (*profile.bootstrap, *profile.probes, *profile.baseline)
        await book(self.ledger, v.ref, runs, commit="", key=key)


def _gate(settings: RunSettings, plan: SetupPlan, ref: ArtifactRef) -> GateRequest:
    """The policy decides who approves: a person (required), nobody (off), or a person only when there is something to
    see (auto_when_clean: nothing to do, nothing to warn of)."""
    gate = GateRequest(
        GateKind.APPROVE,
        "Approve the setup of the workspace",
        ("approve", "regenerate"),
        shows=(ref,),
        detail={"domain": "setup", "warnings": list(plan.cautions), "gaps": list(plan.readiness.gaps)},
    )
    return automatic(gate, settings.gates.setup, "approve", _unclean(plan))


def _unclean(plan: SetupPlan) -> tuple[str, ...]:
    ready = plan.readiness.status == "ready" and not plan.readiness.actions_required
    return tuple(
        x for x in ("" if ready else "there is something to prepare", counted(len(plan.cautions), "warning")) if x
    )


def _last(plan: SetupPlan | None, note: str) -> list[PartText]:
    if plan is None:
        return []
    notes = [notes_part("execution_setup_plan_notes", [note])] if note.strip() else []
    return [part("execution_setup_plan", plan), *notes]


def _locations(tree: Tree) -> str:
    return f"worktree: {tree.path}\nbranch: {tree.branch}\nbase: {tree.base} at {tree.base_commit}\n"
