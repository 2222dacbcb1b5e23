"""Build: every bead by a fresh session, proven by Beadmill, one commit each (reference §8, deliver.md 'Build loop')."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from beadmill.artifacts.beads import Bead, Beads, BeadStatus
from beadmill.artifacts.delivery import BeadEvidence
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Lapsed, fails_the_try
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes import _escape
from beadmill.nodes._coding import Coder, Talk
from beadmill.nodes._config import BuildConfig
from beadmill.nodes._ground import Ground, Start
from beadmill.nodes._landing import Lander, Work
from beadmill.nodes._lanes import Lane, Lanes, key_of
from beadmill.nodes._material import bead_part, diff_part, notes_part, part, profile_part
from beadmill.nodes._note import Noter
from beadmill.nodes._prepare import Preparer
from beadmill.nodes._rescan import refreshed
from beadmill.nodes._review import Reviewer, serious
from beadmill.nodes._rework import with_rework
from beadmill.proof.prover import Claim, Prover
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Tree, Worktrees

REVIEW_DIFF = 60_000  # characters of a bead's patch that its reviewer is shown
UNMET = "The commands pass, and the reviewer of this bead asks for changes:"


@dataclass(frozen=True, slots=True)
class Piece:
    """One bead with where it is built."""

    lane: Lane
    bead: Bead
    moved: RelevantFiles | None = None  # the files that matter on a base that moved under a rework

    @property
    def tree(self) -> Tree:
        return self.lane.tree


@dataclass(frozen=True, slots=True)
class Tried:
    """``why`` is "" when the bead has landed. ``raced``: its work held, and another bead's came first."""

    why: str = ""
    raced: bool = False


class BuildNode:
    spec = NodeSpec(
        "build",
        BuildConfig,
        frozenset({"ok"}),
        reads=(Beads, SetupPlan, SetupProfile),
        writes=(Beads, BeadEvidence, RelevantFiles),
        notes=True,
        place=True,
    )

    def __init__(self, *, trees: Worktrees, ledger: Ledger, briefs: Briefs) -> None:
        self.ground = Ground(trees, ledger)
        self.lanes = Lanes(self.ground, Preparer(trees, briefs))
        self.prover = Prover(trees)
        self.lander = Lander(self.ground, self.prover)
        self.coder = Coder(briefs)
        self.noter = Noter(briefs)
        self.reviewer = Reviewer(briefs)
        self.briefs = briefs

    async def visit(self, v: Visit, cfg: BuildConfig, /) -> Outcome:
        await v.phase(Phase.CODING)
        profile = await v.get(SetupProfile)
        await self._asked_for(v)
        moved = await self._rescan(v)

        async def ready() -> Sequence[Bead]:
            return await self.ground.ready(v)

        work = partial(self.bead, cfg, profile, moved)
        await v.pool(ready, work, key=key_of, limit=v.settings.build.parallel)
        left = await v.step("left", self.ground.left, v)
        if left:
            raise Blocked(
                "BEADS_NOT_RUNNABLE",
                f"no bead can be started, yet these are not done: {', '.join(left)}",
                forget=("left",),
            )
        return Outcome("ok")

    async def _asked_for(self, v: Visit) -> None:
        """A person who sends a finished build back says what is missing: that becomes a bead of its own."""
        asked = v.comment.strip()
        if not asked:
            return
        left = await v.step("open", self.ground.left, v)
        if left:
            return
        plan, first = await v.get(SetupPlan), asked.splitlines()[0][:120]
        current = await v.found(Beads)
        rework = with_rework(
            await v.get(Beads, current), v.ref, title=f"Requested change: {first}", description=asked, criteria=[first],
            commands=plan.project_commands.test_full, files=(),
        )  # fmt: skip
        await v.put(rework, by=SYSTEM, parent=current)  # with a parent it is handed on when the run is sent back again

    async def _rescan(self, v: Visit) -> RelevantFiles | None:
        """What a rework must know when the base has moved under it."""
        if v.ref.n == 1:
            return None
        tree = await v.at("rescan").step("tree", self.ground.open, v)
        return await refreshed(v, tree, self.ground.trees, self.briefs)

    async def bead(
        self, cfg: BuildConfig, profile: SetupProfile, moved: RelevantFiles | None, v: Visit, bead: Bead
    ) -> None:
        lane = await self.lanes.open(v, profile)
        reasons: list[str] = []
        for n in count(1):
            here = await v.at(f"try-{n}").renewed()
            if len(reasons) >= (cfg.attempts or here.settings.build.attempts):
                break
            tried = await self.attempt(here, Piece(lane, bead, moved))
            if not tried.why:
                return
            if not tried.raced:  # that another bead was faster is no fault of this one
                reasons.append(tried.why)
        raise Blocked(
            "BEAD_RETRY_BUDGET_EXHAUSTED",
            f"{bead.id} failed {'once' if len(reasons) == 1 else f'{len(reasons)} times'}; the last time: "
            + reasons[-1].splitlines()[0],
            forget=(v.scope,),
            details={"bead": bead.id, "reasons": reasons[::-1]},
            kept="every try's work is kept behind an undo ref, its note in the ledger",
            next="retry, retry with a note, or edit, split or skip the bead",
        )

    async def attempt(self, v: Visit, work: Piece) -> Tried:
        """One try: work, proof, landing; short of that a note for the next one, and the tree as it was."""
        lane = work.lane
        start = await v.step("begin", self.ground.begin, v, lane.tree, work.bead, lane.inputs, ticket=lane.ticket)
        subject = f"{work.bead.id} try {start.n}"
        mend = partial(self.lanes.mend, lane=lane, start=start.commit)
        watch = _escape.Watch(self.ground.trees, lane.tree, start.commit, start.before, mend)
        talk, escape = await watch.over(v, partial(self._talk, v, work, start, subject), what=work.bead.id)
        if escape.refused:
            talk = replace(talk, failure=_escape.LEFT, code="AGENT_ESCAPED")
        evidence, raced = None, False
        if talk.status is not None and not talk.failure:
            claim = await self._claim(v, work, start, talk.status)
            proven = await self.prover.bead(v.at("prove"), claim)
            evidence = await self._reviewed(v, work, start, proven.evidence, warnings=escape.warnings)
            if evidence.holds:
                why = await self._land(
                    v, work, claim, evidence=evidence, holding=proven.holding, talk=talk, start=start
                )
                if not why:
                    return Tried()
                evidence, raced = evidence.model_copy(update={"holds": False, "why_not": why}), True
        reason = evidence.why_not if evidence else f"{talk.failure} ({talk.code})"
        note = await self.noter.note(v, subject, talk, reason, cwd=lane.tree.workspace)
        await v.step(
            "reset", self.ground.reset, v, lane.tree, work.bead, start,
            note=note, evidence=evidence, sessions=talk.tokens, inputs=lane.inputs,
        )  # fmt: skip
        return Tried(reason, raced)

    async def _claim(self, v: Visit, work: Piece, start: Start, status: BeadStatus) -> Claim:
        earlier = await v.step("earlier", self.lander.earlier, v, work.bead)
        return Claim(
            work.bead, work.tree, start.commit, start.n, status, work.lane.env, work.lane.inputs,
            earlier if v.settings.build.earlier else (),
        )  # fmt: skip

    async def _reviewed(
        self, v: Visit, work: Piece, start: Start, evidence: BeadEvidence, *, warnings: tuple[str, ...]
    ) -> BeadEvidence:
        """What holds is looked at by another seat, where the settings say so."""
        evidence = evidence.model_copy(update={"warnings": (*evidence.warnings, *warnings)})
        if not evidence.holds or v.settings.build.bead_review == "off" or not evidence.paths:
            return evidence
        diff = await v.step("diff", self._diff, work.tree, start.commit, evidence.paths)
        parts = [bead_part(work.bead), PartText("files", "\n".join(evidence.paths)), diff_part(diff, most=REVIEW_DIFF)]
        subject = f"{work.bead.id} try {start.n}"
        review = await self.reviewer.bead(v.at("review"), work.tree, parts, subject=subject)
        evidence = evidence.model_copy(update={"review": review})
        found = serious(review)
        if not found or v.settings.build.bead_review == "flag":
            return evidence
        listed = "\n".join(f"- {f.severity}: {f.text}" + (f" ({f.path}:{f.line})" if f.path else "") for f in found)
        return evidence.model_copy(update={"holds": False, "why_not": f"{UNMET}\n\n{listed}"})

    async def _diff(self, tree: Tree, since: str, paths: tuple[str, ...]) -> str:
        return await self.ground.trees.diff(tree, since, paths=paths)

    async def _talk(self, v: Visit, work: Piece, start: Start, subject: str) -> Talk:
        """The conversation with the agent. A try that ran out of time or was lost has failed; any other end blocks."""
        interfaces = await v.step("interfaces", self.ground.interfaces, v, work.bead)
        parts = [bead_part(work.bead), PartText("interfaces", "\n".join(interfaces)), profile_part(work.lane.profile)]
        # A retry of this conversation alone keeps the notes with which the try began.
        told = [one for one in v.retry_notes if not any(one in known for known in start.notes)]
        parts.append(notes_part("bead_notes", start.notes, told))
        if work.moved is not None:
            parts.append(part("relevant_files", work.moved))
        try:
            return await self.coder.build(v, work.bead, cwd=work.tree.path, subject=subject, parts=parts)
        except TurnFailed as failed:
            if not fails_the_try(failed.end):
                failed.details.setdefault("bead", work.bead.id)
                raise
            session = failed.end.session
            code = "BEAD_ITERATION_TIMEOUT" if isinstance(failed.end, Lapsed) else failed.code
            return Talk(None, session, (session.token,), f"{failed.message}{_remedy(failed)}", code)

    async def _land(
        self, v: Visit, work: Piece, claim: Claim, *, evidence: BeadEvidence, holding: tuple[CommandSpec, ...],
        talk: Talk, start: Start,
    ) -> str:  # fmt: skip
        """Why it did not, "" = it has landed and its evidence is kept."""
        landed = await self.lander.land(v, Work(work.lane, work.bead, start, claim, evidence.paths, holding))
        if not landed.commit:
            return landed.why
        proven = evidence.model_copy(update={"commit": landed.commit if landed.commit != start.commit else ""})
        await v.put(proven, by=SYSTEM)
        await v.step("done", self.ground.done, v, start, proven, talk.tokens)
        return ""


def _remedy(failed: TurnFailed) -> str:
    """What a fresh session does otherwise."""
    if failed.code != "AGENT_CONTEXT_TOO_LONG":
        return ""
    return ". Work in smaller steps, read only the parts of files that matter, and keep long output out of the conversation"
