"""Build: every bead by a fresh session, proven by Beadmill, one commit each (reference §8, deliver.md 'Build loop')."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.delivery import BeadEvidence
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import SetupPlan, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.ended import Lapsed, SessionRef, fails_the_try
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Access, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes import _escape
from beadmill.nodes._coding import Coder, Talk
from beadmill.nodes._config import BuildConfig
from beadmill.nodes._ground import Ground, Start
from beadmill.nodes._material import bead_part, environment, notes_part, part, profile_part
from beadmill.nodes._rescan import refreshed
from beadmill.nodes._rework import with_rework
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask
from beadmill.proof.prover import Claim, Prover
from beadmill.store.ledger import Ledger
from beadmill.workspaces.worktrees import Tree, Worktrees

NOTE_TIME = timedelta(seconds=60)
MAX_NOTE = 4_000  # characters
MOVED = "The bead held, but the branch moved meanwhile and its work does not merge; it is done again on the new head."


@dataclass(frozen=True, slots=True)
class Piece:
    """One bead with where and in what it is built."""

    tree: Tree
    bead: Bead
    profile: SetupProfile
    moved: RelevantFiles | None = None  # the files that matter on a base that moved under a rework

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.profile.inputs_copied

    @property
    def env(self) -> Mapping[str, str]:
        return environment(self.profile)


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
        self.prover = Prover(trees)
        self.coder = Coder(briefs)
        self.briefs = briefs

    async def visit(self, v: Visit, cfg: BuildConfig, /) -> Outcome:
        await v.phase(Phase.CODING)
        profile = await v.get(SetupProfile)
        await self._asked_for(v)
        moved = await self._rescan(v)

        async def ready() -> Sequence[Bead]:
            return await self.ground.ready(v)

        work = partial(self.bead, cfg, profile, moved)
        # One worktree, hence one bead at a time.
        await v.pool(ready, work, key=lambda bead: f"{bead.id}@{bead.sha[:12]}", limit=1)
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
        tree = await v.step("tree", self.ground.open, v)
        reasons: list[str] = []
        for n in count(1):
            here = await v.at(f"try-{n}").renewed()
            if n > (cfg.attempts or here.settings.build.attempts):
                break
            reason = await self.attempt(here, Piece(tree, bead, profile, moved))
            if not reason:
                return
            reasons.append(reason)
        raise Blocked(
            "BEAD_RETRY_BUDGET_EXHAUSTED",
            f"{bead.id} failed {len(reasons)} times; the last time: {reasons[-1]}",
            forget=(v.scope,),
            details={"bead": bead.id, "reasons": reasons[::-1]},
            kept="every try's work is kept behind an undo ref, its note in the ledger",
            next="retry, retry with a note, or edit the bead",
        )

    async def attempt(self, v: Visit, work: Piece) -> str:
        """One try. Returns "" when the bead has landed, else why it failed."""
        start = await v.step("begin", self.ground.begin, v, work.tree, work.bead, work.inputs)
        subject = f"{work.bead.id} try {start.n}"
        watch = _escape.Watch(self.ground.trees, work.tree, start.commit, start.before)
        talk, escape = await watch.over(v, partial(self._talk, v, work, start, subject), what=work.bead.id)
        if escape.refused:
            talk = replace(talk, failure=_escape.LEFT, code="AGENT_ESCAPED")
        evidence = None
        if talk.status is not None and not talk.failure:
            claim = Claim(work.bead, work.tree, start.commit, start.n, talk.status, work.env, work.inputs)
            evidence = await self.prover.bead(v.at("prove"), claim)
            evidence = evidence.model_copy(update={"warnings": (*evidence.warnings, *escape.warnings)})
            if evidence.holds:
                if await self._finish(v, work, start, evidence=evidence, sessions=talk.tokens):
                    return ""
                evidence = evidence.model_copy(update={"holds": False, "why_not": MOVED})
        reason = evidence.why_not if evidence else f"{talk.failure} ({talk.code})"
        note = await self._note(v, subject, talk, reason)
        await v.step(
            "reset", self.ground.reset, v, work.tree, work.bead, start,
            note=note, evidence=evidence, sessions=talk.tokens, inputs=work.inputs,
        )  # fmt: skip
        return reason

    async def _talk(self, v: Visit, work: Piece, start: Start, subject: str) -> Talk:
        """The conversation with the agent. A try that ran out of time or was lost has failed; any other end blocks."""
        interfaces = await v.step("interfaces", self.ground.interfaces, v, work.bead)
        parts = [bead_part(work.bead), PartText("interfaces", "\n".join(interfaces)), profile_part(work.profile)]
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
            return Talk(None, session, (session.token,), failed.message, code)

    async def _finish(
        self, v: Visit, work: Piece, start: Start, *, evidence: BeadEvidence, sessions: tuple[str, ...]
    ) -> bool:
        commit = await v.step("land", self.ground.land, work.tree, work.bead, start, evidence.paths, work.inputs)
        if not commit:
            return False
        proven = evidence.model_copy(update={"commit": commit if commit != start.commit else ""})
        await v.put(proven, by=SYSTEM)
        await v.step("done", self.ground.done, v, start, proven, sessions)
        return True

    async def _note(self, v: Visit, subject: str, talk: Talk, reason: str) -> str:
        """What the next session is told: why it failed as Beadmill saw it, then what the session itself says."""
        said = ""
        if talk.session is not None and talk.session.conversation:
            try:
                reply = await v.agent("note", lambda: self._note_task(v, subject, talk.session, reason))
                said = reply.text.strip()
            except TurnFailed:
                said = ""
        return "\n\n".join(text for text in (reason, said) if text)[:MAX_NOTE]

    def _note_task(self, v: Visit, subject: str, session: SessionRef | None, reason: str) -> AgentTask:
        parts = [PartText("error_context", reason)]
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        return AgentTask(
            seat=implementer(v.settings),
            brief=briefs.write("iteration_note", parts, ticket=v.work.key, subject=subject),
            access=Access.NONE,
            cwd=Path(v.work.workspace),
            budget=NOTE_TIME,
            idle=NOTE_TIME,
            resume=session,
        )
