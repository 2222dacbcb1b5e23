"""The final test: an agent writes it, Beadmill runs it, and only meant files are kept (reference §9.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from beadmill.artifacts.delivery import Disposition, FileEffect, FinalTestCommands
from beadmill.artifacts.reading.shapes import CANDIDATE_AUDIT, FINAL_TEST
from beadmill.artifacts.setup import CommandRun, SetupProfile
from beadmill.briefs import Briefs, PartText
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import fails_the_try
from beadmill.domain.values import Access, Brief
from beadmill.engine.port import Visit
from beadmill.engine.structured import structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes import _escape
from beadmill.nodes._ground import Ground
from beadmill.nodes._material import environment, notes_part, profile_part, ticket_part
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask, Batch
from beadmill.proof.noise import is_noise
from beadmill.proof.runs import run_of, told
from beadmill.workspaces.worktrees import Tree

NOTE_TIME = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Effects:
    """What became of each file the final test touched; ``commit`` holds the candidates, "" = nothing to commit."""

    commit: str = ""
    candidates: tuple[str, ...] = ()
    local_only: tuple[tuple[str, str], ...] = ()  # path, reason

    @property
    def dispositions(self) -> tuple[Disposition, ...]:
        kept = (Disposition(path=p, disposition="candidate", reason="declared_or_tracked") for p in self.candidates)
        local = (Disposition(path=p, disposition="local_only", reason=why) for p, why in self.local_only)
        return (*kept, *local)


@dataclass(frozen=True, slots=True)
class Final:
    wrote: FinalTestCommands
    attempt: int
    runs: tuple[CommandRun, ...]
    effects: Effects
    notes: tuple[str, ...]


class FinalTest:
    def __init__(self, ground: Ground, briefs: Briefs) -> None:
        self.ground = ground
        self.briefs = briefs

    async def write(self, v: Visit, tree: Tree, profile: SetupProfile, material: Sequence[PartText]) -> Final:
        """Raises Blocked("FINAL_TEST_FAILED") after the last attempt."""
        start = await v.step("start", self.ground.trees.head, tree)
        notes: list[str] = []  # each comes back from a recorded step, so re-entry builds the same list
        runs: tuple[CommandRun, ...] = ()
        for n in count(1):
            here = await v.at(f"try-{n}").renewed()
            if n > here.settings.build.attempts:
                break
            then = await here.step("checkout", _escape.before, v, tree)
            told_ = [*material, profile_part(profile), *_notes(notes, here.retry_notes)]
            watch = _escape.Watch(self.ground.trees, tree, start, then)
            (wrote, why), escape = await watch.over(
                here, partial(self._agent, here, tree, n, told_), what="the final test"
            )
            if escape.refused:
                wrote, why = None, _escape.LEFT
            if wrote is not None:
                runs = await self._run(here, tree, wrote.commands, environment(profile))
                why = told(runs) if not all(run.ok for run in runs) or len(runs) < len(wrote.commands) else ""
                why = why or await here.step("tests", self._tests_changed, tree, start, wrote, v.ref.n)
                if not why:
                    wrote = await self._classified(here, tree, start, wrote, inputs=profile.inputs_copied)
                    effects = await here.step("land", self.land, tree, start, wrote, profile.inputs_copied, v.work.key)
                    return Final(wrote, n, runs, effects, tuple(notes))
            said = await self._note(here, n, why)
            notes.append(await here.step("reset", self._reset, tree, start, profile.inputs_copied, said))
        raise Blocked(
            "FINAL_TEST_FAILED",
            f"the final test failed {len(notes)} times; the last time: {notes[-1][:500]}",
            forget=(v.scope,),
            details={"notes": notes[::-1]},
            kept="all beads are committed; each failed attempt is behind an undo ref",
            next="retry, or request changes by sending the run back to build",
        )

    async def _agent(
        self, v: Visit, tree: Tree, n: int, parts: Sequence[PartText]
    ) -> tuple[FinalTestCommands | None, str]:
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        try:
            done = await structured(
                v,
                "write",
                shape=FINAL_TEST,
                task=partial(self._task, v, tree),
                brief=lambda: briefs.write(
                    "final_test", parts, ticket=v.work.key, subject=f"try {n}", shape=FINAL_TEST
                ),
                retries=v.settings.council.structured_retries,
                briefs=briefs,
            )
        except TurnFailed as failed:
            if not fails_the_try(failed.end):
                raise
            return None, f"{failed.message}."
        except Blocked as unreadable:
            if unreadable.code != "AGENT_OUTPUT_INVALID":
                raise
            return None, unreadable.message
        return done.value, ""

    def _task(self, v: Visit, tree: Tree, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.WRITE,
            cwd=Path(tree.path),
            budget=timedelta(seconds=v.settings.build.iteration_s),
            idle=timedelta(seconds=v.settings.build.idle_s),
            questions=v.settings.questions.enabled,
        )

    async def _run(
        self, v: Visit, tree: Tree, specs: tuple[CommandSpec, ...], env: Mapping[str, str]
    ) -> tuple[CommandRun, ...]:
        budget = timedelta(seconds=v.settings.build.command_s)
        ran = await v.command("run", lambda: Batch(specs, Path(tree.path), env, budget=budget))
        return tuple(run_of(result, "final_test") for result in ran.results)

    async def _tests_changed(self, tree: Tree, start: str, wrote: FinalTestCommands, visit: int) -> str:
        """After a rework the final test of an earlier visit is part of the change already and may stand as it is."""
        since = start if visit == 1 else await self.ground.trees.merge_base(tree)
        changed = set(await self.ground.trees.changed(tree, since))
        if changed & set(wrote.test_files):
            return ""
        return f"None of the named test files was added or changed: {', '.join(wrote.test_files)}."

    async def _classified(
        self, v: Visit, tree: Tree, start: str, wrote: FinalTestCommands, *, inputs: tuple[str, ...]
    ) -> FinalTestCommands:
        """New files that nobody declared are asked about once; what stays undeclared stays out of the change."""
        unknown = await v.step("unknown", self._unknown, tree, start, wrote, inputs)
        if not unknown:
            return wrote
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        parts = [ticket_part(v.work), PartText("files", "\n".join(unknown))]
        try:
            done = await structured(
                v, "effects", shape=CANDIDATE_AUDIT, task=partial(self._quick, v),
                brief=lambda: briefs.write("candidate_audit", parts, ticket=v.work.key, shape=CANDIDATE_AUDIT),
                retries=0, briefs=briefs, context={"paths": unknown},
            )  # fmt: skip
        except (TurnFailed, Blocked):
            return wrote
        said = tuple(
            FileEffect(
                path=one.path, intent="temporary" if one.decision == "exclude" else "candidate", reason=one.reason
            )
            for one in done.value
            if one.path in unknown
        )
        return wrote.model_copy(update={"file_effects": (*wrote.file_effects, *said)})

    async def _unknown(
        self, tree: Tree, start: str, wrote: FinalTestCommands, inputs: tuple[str, ...]
    ) -> tuple[str, ...]:
        untracked = {found.path for found in await self.ground.trees.status(tree) if found.code.strip() == "??"}
        changed = await self.ground.trees.changed(tree, start)
        why = {path: _local(path, wrote, tracked=path not in untracked, inputs=inputs) for path in changed}
        return tuple(path for path, reason in why.items() if reason == "undeclared_fallback")

    def _quick(self, v: Visit, brief: Brief) -> AgentTask:
        """Words about files, without tools."""
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.NONE,
            cwd=Path(v.work.workspace),
            budget=NOTE_TIME,
            idle=NOTE_TIME,
        )

    async def _note(self, v: Visit, n: int, why: str) -> str:
        """A fresh session's words behind what Beadmill saw; without them, what Beadmill saw."""
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        parts = [ticket_part(v.work), PartText("error_context", why)]

        def task() -> AgentTask:
            return self._quick(v, briefs.write("final_test_note", parts, ticket=v.work.key, subject=f"try {n}"))

        try:
            said = (await v.agent("note", task)).text.strip()
        except TurnFailed:
            said = ""
        return "\n\n".join(text for text in (why, said) if text)[:4_000]

    async def _reset(self, tree: Tree, start: str, inputs: tuple[str, ...], note: str, *, key: str = "") -> str:
        await self.ground.clean(tree, start, inputs, "the final test failed", key=key)
        return note

    async def land(
        self, tree: Tree, start: str, wrote: FinalTestCommands, inputs: tuple[str, ...], ticket: str, *, key: str = ""
    ) -> Effects:
        """Commits the candidates; everything else goes behind an undo ref and out of the tree."""
        trees = self.ground.trees
        untracked = {found.path for found in await trees.status(tree) if found.code.strip() == "??"}
        changed = await trees.changed(tree, start)
        reasons = {path: _local(path, wrote, tracked=path not in untracked, inputs=inputs) for path in changed}
        candidates = tuple(path for path, why in reasons.items() if not why)
        head = await trees.head(tree)
        if candidates:
            message, trailers = f"{ticket}: final test", {"Beadmill-Bead": "final-test", "Beadmill-Key": key}
            if head == start:
                head = await trees.commit(tree, candidates, message, trailers=trailers)
            else:
                head = await trees.squash(tree, start, candidates, message, trailers=trailers)
        await self.ground.clean(tree, head, inputs, "what the final test left beside its commit", key=key)
        local = tuple((path, why) for path, why in reasons.items() if why)
        return Effects(head if head != start else "", candidates, local)


def _local(path: str, wrote: FinalTestCommands, *, tracked: bool, inputs: Sequence[str]) -> str:
    """Why a changed file stays out of the commit, "" = it goes in."""
    declared = next((effect.intent for effect in wrote.file_effects if effect.path == path), "")
    if declared in ("temporary", "unexpected"):
        return f"declared_{declared}"
    if tracked or declared == "candidate" or path in (*wrote.test_files, *wrote.modified_files):
        return ""
    if path in inputs:
        return "setup_temporary"
    return "generated_noise" if is_noise(path) else "undeclared_fallback"


def _notes(notes: Sequence[str], told: Sequence[str]) -> list[PartText]:
    return [notes_part("final_test_notes", notes, told)] if notes or told else []
