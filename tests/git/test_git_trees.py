from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.git import trees, undo
from beadmill.git.run import Repo

Git = Callable[..., str]


@pytest.fixture
def here(repo: Path) -> Repo:
    return Repo(repo / ".git", repo)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def commit(repo: Path, git: Git, name: str, text: str, *, message: str = "") -> str:
    (repo / name).write_text(text)
    git(repo, "add", name)
    git(repo, "commit", "-qm", message or f"write {name}")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def forked(repo: Path, git: Git) -> str:
    """``topic`` has two commits; main has moved on by one; main is checked out. The head of topic."""
    git(repo, "switch", "-qc", "topic")
    commit(repo, git, "a", "a\n")
    head = commit(repo, git, "b", "b\n")
    git(repo, "switch", "-q", "main")
    commit(repo, git, "meanwhile", "m\n")
    return head


async def test_a_change_that_is_not_there_is_not_contained(here: Repo, forked: str) -> None:
    assert await trees.contains(here, "main", forked) == ""


async def test_a_merge_is_found_at_the_merge_commit(here: Repo, forked: str, repo: Path, git: Git) -> None:
    git(repo, "merge", "-q", "--no-edit", "topic")
    merge = git(repo, "rev-parse", "HEAD")
    commit(repo, git, "later", "l\n")
    assert await trees.landed(here, "main", forked) == trees.Landed("merge", merge)


async def test_a_squash_is_found_by_its_patch(here: Repo, forked: str, repo: Path, git: Git) -> None:
    git(repo, "merge", "-q", "--squash", "topic")
    git(repo, "commit", "-qm", "squashed")
    squash = git(repo, "rev-parse", "HEAD")
    commit(repo, git, "later", "l\n")
    assert await trees.landed(here, "main", forked) == trees.Landed("squash", squash)


async def test_a_squash_with_more_in_it_is_found_by_its_tree(here: Repo, forked: str, repo: Path, git: Git) -> None:
    git(repo, "merge", "-q", "--squash", "topic")
    sha = commit(repo, git, "extra", "e\n")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    assert await trees.landed(here, "main", forked) == trees.Landed()
    assert await trees.landed(here, "main", forked, tree=tree) == trees.Landed("squash", sha)


async def test_a_rebase_is_found_at_its_last_commit(here: Repo, forked: str, repo: Path, git: Git) -> None:
    git(repo, "cherry-pick", "main..topic")
    last = git(repo, "rev-parse", "HEAD")
    commit(repo, git, "later", "l\n")
    assert await trees.landed(here, "main", forked) == trees.Landed("rebase", last)


@pytest.mark.parametrize(("message", "how"), [("write a", "rebase"), ("write a (#1)", "squash")])
async def test_one_commit_with_its_own_words_was_rebased_else_squashed(
    here: Repo, repo: Path, git: Git, *, message: str, how: str
) -> None:
    git(repo, "switch", "-qc", "one")
    head = commit(repo, git, "a", "a\n", message="write a")
    git(repo, "switch", "-q", "main")
    commit(repo, git, "meanwhile", "m\n")
    git(repo, "cherry-pick", "-n", "one")
    git(repo, "commit", "-qm", message)
    assert await trees.contains(here, "main", head) == how


async def test_a_change_taken_back_on_the_base_still_landed(here: Repo, forked: str, repo: Path, git: Git) -> None:
    git(repo, "merge", "-q", "--no-edit", "topic")
    git(repo, "revert", "--no-edit", "-m1", "HEAD")
    assert await trees.contains(here, "main", forked) == "merge"


async def test_histories_without_a_common_root_do_not_contain_each_other(here: Repo, repo: Path, git: Git) -> None:
    stranger = git(repo, "commit-tree", "-m", "x", "HEAD^{tree}")
    assert await trees.contains(here, "main", stranger) == ""


async def test_an_empty_commit_on_a_branch_has_not_landed(here: Repo, repo: Path, git: Git) -> None:
    empty = git(repo, "commit-tree", "-p", "HEAD", "-m", "empty", "HEAD^{tree}")
    commit(repo, git, "meanwhile", "m\n")
    assert await trees.contains(here, "main", empty) == ""


async def test_a_three_way_merge_of_trees_needs_no_checkout(here: Repo, forked: str, repo: Path) -> None:
    clean = await trees.merge_trees(here, f"{forked}~2", "main", forked)
    assert (await here.git("ls-tree", "-r", "--name-only", clean.tree)).text.split("\n") == [
        "README.md",
        "a",
        "b",
        "meanwhile",
    ]
    assert sorted(path.name for path in repo.iterdir()) == [".git", "README.md", "meanwhile"]  # noqa: ASYNC240


async def test_a_conflict_names_its_paths(here: Repo, repo: Path, git: Git) -> None:
    git(repo, "switch", "-qc", "topic")
    theirs = commit(repo, git, "ü\n", "theirs\n")
    git(repo, "switch", "-q", "main")
    ours = commit(repo, git, "ü\n", "ours\n")
    assert (await trees.merge(here, ours, theirs)).conflicts == ("ü\n",)


async def test_the_working_tree_leaves_out_what_is_ignored_or_too_big(here: Repo, repo: Path, scratch: Path) -> None:
    (repo / ".gitignore").write_text("ignored\n")
    (repo / "ignored").write_text("i")
    (repo / "small").write_text("s")
    (repo / "big").write_text("b" * 1000)
    state = await trees.working(here, scratch, limit=999)
    assert state.left_out == ("big",)
    listed = (await here.git("ls-tree", "-r", "--name-only", state.tree)).text.split("\n")
    assert listed == [".gitignore", "README.md", "small"]


async def test_a_file_too_big_to_keep_is_named_in_the_undo_commit(
    here: Repo, repo: Path, scratch: Path, git: Git
) -> None:
    (repo / "big").write_text("b" * 1000)
    ref = await undo.save(here, "refs/beadmill/undo/K", why="test", scratch=scratch, limit=10)
    assert (
        git(repo, "show", "-s", "--format=%B", ref) == f"test\nnot kept (over 10 bytes): big\n\nBeadmill-Tree: {repo}"
    )


async def test_an_undo_ref_is_made_while_the_index_has_conflicts(
    here: Repo, repo: Path, scratch: Path, git: Git
) -> None:
    git(repo, "switch", "-qc", "topic")
    commit(repo, git, "README.md", "theirs\n")
    git(repo, "switch", "-q", "main")
    commit(repo, git, "README.md", "ours\n")
    assert (await here.git("merge", "--quiet", "topic", ok=(1,))).code == 1
    ref = await undo.save(here, "refs/beadmill/undo/K", why="test", scratch=scratch)
    kept = git(repo, "show", f"{ref}:README.md").split("\n")
    assert (kept[0], kept[-1]) == ("<<<<<<< HEAD", ">>>>>>> topic")


async def test_nothing_is_left_in_the_scratch_folder(here: Repo, scratch: Path) -> None:
    await trees.working(here, scratch)
    assert list(scratch.iterdir()) == []  # noqa: ASYNC240
