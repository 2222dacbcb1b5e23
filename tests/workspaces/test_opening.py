from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from beadmill.errors import Conflict, Refused
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]


async def opened(trees: Worktrees, repo: Path, workspace: Path, base: str = "main") -> Tree:
    return await trees.open(str(repo), str(workspace), branch=f"beadmill/{workspace.name}", base=base)


async def test_the_same_workspace_gets_its_tree_again(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path
) -> None:
    assert await opened(trees, repo, workspace) == tree
    assert json.loads((workspace / "runtime" / "tree.json").read_text()) == json.loads(json.dumps(asdict(tree)))


async def test_a_taken_branch_name_gets_a_number(trees: Worktrees, repo: Path, workspace: Path, git: Git) -> None:
    git(repo, "branch", "beadmill/DEMO-1")
    tree = await opened(trees, repo, workspace)
    assert tree.branch == "beadmill/DEMO-1-2"
    assert await opened(trees, repo, workspace) == tree


async def test_a_name_taken_on_the_remote_or_in_other_case_is_taken(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    git(repo, "push", "-q", "origin", "main:refs/heads/beadmill/DEMO-1")
    git(repo, "branch", "Beadmill/Demo-1-2")
    assert (await opened(trees, repo, workspace)).branch == "beadmill/DEMO-1-3"


async def test_a_branch_named_like_our_folder_gives_a_flat_name(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    git(repo, "branch", "beadmill")
    assert (await opened(trees, repo, workspace)).branch == "beadmill-DEMO-1"


async def test_c20_work_starts_from_the_remote_tip(trees: Worktrees, repo: Path, workspace: Path, git: Git) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(repo, "push", "-q", "origin", "main")
    tip = git(repo, "rev-parse", "main")
    git(repo, "reset", "-q", "--hard", "HEAD^")
    git(repo, "update-ref", "refs/remotes/origin/main", "main")
    tree = await opened(trees, repo, workspace)
    assert (tree.base_commit, tree.warnings) == (tip, ())
    assert git(repo, "rev-parse", "origin/main") != tip


async def test_c20_offline_the_local_copy_is_used_with_a_warning(
    trees: Worktrees, repo: Path, workspace: Path, tmp_path: Path, git: Git
) -> None:
    (tmp_path / "origin.git").rename(tmp_path / "gone.git")
    tree = await opened(trees, repo, workspace)
    assert tree.base_commit == git(repo, "rev-parse", "origin/main")
    assert len(tree.warnings) == 1
    assert "cannot be reached" in tree.warnings[0]


@pytest.mark.parametrize("online", [True, False])
async def test_without_a_base_the_remotes_default_counts(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, *, online: bool
) -> None:
    git(repo, "push", "-q", "origin", "main:trunk")
    git(repo.parent / "origin.git", "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(repo, "fetch", "-q")
    git(repo, "remote", "set-head", "origin", "trunk")
    if not online:
        (repo.parent / "origin.git").rename(repo.parent / "gone.git")
    assert (await opened(trees, repo, workspace, base="")).base == "trunk"


async def test_without_any_default_the_current_branch_counts(
    trees: Worktrees, repo: Path, workspace: Path, tmp_path: Path, git: Git
) -> None:
    git(tmp_path / "origin.git", "symbolic-ref", "HEAD", "refs/heads/nowhere")
    git(repo, "switch", "-qc", "develop")
    git(repo, "push", "-q", "origin", "develop")
    assert (await opened(trees, repo, workspace, base="")).base == "develop"


async def test_no_origin_is_refused_with_what_to_do(trees: Worktrees, repo: Path, workspace: Path, git: Git) -> None:
    git(repo, "remote", "remove", "origin")
    with pytest.raises(Refused) as caught:
        await opened(trees, repo, workspace)
    assert (caught.value.code, "git remote add origin" in caught.value.next) == ("NO_ORIGIN", True)
    assert git(repo, "branch", "--format=%(refname:short)") == "main"


async def test_an_unknown_base_is_refused_and_leaves_nothing(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    with pytest.raises(Refused) as caught:
        await opened(trees, repo, workspace, base="nope")
    assert (caught.value.code, caught.value.details) == ("BASE_MISSING", {"branches": ["main"]})
    assert git(repo, "branch", "--format=%(refname:short)") == "main"
    assert not (workspace / "tree").exists()


async def test_c11_c12_a_workspace_inside_the_repository_is_refused(trees: Worktrees, repo: Path) -> None:
    with pytest.raises(Refused) as caught:
        await opened(trees, repo, repo / "work" / "DEMO-1")
    assert caught.value.code == "WORKSPACE_INSIDE"
    assert not (repo / "work").exists()


async def test_a_tree_deleted_by_hand_is_made_again_on_its_branch(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path
) -> None:
    (Path(tree.path) / "a").write_text("a")
    sha = await trees.commit(tree, ["a"], "one", trailers={})
    shutil.rmtree(tree.path)
    again = await opened(trees, repo, workspace)
    assert (again.branch, await trees.head(again), await trees.status(again)) == (tree.branch, sha, ())


async def test_a_git_file_that_an_agent_rewrote_is_not_believed_and_is_written_again(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path
) -> None:
    link = Path(tree.path) / ".git"
    right = link.read_text()
    link.write_text(f"gitdir: {repo}/.git\n")
    (Path(tree.path) / "a").write_text("a")
    await trees.commit(tree, ["a"], "one", trailers={})
    await opened(trees, repo, workspace)
    assert link.read_text() == right


async def test_a_git_folder_in_place_of_the_file_is_set_aside(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path, git: Git
) -> None:
    (Path(tree.path) / ".git").unlink()
    git(Path(tree.path), "init", "-q")
    await opened(trees, repo, workspace)
    assert (Path(tree.path) / ".git").is_file()
    assert (workspace / "runtime" / "foreign-git-1" / "HEAD").exists()


async def test_a_workspace_of_another_repository_is_named(
    trees: Worktrees, tree: Tree, tmp_path: Path, workspace: Path, git: Git
) -> None:
    git(tmp_path, "clone", "-q", str(tmp_path / "origin.git"), "other")
    with pytest.raises(Conflict) as caught:
        await opened(trees, tmp_path / "other", workspace)
    assert (caught.value.code, tree.repository in caught.value.message) == ("OTHER_REPOSITORY", True)


async def test_a_damaged_marker_is_never_guessed(trees: Worktrees, tree: Tree, repo: Path, workspace: Path) -> None:
    (workspace / "runtime" / "tree.json").write_text("{")
    with pytest.raises(Conflict) as caught:
        await opened(trees, repo, workspace)
    assert caught.value.code == "BAD_MARKER"
    assert (Path(tree.path) / "README.md").exists()


async def test_ten_workspaces_open_at_once(trees: Worktrees, repo: Path, workspace: Path) -> None:
    places = [workspace.with_name(f"DEMO-{n}") for n in range(10)]
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(opened(trees, repo, place)) for place in places]
    assert [task.result().branch for task in made] == [f"beadmill/DEMO-{n}" for n in range(10)]


async def test_two_trees_of_one_workspace_have_their_own_branches(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path
) -> None:
    other = await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main", name="tree-2")
    assert (other.branch, other.path) == ("beadmill/DEMO-1-2", str(workspace / "tree-2"))


async def test_a_pruned_record_is_made_again_and_the_files_stay(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path, git: Git
) -> None:
    (Path(tree.path) / "unsaved").write_text("precious")
    (Path(tree.path) / "README.md").write_text("changed\n")
    (Path(tree.path) / ".git").unlink()
    git(repo, "worktree", "prune")
    again = await opened(trees, repo, workspace)
    assert await trees.changed(again, tree.base_commit) == ("README.md", "unsaved")
    assert (workspace / "tree" / "unsaved").read_text() == "precious"
    assert await opened(trees, repo, workspace) == again


async def test_files_that_no_marker_vouches_for_are_left_alone(trees: Worktrees, repo: Path, workspace: Path) -> None:
    (workspace / "tree").mkdir(parents=True)
    (workspace / "tree" / "mine").write_text("precious")
    with pytest.raises(Conflict) as caught:
        await opened(trees, repo, workspace)
    assert caught.value.code == "UNKNOWN_TREE"
    assert (workspace / "tree" / "mine").read_text() == "precious"
