from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from beadmill.git import undo
from beadmill.workspaces.worktrees import FileStatus, Tree, Worktrees

Git = Callable[..., str]

ODD = ("-x.txt", "new\nline", 'quo"te', "tab\tname", "한국어 폴더/파일 ↔.md", "trailing ")


def fill(tree: Tree, *names: str, text: str = "x\n") -> None:
    for name in names:
        path = Path(tree.path) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def replace_by_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


async def test_a_commit_holds_exactly_the_named_paths(trees: Worktrees, tree: Tree, git: Git) -> None:
    fill(tree, "in.txt", "out.txt")
    sha = await trees.commit(tree, ["in.txt"], "bead(a): one", trailers={"Beadmill-Key": "k"})
    assert git(Path(tree.path), "show", "--format=%s|%an|%ae|%(trailers)", "--name-status", sha).split("\n") == [
        "bead(a): one|Test Person|person@example.org|Beadmill-Key: k",
        "",
        "",
        "A\tin.txt",
    ]
    assert await trees.status(tree) == (FileStatus("out.txt", "??"),)


async def test_odd_names_are_listed_and_committed_as_they_are(trees: Worktrees, tree: Tree, git: Git) -> None:
    fill(tree, *ODD)
    assert await trees.changed(tree, tree.base_commit) == tuple(sorted(ODD))
    sha = await trees.commit(tree, ODD, "odd", trailers={})
    listed = git(Path(tree.path), "diff-tree", "-r", "-z", "--name-only", f"{sha}^", sha).rstrip("\0").split("\0")
    assert sorted(listed) == sorted(ODD)
    assert await trees.status(tree) == ()


async def test_a_deletion_and_a_rename_are_committed(trees: Worktrees, tree: Tree, git: Git) -> None:
    (Path(tree.path) / "README.md").rename(Path(tree.path) / "LIESMICH")
    sha = await trees.commit(tree, ["README.md", "LIESMICH"], "rename", trailers={})
    assert git(Path(tree.path), "show", "--format=", "--name-status", sha) == "R100\tREADME.md\tLIESMICH"


async def test_a_folder_that_became_a_link_is_committed(trees: Worktrees, tree: Tree, git: Git) -> None:
    fill(tree, "d/f")
    await trees.commit(tree, ["d/f"], "folder", trailers={})
    (Path(tree.path) / "d/f").unlink()
    (Path(tree.path) / "d").rmdir()
    (Path(tree.path) / "d").symlink_to("/etc")
    sha = await trees.commit(tree, ["d", "d/f"], "link", trailers={})
    assert git(Path(tree.path), "ls-tree", "-r", "--name-only", sha).split("\n") == ["README.md", "d"]


async def test_the_same_key_is_the_same_commit(trees: Worktrees, tree: Tree) -> None:
    fill(tree, "a")
    first = await trees.commit(tree, ["a"], "one", trailers={"Beadmill-Key": "run/build.1/try#0"})
    fill(tree, "a", text="other\n")
    assert await trees.commit(tree, ["a"], "one", trailers={"Beadmill-Key": "run/build.1/try#0"}) == first


async def test_nothing_to_commit_is_the_head(trees: Worktrees, tree: Tree) -> None:
    assert await trees.commit(tree, ["README.md"], "none", trailers={"Beadmill-Key": "k"}) == tree.base_commit


async def test_a_commit_runs_no_hook_of_the_user(trees: Worktrees, tree: Tree, repo: Path) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{repo}/ran-{name}'\nexit 1\n")
        hook.chmod(0o755)
    fill(tree, "a")
    sha = await trees.commit(tree, ["a"], "one", trailers={})
    await trees.reset(tree, tree.base_commit, why="test")
    assert sha != tree.base_commit
    assert names(repo) == [".git", "README.md"]


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../b", ".git/config", "a/.GIT/x", "", "a//b"])
async def test_a_path_outside_of_the_tree_is_refused(trees: Worktrees, tree: Tree, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        await trees.commit(tree, [path], "bad", trailers={})
    assert caught.value.code == "BAD_PATH"


async def test_c11_a_repository_inside_the_tree_is_not_committed(trees: Worktrees, tree: Tree, git: Git) -> None:
    inner = Path(tree.path) / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("f")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    with pytest.raises(Refused) as caught:
        await trees.commit(tree, ["inner"], "bad", trailers={})
    assert (caught.value.code, caught.value.details) == ("NESTED_REPOSITORY", {"paths": ["inner"]})
    assert await trees.head(tree) == tree.base_commit


async def test_a_commit_without_an_identity_says_what_to_do(trees: Worktrees, tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "user" / ".gitconfig").write_text("")
    fill(tree, "a")
    with pytest.raises(Unavailable) as caught:
        await trees.commit(tree, ["a"], "one", trailers={})
    assert caught.value.code == "GIT_IDENTITY_MISSING"
    assert "git config --global user.name" in caught.value.next


async def test_signing_that_fails_is_named_and_commits_nothing(
    trees: Worktrees, tree: Tree, repo: Path, tmp_path: Path, git: Git
) -> None:
    signer = tmp_path / "signer"
    signer.write_text("#!/bin/sh\necho no key >&2\nexit 2\n")
    signer.chmod(0o755)
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", str(signer))
    fill(tree, "a")
    with pytest.raises(Unavailable) as caught:
        await trees.commit(tree, ["a"], "one", trailers={})
    assert caught.value.code == "SIGNING_FAILED"
    assert await trees.head(tree) == tree.base_commit


async def test_the_hash_tells_every_state_apart_and_leaves_the_index_alone(trees: Worktrees, tree: Tree) -> None:
    index = Path(tree.git_dir) / "index"
    before, empty = index.read_bytes(), await trees.tree_hash(tree)
    fill(tree, "untracked")
    some = await trees.tree_hash(tree)
    fill(tree, "README.md", text="changed\n")
    more = await trees.tree_hash(tree)
    fill(tree, "README.md", text="sample\n")
    assert await trees.tree_hash(tree) == some
    assert len({empty, some, more}) == 3
    assert index.read_bytes() == before


async def test_the_hash_sees_what_only_the_index_holds(trees: Worktrees, tree: Tree, git: Git) -> None:
    fill(tree, "a")
    before = await trees.tree_hash(tree)
    git(Path(tree.path), "add", "a")
    assert await trees.tree_hash(tree) != before


async def test_an_undo_ref_brings_back_files_index_and_branch(trees: Worktrees, tree: Tree, git: Git) -> None:
    fill(tree, ".gitignore", text="ignored\n")
    start = await trees.commit(tree, [".gitignore"], "ignore", trailers={})
    fill(tree, "staged", "loose/deep", "ignored")
    git(Path(tree.path), "add", "staged")
    (Path(tree.path) / "README.md").unlink()
    (Path(tree.path) / "staged").chmod(0o755)
    status, content = await trees.status(tree), await trees.tree_hash(tree)
    ref = await trees.reset(tree, start, why="test")
    assert await trees.status(tree) == ()
    fill(tree, "later", "README.md", text="new\n")
    fill(tree, "ignored", text="newer\n")
    await trees.stash_apply(tree, ref)
    assert (await trees.status(tree), await trees.tree_hash(tree)) == (status, content)
    assert (Path(tree.path) / "ignored").read_text() == "newer\n"


async def test_an_undo_ref_brings_back_a_commit_that_a_reset_dropped(trees: Worktrees, tree: Tree) -> None:
    fill(tree, "a")
    sha = await trees.commit(tree, ["a"], "one", trailers={})
    ref = await trees.reset(tree, tree.base_commit, why="test")
    assert await trees.head(tree) == tree.base_commit
    await trees.stash_apply(tree, ref)
    assert await trees.head(tree) == sha


async def test_the_same_state_keeps_its_undo_ref(trees: Worktrees, tree: Tree) -> None:
    fill(tree, "a")
    first = await trees.undo(tree, "one")
    assert await trees.undo(tree, "two") == first == "refs/beadmill/undo/DEMO-1/1"
    fill(tree, "b")
    assert await trees.undo(tree, "three") == "refs/beadmill/undo/DEMO-1/2"


async def test_an_unknown_undo_ref_is_not_found(trees: Worktrees, tree: Tree) -> None:
    with pytest.raises(NotFound) as caught:
        await trees.stash_apply(tree, "refs/beadmill/undo/DEMO-1/99")
    assert caught.value.code == "NO_UNDO"


async def test_a_reset_removes_changes_hidden_by_a_mark(trees: Worktrees, tree: Tree, git: Git) -> None:
    git(Path(tree.path), "update-index", "--assume-unchanged", "README.md")
    fill(tree, "README.md", text="hidden\n")
    assert await trees.changed(tree, tree.base_commit) == ("README.md",)
    await trees.reset(tree, tree.base_commit, why="test")
    assert (Path(tree.path) / "README.md").read_text() == "sample\n"


async def test_a_reset_ends_a_merge_with_conflicts(trees: Worktrees, tree: Tree, git: Git) -> None:
    path = Path(tree.path)
    fill(tree, "README.md", text="ours\n")
    await trees.commit(tree, ["README.md"], "ours", trailers={})
    other = git(path, "commit-tree", "-p", tree.base_commit, "-m", "x", f"{tree.base_commit}^{{tree}}")
    git(path, "switch", "-qc", "other", other)
    fill(tree, "README.md", text="theirs\n")
    git(path, "commit", "-qam", "theirs")
    git(path, "switch", "-q", tree.branch)
    with pytest.raises(Exception, match="merge"):
        git(path, "merge", "other")
    await trees.reset(tree, tree.base_commit, why="test")
    assert (await trees.status(tree), (Path(tree.git_dir) / "MERGE_HEAD").exists()) == ((), False)


async def test_c24_work_on_another_branch_comes_back_to_the_ticket(trees: Worktrees, tree: Tree, git: Git) -> None:
    path = Path(tree.path)
    git(path, "switch", "-qc", "elsewhere")
    fill(tree, "a")
    git(path, "add", "a")
    git(path, "commit", "-qm", "by the agent")
    assert await trees.changed(tree, await trees.head(tree)) == ("a",)
    sha = await trees.commit(tree, ["a"], "ours", trailers={})
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/beadmill/DEMO-1"
    assert git(path, "log", "--format=%s", sha).split("\n") == ["ours", "first"]


async def test_a_deleted_branch_is_named_with_what_is_kept(trees: Worktrees, tree: Tree, git: Git) -> None:
    git(Path(tree.path), "update-ref", "-d", "refs/heads/beadmill/DEMO-1")
    with pytest.raises(Conflict) as caught:
        await trees.head(tree)
    assert caught.value.code == "BRANCH_GONE"


async def test_paths_go_back_to_a_commit_and_new_ones_go(trees: Worktrees, tree: Tree) -> None:
    fill(tree, "README.md", "new/a", "kept", text="changed\n")
    await trees.restore_paths(tree, tree.base_commit, ["README.md", "new/a"])
    assert await trees.changed(tree, tree.base_commit) == ("kept",)
    assert names(Path(tree.path)) == [".git", "README.md", "kept"]


async def test_restoring_paths_does_not_follow_a_link_out_of_the_tree(
    trees: Worktrees, tree: Tree, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("precious")
    (Path(tree.path) / "d").symlink_to(tmp_path / "outside")
    await trees.restore_paths(tree, tree.base_commit, ["d/f"])
    assert (tmp_path / "outside" / "f").read_text() == "precious"


async def test_a_diff_shows_untracked_files_and_may_be_narrowed(trees: Worktrees, tree: Tree) -> None:
    fill(tree, "a", "b")
    whole, part = await trees.diff(tree, tree.base_commit), await trees.diff(tree, tree.base_commit, paths=["b"])
    assert [line for line in whole.split("\n") if line.startswith("diff ")] == [
        "diff --git a/a b/a",
        "diff --git a/b b/b",
    ]
    assert [line for line in part.split("\n") if line.startswith("diff ")] == ["diff --git a/b b/b"]


async def test_files_are_what_is_there(trees: Worktrees, tree: Tree) -> None:
    (Path(tree.path) / "README.md").unlink()
    fill(tree, "b", "a/c")
    assert await trees.files(tree) == ("a/c", "b")


async def test_a_squash_is_one_commit_of_the_named_paths(trees: Worktrees, tree: Tree, git: Git) -> None:
    for name in ("a", "b", "scratch"):
        fill(tree, name)
        await trees.commit(tree, [name], name, trailers={})
    sha = await trees.squash(tree, tree.base_commit, ["a", "b"], "DEMO-1: title", {"Beadmill-Key": "s"})
    assert git(Path(tree.path), "log", "--format=%s", sha).split("\n") == ["DEMO-1: title", "first"]
    assert git(Path(tree.path), "ls-tree", "--name-only", sha).split("\n") == ["README.md", "a", "b"]
    assert await trees.status(tree) == (FileStatus("scratch", "??"),)
    assert await trees.squash(tree, tree.base_commit, ["a"], "again", {"Beadmill-Key": "s"}) == sha


async def test_a_squash_onto_a_stranger_is_refused(trees: Worktrees, tree: Tree, git: Git) -> None:
    stranger = git(Path(tree.path), "commit-tree", "-m", "x", f"{tree.base_commit}^{{tree}}")
    with pytest.raises(Conflict) as caught:
        await trees.squash(tree, stranger, [], "m", {})
    assert caught.value.code == "NOT_AN_ANCESTOR"


async def test_the_merge_base_follows_the_fetched_base(trees: Worktrees, tree: Tree, repo: Path, git: Git) -> None:
    (repo / "more").write_text("m")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "second")
    git(repo, "push", "-q", "origin", "main")
    assert await trees.fetch_base(tree) == git(repo, "rev-parse", "main")
    assert await trees.merge_base(tree) == tree.base_commit


async def test_a_removed_tree_leaves_branch_and_undo_ref(trees: Worktrees, tree: Tree, repo: Path, git: Git) -> None:
    fill(tree, "unsaved")
    await trees.remove(tree)
    await trees.remove(tree)
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(repo, "rev-parse", "beadmill/DEMO-1") == tree.base_commit
    assert git(repo, "show", "refs/beadmill/undo/DEMO-1/1:unsaved") == "x"


async def test_a_tree_replaced_by_a_link_is_not_removed(trees: Worktrees, tree: Tree, repo: Path) -> None:
    replace_by_link(Path(tree.path), repo)
    with pytest.raises(Refused) as caught:
        await trees.remove(tree)
    assert caught.value.code == "NOT_OUR_TREE"
    assert (repo / "README.md").exists()


async def test_a_repository_inside_the_tree_is_seen_and_set_aside_by_a_reset(
    trees: Worktrees, tree: Tree, workspace: Path, git: Git
) -> None:
    git(Path(tree.path), "init", "-q", "inner")
    fill(tree, "inner/f", text="mine")
    assert await trees.changed(tree, tree.base_commit) == ("inner",)
    await trees.reset(tree, tree.base_commit, why="test")
    assert await trees.status(tree) == ()
    assert (workspace / "runtime" / "set-aside" / "1" / "inner" / "f").read_text() == "mine"


async def test_a_file_too_big_for_an_undo_ref_is_set_aside(
    trees: Worktrees, tree: Tree, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "LIMIT", 10)
    fill(tree, "d/big", text="b" * 11)
    await trees.reset(tree, tree.base_commit, why="test")
    assert (await trees.status(tree), names(workspace / "runtime" / "set-aside" / "1" / "d")) == ((), ["big"])
