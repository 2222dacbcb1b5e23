"""The worktree while a person tests: a baseline before, a comparison before their answer counts, and what to do with
what changed (reference §9.2, §9.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from beadmill.artifacts.delivery import FinalTestReport
from beadmill.artifacts.qa import DriftReceipt, QaBaseline
from beadmill.domain.values import ArtifactRef, Event, GateAnswer, GateKind, GateRequest
from beadmill.engine.port import Visit
from beadmill.git import refs
from beadmill.nodes import _inputs
from beadmill.nodes._ground import Ground
from beadmill.proof.noise import is_noise
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree

CODE = "MANUAL_QA_WORKSPACE_DRIFT"
SHOWN = 200  # paths on the gate


@dataclass(frozen=True, slots=True)
class Found:
    """``head`` is the tip of the ticket's branch, ``at`` what HEAD is on; ``paths`` differ from the baseline and are not
    local-only."""

    head: str
    at: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """The branch behind the person's answer, and what was done to get there."""

    head: str
    receipts: tuple[DriftReceipt, ...] = ()


class Drift:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.trees = ground.trees

    async def baseline(
        self, tree: Tree, report: FinalTestReport, inputs: tuple[str, ...], ticket: str, version: int, *, key: str = ""
    ) -> QaBaseline:
        """Accepted effects of the final test that are not committed yet become a commit; anything else in the tree goes
        behind an undo ref: a person tests exactly what will be delivered."""
        accepted = {one.path for one in report.file_effects if one.disposition == "candidate"}
        dirt = await self.ground.dirt(tree, inputs)
        paths = tuple(path for path in dirt if path in accepted)
        head = await self.trees.head(tree)
        if paths:
            message = f"{ticket}: checkpoint accepted final-test effects for Manual QA v{version}"
            head = await self.trees.commit(tree, paths, message, trailers={"Beadmill-Key": key})
        undo = await self.ground.clean(tree, head, inputs, f"before manual QA v{version}", key=key)
        left = await self.trees.status(tree)
        return QaBaseline(
            version=version,
            head=head,
            content=await self.trees.tree_hash(tree),
            status=tuple(f"{one.code} {one.path}" for one in left),
            local_only=tuple(one.path for one in left),
            undo_ref=undo,
        )

    async def settle(self, v: Visit, tree: Tree, base: QaBaseline, shows: tuple[ArtifactRef, ...]) -> Settled:
        """Asks as often as the tree differs; each answer is carried out and leaves a receipt."""
        head = base.head
        receipts: tuple[DriftReceipt, ...] = ()
        for n in count(1):
            found = await v.step(f"look-{n}", self.look, tree, head, base.local_only)
            if found == Found(head, tree.ref, ()):
                return Settled(head, receipts)
            answer = await v.ask(f"drift-{n}", _gate(found, head, shows))
            receipt = await v.step(
                f"settle-{n}", self._carry_out, v, tree, head, found=found, answer=answer, local=base.local_only
            )
            await v.emit(f"told-{n}", _event(receipt))
            head = receipt.commit or head
            receipts = (*receipts, receipt)
        raise AssertionError("count never ends")

    async def look(self, tree: Tree, head: str, local: tuple[str, ...]) -> Found:
        """Committed and uncommitted changes alike; ignored and generated untracked files are local-only."""
        untracked = {one.path for one in await self.trees.status(tree) if one.code == "??"}
        changed = await self.trees.changed(tree, head)
        paths = tuple(p for p in changed if p not in local and not (p in untracked and is_noise(p)))
        return Found(await self.trees.head(tree), await refs.current_branch(repo_of(tree)), paths)

    async def _carry_out(
        self,
        v: Visit,
        tree: Tree,
        head: str,
        *,
        found: Found,
        answer: GateAnswer,
        local: tuple[str, ...],
        key: str = "",
    ) -> DriftReceipt:
        """Everything is kept in an undo ref first. ``include`` takes the named paths along, or all; the rest goes."""
        included = _included(found, answer)
        rest = tuple(path for path in found.paths if path not in included)
        at, who = datetime.now(UTC).isoformat(timespec="seconds"), str(answer.by)
        undo = await self.trees.undo(tree, f"manual QA: {answer.choice}", key=f"{key} drift")
        commit = head
        if included:
            message = f"{v.work.key}: changes made during Manual QA v{v.ref.n}"
            commit = await self.trees.squash(tree, head, included, message, trailers={"Beadmill-Key": key})
        elif (found.head, found.at) != (head, tree.ref):
            await self.trees.reset(tree, head, why="manual QA: discard", key=f"{key} drift")
        await self.trees.restore_paths(tree, commit, rest, undo)
        await _inputs.again(tree, local)
        return DriftReceipt(
            choice="include" if included else "discard", included=included, discarded=rest,
            commit=commit if included else "", undo_ref=undo, by=who, at=at,
        )  # fmt: skip


def _included(found: Found, answer: GateAnswer) -> tuple[str, ...]:
    if answer.choice != "include":
        return ()
    payload = answer.payload if isinstance(answer.payload, dict) else {}
    wanted = payload.get("paths")
    return found.paths if wanted is None else tuple(path for path in found.paths if path in wanted)


def _event(receipt: DriftReceipt) -> Event:
    data = {"included": list(receipt.included), "discarded": list(receipt.discarded), "undo": receipt.undo_ref}
    if receipt.choice == "include":
        return Event("qa.drift_included", data)
    return Event("qa.drift_discarded", data)


def _gate(found: Found, head: str, shows: tuple[ArtifactRef, ...]) -> GateRequest:
    paths = {"type": "array", "items": {"type": "string", "maxLength": 4096}, "maxItems": 10_000}
    return GateRequest(
        GateKind.QA,
        f"The worktree changed while it was tested: {_told(found.paths)}",
        ("include", "discard"),
        shows=shows,
        form={"type": "object", "properties": {"paths": paths}, "additionalProperties": False},
        detail={
            "code": CODE,
            "paths": list(found.paths[:SHOWN]),
            "more": max(len(found.paths) - SHOWN, 0),
            "head": found.head,
            "baseline": head,
            "kept": "your results; every state of the worktree is kept in an undo ref before anything is done",
            "next": "include takes the changes into the delivered change, discard takes them out of the worktree",
        },
    )


def _told(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return (", ".join(paths[:3]) or "new commits") + more
