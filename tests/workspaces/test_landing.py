from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.workspaces.landing import land
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]


@pytest.fixture
def advance(tree: Tree, git: Git) -> Callable[[str, str], str]:
    """Another bead lands on the branch, seen from another folder: a commit with one file, by key."""

    def go(name: str, text: str) -> str:
        where = Path(tree.repository)
        blob = where.parent / "blob"
        blob.write_text(text)
        sha = git(where, "hash-object", "-w", str(blob))
        base = git(where, "ls-tree", tree.ref).split("\n")
        entries = [line for line in base if not line.endswith(f"\t{name}")] + [f"100644 blob {sha}\t{name}"]
        listing = where.parent / "listing"
        listing.write_text("\n".join(entries) + "\n")
        made = git(where, "-c", "alias.mk=!git mktree <", "mk", str(listing))
        tip = git(where, "commit-tree", made, "-p", tree.ref, "-m", f"other\n\nBeadmill-Key: other-{name}-{text}")
        git(where, "update-ref", tree.ref, tip)
        return tip

    return go


def write(tree: Tree, name: str, text: str) -> None:
    (Path(tree.path) / name).write_text(text)


async def test_work_on_the_expected_head_lands(trees: Worktrees, tree: Tree, git: Git) -> None:
    write(tree, "a", "a")
    sha = await land(tree, ["a"], "bead(a): a", {"Beadmill-Bead": "a", "Beadmill-Key": "k"}, tree.base_commit)
    assert sha == await trees.head(tree)
    assert git(Path(tree.path), "show", "-s", "--format=%P %(trailers:key=Beadmill-Bead,valueonly)", sha or "") == (
        f"{tree.base_commit} a"
    )
    assert await trees.status(tree) == ()


async def test_landing_again_with_the_same_key_is_the_same_commit(trees: Worktrees, tree: Tree) -> None:
    write(tree, "a", "a")
    first = await land(tree, ["a"], "a", {"Beadmill-Key": "k"}, tree.base_commit)
    assert await land(tree, ["a"], "a", {"Beadmill-Key": "k"}, tree.base_commit) == first


async def test_nothing_to_land_is_the_head(tree: Tree) -> None:
    assert await land(tree, [], "none", {"Beadmill-Key": "k"}, tree.base_commit) == tree.base_commit


async def test_a_moved_head_takes_work_that_merges(
    trees: Worktrees, tree: Tree, advance: Callable[[str, str], str], git: Git
) -> None:
    write(tree, "a", "a")
    other = advance("b", "b")
    sha = await land(tree, ["a"], "a", {"Beadmill-Key": "k"}, tree.base_commit)
    assert git(Path(tree.path), "show", "-s", "--format=%P", sha or "") == other
    assert git(Path(tree.path), "ls-tree", "--name-only", sha or "").split("\n") == ["README.md", "a", "b"]
    assert (await trees.status(tree), (Path(tree.path) / "b").read_text()) == ((), "b")


async def test_a_moved_head_refuses_work_that_conflicts(
    trees: Worktrees, tree: Tree, advance: Callable[[str, str], str]
) -> None:
    write(tree, "README.md", "ours\n")
    other = advance("README.md", "theirs\n")
    assert await land(tree, ["README.md"], "a", {"Beadmill-Key": "k"}, tree.base_commit) is None
    assert await trees.head(tree) == other
    assert (Path(tree.path) / "README.md").read_text() == "ours\n"


async def test_a_rewritten_branch_refuses(tree: Tree, git: Git) -> None:
    write(tree, "a", "a")
    stranger = git(Path(tree.path), "commit-tree", "-m", "x", f"{tree.base_commit}^{{tree}}")
    git(Path(tree.path), "update-ref", tree.ref, stranger)
    assert await land(tree, ["a"], "a", {"Beadmill-Key": "k"}, tree.base_commit) is None


async def test_commits_of_the_agent_are_folded_into_the_one_commit(trees: Worktrees, tree: Tree, git: Git) -> None:
    write(tree, "a", "a")
    git(Path(tree.path), "add", "a")
    git(Path(tree.path), "commit", "-qm", "by the agent")
    agents = await trees.head(tree)
    sha = await land(tree, ["a"], "ours", {"Beadmill-Key": "k"}, tree.base_commit)
    assert git(Path(tree.path), "log", "--format=%s", sha or "").split("\n") == ["ours", "first"]
    assert git(Path(tree.path), "rev-parse", "refs/beadmill/undo/DEMO-1/1^1") == agents
    assert await trees.status(tree) == ()


async def test_commits_of_the_agent_that_add_up_to_nothing_are_dropped(trees: Worktrees, tree: Tree, git: Git) -> None:
    git(Path(tree.path), "commit", "-q", "--allow-empty", "-m", "by the agent")
    assert await land(tree, [], "ours", {"Beadmill-Key": "k"}, tree.base_commit) == tree.base_commit
    assert await trees.head(tree) == tree.base_commit
