"""What happens, as sentences: one look at the ticket after the other, and what changed between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beadmill.demo.client import Api

View = Mapping[str, Any]
STAGES = {
    "scanning_relevant_files": "reads the repository",
    "council_deliberating": "the council drafts interview questions, each seat for itself",
    "council_voting_interview": "the council votes on the question lists without knowing who wrote which",
    "compiling_interview": "the winner takes over what was better elsewhere",
    "waiting_interview_answers": "waits for answers",
    "verifying_interview_coverage": "looks for gaps in the answers",
    "waiting_interview_approval": "waits for the approval of the interview",
    "drafting_prd": "each seat fills the skipped answers and drafts the requirements",
    "council_voting_prd": "the council votes on the requirements",
    "refining_prd": "the winner refines the requirements",
    "verifying_prd_coverage": "looks for gaps in the requirements",
    "waiting_prd_approval": "waits for the approval of the requirements",
    "drafting_beads": "each seat cuts the work into beads",
    "council_voting_beads": "the council votes on the plans",
    "refining_beads": "the winner refines the plan",
    "verifying_beads_coverage": "looks for gaps in the plan",
    "expanding_beads": "adds files and dependencies to the beads",
    "waiting_beads_approval": "waits for the approval of the plan",
    "pre_flight_check": "checks agents, sandbox, forge and git",
    "generating_execution_setup_plan": "plans what the workspace needs",
    "waiting_execution_setup_approval": "waits for the approval of the setup",
    "preparing_execution_env": "prepares the workspace and runs the tests as they are",
    "coding": "builds bead after bead and runs their commands itself",
    "running_final_test": "tests the whole change and has it reviewed",
    "integrating_changes": "makes one commit of it",
    "creating_pull_request": "opens the change with its evidence",
    "waiting_pr_review": "waits for the merge",
    "cleaning_env": "cleans up",
}


@dataclass(frozen=True, slots=True)
class Look:
    """One look: the ticket with its current run, and the beads with their tries when there are any."""

    ticket: View
    beads: Sequence[View] = ()

    @property
    def run(self) -> View:
        return self.ticket["current"] or {}

    @property
    def status(self) -> str:
        return str(self.ticket["status"])

    @property
    def gates(self) -> Sequence[View]:
        gates: Sequence[View] = self.run.get("gates", ())
        return gates

    @property
    def settled(self) -> bool:
        """Every bead of the plan was seen as done."""
        done = [bead for bead in self.beads if bead["state"] == "done"]
        return bool(len(done) == self.run["beads"]["total"] == self.run["beads"]["done"])

    @property
    def over(self) -> bool:
        return self.ticket["state"] in ("completed", "canceled")


async def look(api: Api, ticket: str, before: Look | None = None) -> Look:
    """Beads are read again only while some are open. Raises what the API raises."""
    view = await api.call("tickets.show", key=ticket)
    seen = Look(view, before.beads if before else ())
    if not seen.run or not seen.run["beads"]["total"] or seen.settled:
        return seen
    return Look(view, await api.call("beads.listing", run=seen.run["id"]))


@dataclass(slots=True)
class Story:
    """Turns looks into lines, each said once."""

    api: Api
    status: str = ""
    states: dict[str, str] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)

    async def lines(self, seen: Look) -> list[str]:
        out = []
        for bead in seen.beads:
            out += await self._bead(seen.run["id"], bead)
        if seen.status != self.status and seen.status in STAGES:
            out.append(STAGES[seen.status])
        self.status = seen.status
        return out

    async def _bead(self, run: str, bead: View) -> list[str]:
        name, out = bead["id"], []
        before, tried = self.states.get(name), self.tries.get(name, 0)
        failed = bead["attempts"] - (bead["state"] in ("in_progress", "done"))
        if failed > tried:
            detail = await self.api.call("beads.show", run=run, bead=name)
            wrong = [one for one in detail["tries"] if one["state"] == "failed"][tried:]
            out += [f"bead {name}: try {one['n']} failed, its work was undone. {_first(one['note'])}" for one in wrong]
            self.tries[name] = tried + len(wrong)
        if bead["state"] == "done" and before != "done":
            out.append(f"bead {name}: done, proven by its own commands ({bead['title']})")
        self.states[name] = bead["state"]
        return out


def _first(note: str) -> str:
    """The first line of a note, cut to what fits a terminal."""
    line = next((line.strip() for line in note.splitlines() if line.strip()), "")
    return line if len(line) <= 200 else f"{line[:199]}…"
