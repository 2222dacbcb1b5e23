"""Where a bead is built: the ticket's own tree when beads come one by one, else a lane of its own, prepared once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.setup import SetupPlan, SetupProfile
from beadmill.domain.bead import undone
from beadmill.engine.port import Visit
from beadmill.errors import Blocked
from beadmill.nodes._ground import Ground
from beadmill.nodes._inputs import Copied
from beadmill.nodes._material import environment
from beadmill.nodes._prepare import Preparer
from beadmill.proof.runs import told
from beadmill.workspaces import filling, lanes
from beadmill.workspaces.worktrees import Tree

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class Lane:
    """``tree`` is where the work happens, ``ticket`` the tree of the branch it lands on: the same one, or a lane's."""

    tree: Tree
    ticket: Tree
    profile: SetupProfile

    @property
    def own(self) -> bool:
        """Built in the ticket's own tree."""
        return self.tree.path == self.ticket.path

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.profile.inputs_copied

    @property
    def env(self) -> Mapping[str, str]:
        return environment(self.profile)


def key_of(bead: Bead) -> str:
    """The scope of a bead's work: edited work is new work."""
    return f"{bead.id}@{bead.sha[:12]}"


class Lanes:
    def __init__(self, ground: Ground, preparer: Preparer) -> None:
        self.ground = ground
        self.preparer = preparer

    async def open(self, v: Visit, profile: SetupProfile) -> Lane:
        """The lane of the bead whose scope ``v`` is. Raises Blocked("LANE_SETUP_FAILED")."""
        ticket = await v.step("tree", self.ground.open, v)
        if v.settings.build.parallel == 1:
            return Lane(ticket, ticket, profile)
        n = await v.step("lane", self._number, v)
        tree = await v.step("lane-tree", lanes.open_lane, ticket, n)
        lane = Lane(tree, ticket, moved(profile, ticket, tree))
        await self._prepare(v.at("lane-setup"), lane)
        return lane

    async def _number(self, v: Visit) -> int:
        plan, attempts = (await v.latest(Beads)).beads, await v.attempts()
        left = set(undone(plan, attempts))
        live = {key_of(bead) for bead in plan if bead.id in left}
        return await self.ground.ledger.lane(v.ref.run, v.scope, live=live)

    async def _prepare(self, v: Visit, lane: Lane) -> None:
        """The approved setup once more, in this lane's folder: what it installs is ignored by git and stays."""
        approved = await v.get(SetupPlan)
        marker = Path(lane.tree.workspace) / "runtime" / "prepared"
        if await v.step("prepared", self._is, marker, approved.sha256):
            return
        start = await v.step("start", self._at_head, lane)
        unfilled = await v.step("submodules", filling.set_up, lane.tree)
        if unfilled:
            raise Blocked(
                "LANE_SETUP_FAILED",
                f"a folder for beads beside others lacks submodules: {'; '.join(one.said for one in unfilled)}",
                forget=(v.scope,),
                kept="the ticket's own folder, which is prepared, and everything that landed",
                next="; ".join(dict.fromkeys(one.next for one in unfilled)),
            )
        plan, copied = moved(approved, lane.ticket, lane.tree), Copied(lane.inputs)
        tried = await self.preparer.verify(v, lane.tree, plan, start, copied)
        if tried.failed:
            raise Blocked(
                "LANE_SETUP_FAILED",
                f"a folder for beads beside others is not ready: {tried.failed[0].command} ({tried.failed[0].purpose})",
                forget=(v.scope,),
                details={"failed": [run.command for run in tried.failed], "output": told(tried.failed)},
                kept="the ticket's own folder, which is prepared, and everything that landed",
                next="retry, or set build.parallel to 1 and send the run back to build",
            )
        await v.step("done", self._done, marker, approved.sha256)

    async def _at_head(self, lane: Lane, *, key: str = "") -> str:
        head = await self.ground.trees.head(lane.ticket)
        await self.ground.clean(lane.tree, head, lane.inputs, "the lane is prepared", key=key)
        return head

    async def _is(self, marker: Path, wanted: str) -> bool:
        place = anyio.Path(marker)
        return await place.is_file() and await place.read_text() == wanted

    async def _done(self, marker: Path, wanted: str) -> None:
        await anyio.Path(marker).write_text(wanted)

    async def mend(self, v: Visit, lane: Lane, start: str) -> Tree:
        """The tree whole again after somebody had it in hand."""
        work, trees = v.work, self.ground.trees
        if lane.own:
            return await trees.mend(work.repository, work.workspace, branch=work.branch, base=work.base, start=start)
        await trees.bring_back(lane.tree.workspace, start)
        return await lanes.open_lane(lane.ticket, int(Path(lane.tree.workspace).name))


def moved(document: D, ticket: Tree, lane: Tree) -> D:
    """The document with the lane's folders where it names the ticket's."""
    old, new = (json.dumps(tree.workspace, ensure_ascii=False)[1:-1] for tree in (ticket, lane))
    text = re.sub(re.escape(old) + r"(?![\w.-])", lambda _: new, document.canonical().decode())
    return type(document).parse(text.encode())
