"""Kept states: listed with what they hold, and brought back only where nothing works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from house_for_tests import Starter, until

from beadmill.domain.values import Actor
from beadmill.errors import Conflict, NotFound, Refused
from beadmill.operations import events, runs, tickets, undo
from beadmill.operations.ports import Ports
from beadmill.workspaces import lanes
from beadmill.workspaces.tree import Tree

Git = Callable[..., str]


@pytest.fixture
async def tree(ports: Ports, started: Starter, owner: Actor) -> Tree:
    """The worktree of a ticket whose run is paused at its gate, with a draft in it."""
    ticket = await started()
    await runs.pause(ports, ticket.current.id, actor=owner)
    work = ticket.current.work
    tree = await ports.trees.open(work["repository"], work["workspace"], branch=work["branch"], base="main")
    (Path(tree.path) / "draft.txt").write_text("half\n")
    return tree


async def test_a_kept_state_says_when_why_where_and_what_it_holds(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    (line,) = await undo.listing(ports, "API-1", actor=owner)
    said = line.model_dump(exclude={"when"})
    assert said == {
        "ref": "refs/beadmill/undo/API-1/1",
        "n": 1,
        "why": "try 1 failed",
        "place": "tree",
        "head": tree.base_commit,
        "files": 1,
        "size": 5,
        "left_out": (),
    }
    assert str(line.when) > (await tickets.show(ports, "API-1", actor=owner)).created[:19]


async def test_states_of_lanes_stand_in_the_same_list_newest_first(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.undo(tree, "one")
    lane = await lanes.open_lane(tree, 2)
    (Path(lane.path) / "lane.txt").write_text("x")
    await ports.trees.undo(lane, "two")
    found = [(line.n, line.place, line.why) for line in await undo.listing(ports, "API-1", actor=owner)]
    assert found == [(2, "lanes/2", "two"), (1, "tree", "one")]


async def test_a_state_is_shown_as_a_patch(ports: Ports, tree: Tree, owner: Actor) -> None:
    (Path(tree.path) / "README.md").unlink()
    await ports.trees.undo(tree, "look")
    state = await undo.show(ports, "API-1", 1, actor=owner)
    assert [(f.path, f.how, f.size) for f in state.touched] == [("README.md", "D", 0), ("draft.txt", "A", 5)]
    assert ("+half" in state.diff, "-sample" in state.diff) == (True, True)


async def test_what_was_too_big_to_be_kept_is_named(
    ports: Ports, tree: Tree, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.git.undo.LIMIT", 4)
    await ports.trees.undo(tree, "look")
    (line,) = await undo.listing(ports, "API-1", actor=owner)
    assert (line.left_out, line.files) == (("draft.txt",), 0)


async def test_a_state_comes_back_behind_a_ref_of_what_was_there(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    (Path(tree.path) / "new.txt").write_text("new\n")
    made = await undo.restore(ports, "API-1", 1, actor=owner)
    assert made.kept == "refs/beadmill/undo/API-1/2"
    assert [f.path for f in await ports.trees.status(tree)] == ["draft.txt"]
    await undo.restore(ports, "API-1", 2, actor=owner)
    assert [f.path for f in await ports.trees.status(tree)] == ["new.txt"]


async def test_brought_back_twice_by_the_same_key_is_done_once(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    first = await undo.restore(ports, "API-1", 1, actor=owner, key="k")
    (Path(tree.path) / "later.txt").write_text("x")
    assert await undo.restore(ports, "API-1", 1, actor=owner, key="k") == first
    assert (Path(tree.path) / "later.txt").exists()
    seen = await events.since(ports, actor=owner, topics=("ticket:API-1",))
    assert [e.data["n"] for e in seen.events if e.kind == "undo.restored"] == [1]


async def test_while_the_run_may_go_on_nothing_is_brought_back(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.undo(tree, "look")
    await runs.resume(ports, "API-1-r1", actor=owner)
    with pytest.raises(Conflict) as refused:
        await undo.restore(ports, "API-1", 1, actor=owner)
    assert (refused.value.code, "run pause API-1-r1" in refused.value.next) == ("WORKING", True)


async def test_a_blocked_run_can_have_a_state_brought_back(ports: Ports, started: Starter, owner: Actor) -> None:
    ticket = await started(title="Block")
    assert ticket.current.gates[0].kind == "blocked"
    work = ticket.current.work
    tree = await ports.trees.open(work["repository"], work["workspace"], branch=work["branch"], base="main")
    (Path(tree.path) / "draft.txt").write_text("half\n")
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    await undo.restore(ports, "API-1", 1, actor=owner)
    assert (Path(tree.path) / "draft.txt").read_text() == "half\n"


async def landed(ports: Ports, tree: Tree) -> str:
    """A kept state, and behind it a bead on the branch."""
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    (Path(tree.path) / "done.txt").write_text("done\n")
    return await ports.trees.commit(tree, ["done.txt"], "bead", trailers={})


async def test_a_live_run_keeps_the_commits_of_its_beads(ports: Ports, tree: Tree, owner: Actor) -> None:
    commit = await landed(ports, tree)
    with pytest.raises(Conflict, match="1 commit") as refused:
        await undo.restore(ports, "API-1", 1, actor=owner)
    assert (refused.value.code, await ports.trees.head(tree)) == ("UNDO_BEHIND", commit)


async def test_an_ended_run_goes_back_further_and_keeps_the_commits_behind_a_ref(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    commit = await landed(ports, tree)
    await tickets.cancel(ports, "API-1", actor=owner)
    await until(ports, "API-1", lambda found: found.state == "canceled")
    made = await undo.restore(ports, "API-1", 1, actor=owner)
    assert (made.commit, git(repo, "rev-parse", f"{made.kept}^1")) == (tree.base_commit, commit)


async def test_a_state_can_become_a_branch_while_everything_goes_on(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    await ports.trees.undo(tree, "look")
    await runs.resume(ports, "API-1-r1", actor=owner)
    before = git(repo, "status", "--porcelain", "--branch")
    made = await undo.restore(ports, "API-1", 1, branch="rescued", actor=owner)
    assert await undo.restore(ports, "API-1", 1, branch="rescued", actor=owner) == made
    assert git(repo, "log", "-1", "--format=%an %P", "rescued") == f"Test Person {tree.base_commit}"
    assert git(repo, "show", "rescued:draft.txt") == "half"
    assert git(repo, "status", "--porcelain", "--branch") == before


@pytest.mark.parametrize(
    ("name", "error"), [("main", Conflict), ("Main", Conflict), ("a..b", Refused), ("-x", Refused)]
)
async def test_a_branch_name_that_is_taken_or_none_is_refused(
    ports: Ports, tree: Tree, owner: Actor, name: str, error: Any
) -> None:
    await ports.trees.undo(tree, "look")
    with pytest.raises(error):
        await undo.restore(ports, "API-1", 1, branch=name, actor=owner)


async def test_without_its_worktree_a_state_comes_back_as_a_branch_only(ports: Ports, tree: Tree, owner: Actor) -> None:
    await ports.trees.remove(tree)
    with pytest.raises(Conflict) as gone:
        await undo.restore(ports, "API-1", 1, actor=owner)
    assert (gone.value.code, gone.value.next) == ("TREE_GONE", "beadmill undo restore API-1 1 --branch <name>")
    assert (await undo.restore(ports, "API-1", 1, branch="rescued", actor=owner)).branch == "rescued"


async def test_a_number_that_is_none_is_not_found(ports: Ports, tree: Tree, owner: Actor) -> None:
    with pytest.raises(NotFound, match="no kept state 7"):
        await undo.show(ports, "API-1", 7, actor=owner)


async def test_a_draft_has_no_kept_states(ports: Ports, project: Any, owner: Actor) -> None:
    await tickets.create(ports, "API", title="Do it", actor=owner)
    assert await undo.listing(ports, "API-1", actor=owner) == ()
