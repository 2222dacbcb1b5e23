"""The acts of the build loop on tree and ledger. Each looks before it leaps and may run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.delivery import BeadEvidence
from beadmill.domain.bead import runnable, status
from beadmill.domain.machine import AttemptState
from beadmill.engine.port import Visit
from beadmill.nodes import _escape, _inputs
from beadmill.nodes._escape import Before
from beadmill.nodes._ledger import book
from beadmill.proof.noise import is_noise
from beadmill.store.ledger import Ledger
from beadmill.workspaces import landing
from beadmill.workspaces.guard import CheckoutState
from beadmill.workspaces.worktrees import FileStatus, Tree, Worktrees


@dataclass(frozen=True, slots=True)
class Start:
    """Where a try begins. ``notes`` are what earlier tries and people left; ``checkout`` is the user's, before."""

    commit: str
    n: int
    notes: tuple[str, ...]
    checkout: CheckoutState
    at: float = 0.0  # epoch seconds

    @property
    def before(self) -> Before:
        return Before(self.checkout, self.at)


class Ground:
    def __init__(self, trees: Worktrees, ledger: Ledger) -> None:
        self.trees = trees
        self.ledger = ledger

    async def open(self, v: Visit) -> Tree:
        work = v.work
        return await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)

    async def begin(
        self, v: Visit, tree: Tree, bead: Bead, inputs: tuple[str, ...], *, ticket: Tree, key: str = ""
    ) -> Start:
        """Books the try, closes what a retry left open, and starts from a clean tree at the start commit: the head of
        the ``ticket``'s branch."""
        head = await self.trees.head(ticket)
        attempt = await self.ledger.begin(
            v.ref.run, v.ref, bead.id, bead_sha=bead.sha, tree=tree.path, start_commit=head, key=key
        )
        for other in await self.ledger.attempts(v.ref.run):
            if other.bead == bead.id and other.n < attempt.n and other.state is AttemptState.OPEN:
                note = "This try was given up before it had a result."
                await self.ledger.finish(v.ref.run, bead.id, other.n, state=AttemptState.FAILED, note=note)
        await self.clean(tree, attempt.start_commit, inputs, f"{bead.id} try {attempt.n} begins", key=key)
        notes = await self.ledger.notes(v.ref.run, bead.id, bead.sha)
        if v.comment.strip():
            notes = (*notes, f"Why the build was started again: {v.comment.strip()}")
        then = await _escape.before(v, tree)
        return Start(attempt.start_commit, attempt.n, tuple(notes), then.checkout, then.at)

    async def clean(self, tree: Tree, commit: str, inputs: tuple[str, ...], why: str, *, key: str) -> str:
        """Back to ``commit`` behind an undo ref, with the copied inputs in place; "" when it was clean already. Done once
        more with the ``key`` of its step it answers with the first ref."""
        key = f"{key} clean"
        ref = await self.trees.undone(tree, key)
        if await self.trees.head(tree) != commit or await self.dirt(tree, inputs):
            ref = await self.trees.reset(tree, commit, why=why, key=key)
        await _inputs.again(tree, inputs)
        return ref

    async def dirt(self, tree: Tree, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Changed and untracked paths that git would see, beside the copied inputs."""
        return tuple(found.path for found in await self.trees.status(tree) if not _stays(found, inputs))

    async def land(
        self, tree: Tree, bead: Bead, start: Start, paths: tuple[str, ...], inputs: tuple[str, ...], *, key: str = ""
    ) -> str:
        """One commit of exactly these paths on the start commit; nothing changed = no commit. Returns the new head,
        "" when the branch moved in a way the work does not merge with."""
        head: str | None = start.commit
        if paths:
            trailers = {"Beadmill-Bead": bead.id, "Beadmill-Key": key}
            head = await landing.land(tree, paths, f"bead({bead.id}): {bead.title}", trailers, start.commit)
        if head is None:
            return ""
        await self.clean(tree, head, inputs, f"what {bead.id} left beside its commit", key=key)
        return head

    async def done(
        self, v: Visit, start: Start, evidence: BeadEvidence, sessions: tuple[str, ...], *, key: str = ""
    ) -> None:
        await self._book(v, evidence, commit=evidence.commit, key=key)
        await self.ledger.finish(
            v.ref.run, evidence.bead, start.n, state=AttemptState.DONE, end_commit=evidence.commit,
            proof=proof_of(evidence), sessions=sessions,
        )  # fmt: skip

    async def reset(
        self, v: Visit, tree: Tree, bead: Bead, start: Start, *, note: str, evidence: BeadEvidence | None,
        sessions: tuple[str, ...], inputs: tuple[str, ...], key: str = "",
    ) -> str:  # fmt: skip
        """The note goes into the ledger, then the tree back to the start commit. Returns the undo ref."""
        if evidence is not None:
            await self._book(v, evidence, commit=start.commit, key=key)
        await self.ledger.finish(
            v.ref.run, bead.id, start.n, state=AttemptState.FAILED, note=note, sessions=sessions,
            proof=proof_of(evidence) if evidence else None,
        )  # fmt: skip
        return await self.clean(tree, start.commit, inputs, f"{bead.id} try {start.n} failed", key=key)

    async def _book(self, v: Visit, evidence: BeadEvidence, *, commit: str, key: str) -> None:
        runs = (*evidence.checks, *evidence.red_on_base.runs)
        await book(self.ledger, v.ref, runs, commit=commit, key=key, bead=evidence.bead)

    async def ready(self, v: Visit) -> list[Bead]:
        """Beads whose turn it is, read from the newest plan and the ledger. Inside ``ready`` only."""
        plan = (await v.latest(Beads)).beads
        return runnable(plan, await v.attempts())

    async def left(self, v: Visit) -> tuple[str, ...]:
        """Ids of beads that are not done; inside a step only."""
        plan = (await v.latest(Beads)).beads
        states = status(plan, await v.attempts())
        return tuple(bead.id for bead in plan if str(states[bead.id]) != "done")

    async def interfaces(self, v: Visit, bead: Bead) -> tuple[str, ...]:
        """What finished beads declared, for the next one; inside a step only."""
        done = {a.bead: a for a in await v.attempts() if a.state is AttemptState.DONE}
        plan = (await v.latest(Beads)).beads
        return tuple(
            f"{other.id}: {line}"
            for other in plan
            if other.id != bead.id and other.id in done
            for line in (*other.interfaces, *done[other.id].proof.get("interfaces", ()))
        )


def _stays(found: FileStatus, inputs: tuple[str, ...]) -> bool:
    return found.path in inputs or (found.code.strip() == "??" and is_noise(found.path))


def proof_of(evidence: BeadEvidence) -> dict[str, Any]:
    """The evidence without command output: what the ledger keeps beside the document."""
    stored = BeadEvidence.parse(evidence.canonical())
    return stored.model_dump(mode="json", exclude={"checks": {"__all__": {"output"}}, "red_on_base": {"runs"}})
