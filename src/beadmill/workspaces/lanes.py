"""Lanes: further trees of one ticket, so that beads which need nothing of each other are built at the same time.

A lane is a workspace of its own (``<ticket>/lanes/<n>`` with tree, runtime, home and tmp) on a branch of its own. Work is
proved in a lane and lands on the ticket's branch. When that has moved meanwhile, the lane is shown both together, to be
proved once more; nothing lands that was not proved as it lands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import BeadmillError, Conflict
from beadmill.git import commits, refs, trees, undo
from beadmill.git.run import Repo
from beadmill.processes.places import LANES
from beadmill.workspaces import opening
from beadmill.workspaces.tree import Tree, acting, read_marker
from beadmill.workspaces.worktrees import attach_head, branch_tip, bring, found


@dataclass(frozen=True, slots=True)
class Proved:
    """Content (the id of a git tree) that was proved on a commit."""

    content: str
    on: str


@dataclass(frozen=True, slots=True)
class Landing:
    """``commit`` is on the ticket's branch; else ``moved`` is what the lane shows now, to be proved; else there are
    ``conflicts``: paths, or words when the branch was rewritten."""

    commit: str = ""
    moved: Proved | None = None
    conflicts: tuple[str, ...] = ()


async def open_lane(ticket: Tree, n: int) -> Tree:
    """The ``n``-th lane (from 1), made when it is not there. Raises as Worktrees.open, but asks no remote."""
    return await opening.open_lane(ticket, Path(ticket.workspace) / LANES / str(n))


def lanes_of(workspace: str | Path) -> tuple[Tree, ...]:
    """Every lane of a ticket's workspace, by number; folders without a record are left out."""
    places = sorted((Path(workspace) / LANES).glob("*"), key=lambda place: place.name.zfill(9))
    found = [read_marker(place, "tree") for place in places]
    return tuple(tree for tree in found if tree is not None)


def branches(tree: Tree) -> tuple[str, ...]:
    """Every branch that tickets and their lanes have beside this tree: Beadmill moves them while agents work."""
    places = [*tree.ticket.parent.glob("*"), *tree.ticket.parent.glob(f"*/{LANES}/*")]
    found = [_marker(place) for place in sorted(places)]
    return tuple(sorted({tree.branch, *(one.branch for one in found if one is not None)}))


def _marker(place: Path) -> Tree | None:
    """Another ticket's that cannot be read is no reason to stop this one."""
    try:
        return read_marker(place, "tree")
    except Conflict:
        return None


async def content(lane: Tree, paths: Sequence[str], start: str) -> Proved:
    """What a commit of these paths on ``start`` would hold. Raises as Worktrees.commit."""
    async with acting(lane) as repo:
        return Proved(await commits.tree_of(repo, lane.scratch, start, paths), start)


async def land(lane: Tree, ticket: Tree, proved: Proved, message: str, *, trailers: Mapping[str, str]) -> Landing:
    """One commit on the ticket's branch, exactly as proved. Idempotent by ``Beadmill-Key``. Raises as Worktrees.commit."""
    async with acting(lane) as repo, acting(ticket) as shown:
        await attach_head(shown, ticket)
        head = await branch_tip(shown, ticket)
        made = await found(shown, trailers, since=ticket.base_commit, until=head)
        if made:
            return await _landed(repo, shown, lane, ticket, made=made, old=made)
        if head != proved.on:
            return await _beside(repo, lane, proved, head, key=trailers.get(commits.KEY, ""))
        if proved.content == await refs.tree(shown, head):
            return await _landed(repo, shown, lane, ticket, made=head, old=head)
        made = await commits.write(shown, proved.content, [head], commits.message_of(message, trailers))
        await commits.show(shown, ticket.ref, made, head, why="land")
        return await _landed(repo, shown, lane, ticket, made=made, old=head)


async def _landed(repo: Repo, shown: Repo, lane: Tree, ticket: Tree, *, made: str, old: str) -> Landing:
    """Both folders stand on what landed: the ticket's shows it, the lane's has it already."""
    await _show(shown, ticket, old, await branch_tip(shown, ticket))
    await attach_head(repo, lane)
    await refs.update(repo, lane.ref, made, why="beadmill: landed")
    await repo.git("reset", "--quiet", "--mixed")
    return Landing(made)


async def _beside(repo: Repo, lane: Tree, proved: Proved, head: str, *, key: str) -> Landing:
    """The lane shows the work on the branch as it is now."""
    if not await refs.is_ancestor(repo, proved.on, head):
        return Landing(conflicts=("the ticket's branch was rewritten",))
    merged = await trees.merge_trees(repo, proved.on, head, proved.content)
    if merged.conflicts:
        return Landing(conflicts=merged.conflicts)
    await undo.save(repo, lane.undo_prefix, why="before a merge with other beads", scratch=lane.scratch, key=key)
    await bring(repo, merged.tree, sorted(await trees.changed(repo, proved.content, merged.tree)))
    return Landing(moved=Proved(merged.tree, head))


async def _show(shown: Repo, ticket: Tree, old: str, new: str) -> None:
    """The ticket's folder as its branch is. Nobody works in it while lanes do: what lies there otherwise is kept first."""
    crashpoints.reach("git.land")
    done = await shown.git("read-tree", "-m", "-u", old, new, ok=())
    same = await shown.git("diff-index", "--quiet", "HEAD", "--", ok=())
    if done.code or same.code:
        await undo.save(shown, ticket.undo_prefix, why="before landed work is shown", scratch=ticket.scratch)
        await shown.git("reset", "--hard", "--quiet", "HEAD")
    crashpoints.reach("git.land")


@dataclass(frozen=True, slots=True)
class Gone:
    removed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def remove_lanes(ticket: Tree) -> Gone:
    """Their worktrees and branches. What did not land is kept by undo refs; what cannot be removed is named."""
    removed, warnings = [], []
    for lane in lanes_of(ticket.workspace):
        try:
            await opening.remove_tree(lane)
            await _drop_branch(ticket, lane)
        except (BeadmillError, OSError) as error:
            warnings.append(f"the lane {lane.path} stays: {error}")
        else:
            removed.append(lane.path)
    return Gone(tuple(removed), tuple(warnings))


async def _drop_branch(ticket: Tree, lane: Tree) -> None:
    repo = Repo(ticket.common, None)
    tip = await refs.commit(repo, lane.ref)
    if tip:
        await repo.git("update-ref", "-d", lane.ref, tip)
