"""An act that was killed before it was recorded is done once more: the undo ref it answers with is still the first."""

from __future__ import annotations

from pathlib import Path

from beadmill.git import refs
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree, Worktrees
from tests.conftest import Git


async def opened(repo: Path, tmp_path: Path) -> tuple[Worktrees, Tree]:
    trees = Worktrees()
    return trees, await trees.open(str(repo), str(tmp_path / "workspace"), branch="beadmill/T-1", base="main")


async def kept(tree: Tree) -> list[str]:
    return sorted(await refs.listing(repo_of(tree), tree.undo_prefix))


async def test_a_reset_done_twice_with_one_key_answers_with_what_was_there_before_the_first(
    repo: Path, tmp_path: Path, git: Git
) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "new.txt").write_text("work\n")
    first = await trees.reset(tree, tree.base_commit, why="try 1 failed", key="run/step#0")
    again = await trees.reset(tree, tree.base_commit, why="try 1 failed", key="run/step#0")
    assert (again, await kept(tree)) == (first, [first])
    assert git(repo, "show", f"{first}:new.txt") == "work"


async def test_a_squash_done_twice_makes_one_commit_and_keeps_the_branch_as_it_was_once(
    repo: Path, tmp_path: Path
) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "new.txt").write_text("work\n")
    await trees.commit(tree, ["new.txt"], "bead", trailers={"Beadmill-Key": "bead#0"})
    made = []
    for _ in range(2):
        undo = await trees.undo(tree, "before integration", key="run/squash#0")
        commit = await trees.squash(
            tree, tree.base_commit, ["new.txt"], "all", trailers={"Beadmill-Key": "run/squash#0"}
        )
        made.append((undo, commit))
    assert (made[0], len(await kept(tree))) == (made[1], 1)


async def test_paths_brought_twice_behind_a_kept_state_make_no_ref_of_the_state_between(
    repo: Path, tmp_path: Path
) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "README.md").write_text("work\n")
    first = await trees.undo(tree, "red on base")
    for _ in range(2):
        await trees.restore_paths(tree, tree.base_commit, ["README.md"], first)
    assert ((Path(tree.path) / "README.md").read_text(), await kept(tree)) == ("sample\n", [first])


async def test_what_a_person_changed_between_two_tries_of_one_act_is_kept_beside_the_first_state(
    repo: Path, tmp_path: Path, git: Git
) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "new.txt").write_text("work\n")
    first = await trees.reset(tree, tree.base_commit, why="try 1 failed", key="run/step#0")
    (Path(tree.path) / "mine.txt").write_text("by hand\n")
    again = await trees.reset(tree, tree.base_commit, why="try 1 failed", key="run/step#0")
    assert (again, await trees.undone(tree, "run/step#0"), len(await kept(tree))) == (first, first, 2)
    assert git(repo, "show", f"{tree.undo_prefix}/2:mine.txt") == "by hand"


async def test_a_restore_done_twice_keeps_what_was_there_before_the_first_once(repo: Path, tmp_path: Path) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "new.txt").write_text("work\n")
    saved = await trees.undo(tree, "red on base")
    (Path(tree.path) / "new.txt").unlink()
    for _ in range(2):
        await trees.stash_apply(tree, saved, key="run/restore#0")
    assert ((Path(tree.path) / "new.txt").read_text(), len(await kept(tree))) == ("work\n", 2)


async def test_a_commit_that_is_there_by_its_key_is_not_squashed_again(repo: Path, tmp_path: Path) -> None:
    trees, tree = await opened(repo, tmp_path)
    (Path(tree.path) / "new.txt").write_text("work\n")
    trailers = {"Beadmill-Key": "run/land#0"}
    made = await trees.commit(tree, ["new.txt"], "all", trailers=trailers)
    assert await trees.squash(tree, tree.base_commit, ["new.txt"], "all", trailers=trailers) == made
    assert await kept(tree) == []
