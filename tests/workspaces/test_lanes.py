"""Lanes: trees beside the ticket's own, and how their work comes to its branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from beadmill.workspaces import lanes
from beadmill.workspaces.lanes import Landing
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]


async def worked(lane: Tree, name: str, text: str = "x\n") -> lanes.Proved:
    (Path(lane.path) / name).write_text(text)
    return await lanes.content(lane, [name], lane.base_commit)


def files_of(tree: Tree) -> list[str]:
    return sorted(path.name for path in Path(tree.path).glob("[!.]*"))


async def land(lane: Tree, ticket: Tree, proved: lanes.Proved, key: str) -> Landing:
    return await lanes.land(lane, ticket, proved, f"bead({key}): {key}", trailers={"Beadmill-Key": key})


async def test_a_lane_has_a_branch_a_home_and_an_undo_prefix_beside_its_ticket(tree: Tree, git: Git) -> None:
    lane = await lanes.open_lane(tree, 2)
    assert (lane.branch, lane.key, lane.undo_prefix) == (f"{tree.branch}-lane-2", tree.key, tree.undo_prefix)
    assert Path(lane.workspace) == Path(tree.workspace) / "lanes" / "2"
    assert (Path(lane.workspace) / "home").is_dir()
    assert git(Path(lane.path), "rev-parse", "HEAD") == tree.base_commit


async def test_opened_again_it_is_the_same_lane(tree: Tree) -> None:
    assert await lanes.open_lane(tree, 1) == await lanes.open_lane(tree, 1)
    assert [lane.workspace for lane in lanes.lanes_of(tree.workspace)] == [f"{tree.workspace}/lanes/1"]


async def test_landed_work_is_shown_in_the_tickets_folder(trees: Worktrees, tree: Tree) -> None:
    lane = await lanes.open_lane(tree, 1)
    landing = await land(lane, tree, await worked(lane, "a"), "k")
    assert landing == Landing(await trees.head(tree))
    assert (await trees.status(tree), (Path(tree.path) / "a").read_text()) == ((), "x\n")
    assert (await trees.head(lane), await trees.status(lane)) == (landing.commit, ())


async def test_landing_again_with_the_same_key_is_the_same_commit(trees: Worktrees, tree: Tree) -> None:
    first, second = await lanes.open_lane(tree, 1), await lanes.open_lane(tree, 2)
    proved = await worked(first, "a")
    landed = await land(first, tree, proved, "k")
    other = await land(second, tree, await worked(second, "a", "x\n"), "other")
    assert await land(first, tree, proved, "k") == landed
    assert other.moved is not None


async def test_a_lane_whose_branch_moved_shows_both_and_lands_when_they_were_proved(
    trees: Worktrees, tree: Tree
) -> None:
    first, second = await lanes.open_lane(tree, 1), await lanes.open_lane(tree, 2)
    early, late = await worked(first, "a"), await worked(second, "b")
    landed = await land(first, tree, early, "a")
    moved = (await land(second, tree, late, "b")).moved
    assert moved is not None
    assert (moved.on, files_of(second)) == (landed.commit, ["README.md", "a", "b"])
    assert (await land(second, tree, moved, "b")).commit == await trees.head(tree)


async def test_c34_work_that_does_not_merge_names_its_paths_and_leaves_the_branch(trees: Worktrees, tree: Tree) -> None:
    first, second = await lanes.open_lane(tree, 1), await lanes.open_lane(tree, 2)
    early, late = await worked(first, "README.md", "one\n"), await worked(second, "README.md", "two\n")
    landed = await land(first, tree, early, "a")
    assert await land(second, tree, late, "b") == Landing(conflicts=("README.md",))
    assert (await trees.head(tree), (Path(second.path) / "README.md").read_text()) == (landed.commit, "two\n")


async def test_what_somebody_left_in_the_tickets_folder_is_kept_before_it_shows_what_landed(
    trees: Worktrees, tree: Tree, git: Git
) -> None:
    lane = await lanes.open_lane(tree, 1)
    (Path(tree.path) / "README.md").write_text("mine\n")
    await land(lane, tree, await worked(lane, "README.md", "landed\n"), "k")
    kept = git(Path(tree.repository), "for-each-ref", "--format=%(refname)", tree.undo_prefix).splitlines()
    assert (Path(tree.path) / "README.md").read_text() == "landed\n"
    assert [git(Path(tree.repository), "show", f"{ref}:README.md") for ref in kept] == ["mine"]


async def test_every_branch_of_tickets_and_lanes_is_ours(trees: Worktrees, tree: Tree) -> None:
    workspace = str(Path(tree.workspace).parent / "KEY-2")
    other = await trees.open(tree.repository, workspace, branch="topic/two", base=tree.base)
    lane = await lanes.open_lane(tree, 1)
    assert lanes.branches(lane) == tuple(sorted((tree.branch, lane.branch, other.branch)))


async def test_removed_lanes_take_their_branches_along_and_keep_what_did_not_land(tree: Tree, git: Git) -> None:
    lane = await lanes.open_lane(tree, 1)
    (Path(lane.path) / "left").write_text("work\n")
    gone = await lanes.remove_lanes(tree)
    assert (gone.removed, gone.warnings, files_of(lane)) == ((lane.path,), (), [])
    assert git(Path(tree.repository), "branch", "--list", "*lane*") == ""
    kept = git(Path(tree.repository), "for-each-ref", "--format=%(refname)", tree.undo_prefix)
    assert git(Path(tree.repository), "show", f"{kept}:left") == "work"
