"""Landing a proved bead: on the branch as it was proved, or once more beside what landed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from beadmill.artifacts.beads import Bead, Beads
from beadmill.domain.bead import Attempt
from beadmill.domain.command import CommandSpec
from beadmill.domain.machine import AttemptState
from beadmill.engine.port import Visit
from beadmill.nodes._ground import Ground, Start
from beadmill.nodes._lanes import Lane
from beadmill.proof.prover import Claim, Prover
from beadmill.proof.runs import told
from beadmill.workspaces import lanes
from beadmill.workspaces.lanes import Landing, Proved

MOVED = "The bead held, but the branch moved meanwhile and its work does not merge"
AGAIN = "It is done again on the new head."
TOGETHER = "The bead held alone, but not together with the beads that landed meanwhile."


@dataclass(frozen=True, slots=True)
class Landed:
    """``commit`` is on the ticket's branch, the start commit when there was nothing to commit; "" = ``why`` not."""

    commit: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A bead that holds, with the commands that proved it."""

    lane: Lane
    bead: Bead
    start: Start
    claim: Claim
    paths: tuple[str, ...]
    holding: tuple[CommandSpec, ...]


class Lander:
    def __init__(self, ground: Ground, prover: Prover) -> None:
        self.ground = ground
        self.prover = prover

    async def land(self, v: Visit, work: Work) -> Landed:
        if work.lane.own:
            commit = await v.step(
                "land", self.ground.land, work.lane.tree, work.bead, work.start, work.paths, work.lane.inputs
            )
            return Landed(commit) if commit else Landed(why=f"{MOVED}. {AGAIN}")
        return await self._beside(v, work)

    async def _beside(self, v: Visit, work: Work) -> Landed:
        """As often as another bead was faster: each time both are proved together before this one lands."""
        proved = await v.step("content", lanes.content, work.lane.tree, work.paths, work.start.commit)
        for n in count(1):
            landing = await v.step(f"land-{n}", self._land, work, proved)
            if landing.commit:
                await v.step("tidy", self._tidy, work, landing.commit)
                return Landed(landing.commit)
            if landing.moved is None:
                return Landed(why=f"{MOVED}: {', '.join(landing.conflicts[:10])}. {AGAIN}")
            others = await v.step(f"beside-{n}", self._others, v, work.lane, proved.on, landing.moved.on)
            failed = await self.prover.again(v.at(f"together-{n}"), work.claim, (*work.holding, *others))
            if failed:
                return Landed(why=f"{TOGETHER} {AGAIN}\n\n{told(failed)}")
            proved = landing.moved
        raise AssertionError

    async def _land(self, work: Work, proved: Proved, *, key: str = "") -> Landing:
        trailers = {"Beadmill-Bead": work.bead.id, "Beadmill-Key": key}
        message = f"bead({work.bead.id}): {work.bead.title}"
        return await lanes.land(work.lane.tree, work.lane.ticket, proved, message, trailers=trailers)

    async def _tidy(self, work: Work, commit: str, *, key: str = "") -> str:
        why = f"what {work.bead.id} left beside its commit"
        return await self.ground.clean(work.lane.tree, commit, work.lane.inputs, why, key=key)

    async def _others(self, v: Visit, lane: Lane, old: str, new: str) -> tuple[CommandSpec, ...]:
        """What proved the beads that landed between two heads."""
        landed = set(await self.ground.trees.commits(lane.ticket, old, new))
        done = [a for a in await v.attempts() if a.state is AttemptState.DONE and a.end_commit in landed]
        return proofs_of((await v.latest(Beads)).beads, done)

    async def earlier(self, v: Visit, bead: Bead) -> tuple[CommandSpec, ...]:
        """What proved the beads that are done."""
        done = [a for a in await v.attempts() if a.state is AttemptState.DONE and a.bead != bead.id]
        return proofs_of((await v.latest(Beads)).beads, done)


def proofs_of(beads: Sequence[Bead], done: Sequence[Attempt]) -> tuple[CommandSpec, ...]:
    """The commands of these beads that passed when each landed, every one once."""
    passed = {a.bead: {run["command"] for run in _runs(a) if run["exit"] == 0} for a in done}
    found = {str(spec): spec for bead in beads for spec in bead.test_commands if str(spec) in passed.get(bead.id, ())}
    return tuple(found.values())


def _runs(attempt: Attempt) -> Sequence[Mapping[str, Any]]:
    runs: Sequence[Mapping[str, Any]] = attempt.proof.get("checks", ())
    return runs
