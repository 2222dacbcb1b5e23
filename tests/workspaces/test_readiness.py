"""What a worktree holds otherwise than the checkout: found, named with what to do, and never made up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories_for_tests import with_submodule

from beadmill.errors import Refused
from beadmill.workspaces import filling, readiness
from beadmill.workspaces.readiness import Point
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]


def pointer(content: bytes) -> str:
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


async def opened(trees: Worktrees, repo: Path, workspace: Path) -> Tree:
    return await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main")


async def points(tree: Tree, *failed: filling.Failed) -> dict[str, Point]:
    return {point.name: point for point in await readiness.look(tree, failed)}


def publish(repo: Path, git: Git, **files: str) -> None:
    for name, text in files.items():
        place = repo / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "more")
    git(repo, "push", "-q", "origin", "main")


@pytest.fixture
def outer(repo: Path) -> Path:
    """The checkout, with a submodule in vendor/sub that lies beside it and is not filled."""
    with_submodule(repo)
    return repo


async def test_a_plain_repository_has_nothing_to_tell(tree: Tree) -> None:
    found = await readiness.look(tree)
    assert [(point.name, point.result) for point in found] == [
        (name, "pass") for name in ("submodules", "LFS", "sparse checkout", "history", "env files", "hooks")
    ]
    assert readiness.told(found) == ""


async def test_c08_submodules_are_filled_before_coding_and_the_checkout_stays_as_it_was(
    trees: Worktrees, outer: Path, workspace: Path, photograph: Callable[[Path], dict[str, str]]
) -> None:
    before = photograph(outer)
    tree = await opened(trees, outer, workspace)
    assert await filling.set_up(tree) == ()
    assert (Path(tree.path) / "vendor/sub/file").read_text() == "needed\n"
    assert (await points(tree))["submodules"] == Point("submodules", "pass", "set up in the worktree: vendor/sub")
    assert (photograph(outer), await trees.status(tree)) == (before, ())


async def test_c08_a_submodule_that_cannot_be_had_is_named_with_its_address_and_the_way_out(
    trees: Worktrees, outer: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "inner").rename(tmp_path / "gone")
    tree = await opened(trees, outer, workspace)
    (failed,) = await filling.set_up(tree)
    found = (await points(tree, failed))["submodules"]
    assert (failed.path, found.result, found.paths) == ("vendor/sub", "fail", ("vendor/sub",))
    assert found.said.startswith("vendor/sub from ../inner: git submodule failed")
    assert "git submodule update --init -- vendor/sub" in found.next


async def test_a_submodule_that_git_may_not_clone_says_which_setting(
    trees: Worktrees, outer: Path, workspace: Path, tmp_path: Path, git: Git
) -> None:
    git(tmp_path, "config", "--global", "protocol.file.allow", "user")
    (failed,) = await filling.set_up(await opened(trees, outer, workspace))
    assert failed.next == "allow submodules from this machine: git config --global protocol.file.allow always"


async def test_what_the_checkout_has_of_a_submodule_is_used(
    trees: Worktrees, outer: Path, workspace: Path, git: Git
) -> None:
    git(outer, "submodule", "--quiet", "update", "--init")
    tree = await opened(trees, outer, workspace)
    assert await filling.set_up(tree) == ()
    own = Path(tree.git_dir) / "modules/vendor/sub"
    assert (own / "HEAD").is_file()
    assert not (own / "objects/info/alternates").exists()


async def test_a_submodule_that_a_killed_git_began_is_begun_again(
    trees: Worktrees, outer: Path, workspace: Path
) -> None:
    tree = await opened(trees, outer, workspace)
    begun = Path(tree.git_dir) / "modules/vendor/sub"
    begun.mkdir(parents=True)
    (begun / "HEAD").write_text("ref: refs/heads/main\n")
    assert await filling.set_up(tree) == ()
    assert (Path(tree.path) / "vendor/sub/file").read_text() == "needed\n"


async def test_a_filled_submodule_is_not_touched_again(trees: Worktrees, outer: Path, workspace: Path) -> None:
    tree = await opened(trees, outer, workspace)
    await filling.set_up(tree)
    (Path(tree.path) / "vendor/sub/file").write_text("work\n")
    assert await filling.set_up(tree) == ()
    assert (Path(tree.path) / "vendor/sub/file").read_text() == "work\n"


async def test_a_submodule_that_the_user_leaves_out_stays_out_and_is_named(
    trees: Worktrees, outer: Path, workspace: Path, git: Git
) -> None:
    git(outer, "config", "submodule.vendor/sub.update", "none")
    tree = await opened(trees, outer, workspace)
    assert await filling.set_up(tree) == ()
    found = (await points(tree))["submodules"]
    assert (found.result, found.paths) == ("warning", ("vendor/sub",))


async def test_a_repository_that_gitmodules_does_not_name_is_told(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{git(repo, 'rev-parse', 'HEAD')},stray")
    git(repo, "commit", "-qm", "stray")
    git(repo, "push", "-q", "origin", "main")
    tree = await opened(trees, repo, workspace)
    assert await filling.set_up(tree) == ()
    found = (await points(tree))["submodules"]
    assert (found.result, found.paths) == ("warning", ("stray",))


# --- LFS ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def large(repo: Path, git: Git) -> Path:
    """a.bin is a pointer, b.bin content that never was in LFS."""
    publish(repo, git, **{"a.bin": pointer(b"content"), "b.bin": "raw\n", ".gitattributes": "*.bin filter=lfs -text\n"})
    return repo


async def test_c09_files_of_lfs_that_are_pointers_are_named(trees: Worktrees, large: Path, workspace: Path) -> None:
    found = (await points(await opened(trees, large, workspace)))["LFS"]
    assert (found.result, found.paths) == ("warning", ("a.bin",))
    assert found.said == "1 of 2 files of LFS are pointers here, without their content: a.bin"


@pytest.mark.parametrize("written", ["made by an agent\n", pointer(b"other"), pointer(b"content") + "\n"])
async def test_c09_a_file_of_lfs_is_not_committed_with_raw_content_or_a_pointer_to_nothing(
    trees: Worktrees, large: Path, workspace: Path, written: str
) -> None:
    tree = await opened(trees, large, workspace)
    (Path(tree.path) / "a.bin").write_text(written)
    with pytest.raises(Refused, match=r"'a\.bin' is kept in LFS") as caught:
        await trees.commit(tree, ["a.bin"], "a", trailers={})
    assert (caught.value.code, await trees.head(tree)) == ("LFS_CONTENT", tree.base_commit)


async def test_c09_untouched_pointers_are_no_change(trees: Worktrees, large: Path, workspace: Path) -> None:
    tree = await opened(trees, large, workspace)
    (Path(tree.path) / "a.bin").touch()
    (Path(tree.path) / "b.bin").write_text("raw as before\n")
    made = await trees.commit(tree, ["a.bin", "b.bin"], "b", trailers={})
    assert await trees.between(tree, tree.base_commit, made) == ("b.bin",)


FAKE = """#!/bin/sh
# clean: content in, pointer out, the content kept where git-lfs keeps it; smudge --skip: as it is
case $1 in
clean) f=$(mktemp); cat > $f; if grep -q '^version https://git-lfs' $f; then cat $f; exit; fi
  oid=$(sha256sum $f | cut -c1-64); d=$GIT_DIR/../../lfs/objects/$(echo $oid | cut -c1-2)/$(echo $oid | cut -c3-4)
  mkdir -p $d; cp $f $d/$oid
  printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $oid $(stat -c %s $f);;
*) echo "$*" >> "$(dirname "$0")/log"; cat;;
esac
"""


@pytest.fixture
def asked(large: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Path:
    """git-lfs on the PATH, set up in the checkout to leave pointers; the file says what it was asked for."""
    git(large, "rm", "-q", "b.bin")
    publish(large, git)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git-lfs").write_text(FAKE)
    (tmp_path / "bin/git-lfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    git(large, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(large, "config", "filter.lfs.smudge", "git-lfs smudge --skip -- %f")
    return tmp_path / "bin/log"


async def test_c09_git_lfs_does_as_the_configuration_says_and_new_content_is_committed_as_a_pointer(
    trees: Worktrees, large: Path, workspace: Path, asked: Path, git: Git
) -> None:
    tree = await opened(trees, large, workspace)
    assert set(asked.read_text().splitlines()) == {"smudge --skip -- a.bin"}  # noqa: ASYNC240 - one look
    (Path(tree.path) / "c.bin").write_bytes(b"new content")
    made = await trees.commit(tree, ["c.bin"], "c", trailers={})
    assert git(large, "show", f"{made}:c.bin") + "\n" == pointer(b"new content")


# --- sparse, shallow, env -------------------------------------------------------------------------------------------
async def test_a_sparse_checkout_is_followed_and_what_is_outside_survives_a_commit(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    publish(repo, git, web__a="a\n", api__b="b\n")
    git(repo, "sparse-checkout", "set", "web")
    tree = await opened(trees, repo, workspace)
    found = (await points(tree))["sparse checkout"]
    assert (found.result, found.paths, (Path(tree.path) / "api").exists()) == ("warning", ("web",), False)
    (Path(tree.path) / "web/a").write_text("changed\n")
    assert await trees.changed(tree, tree.base_commit) == ("web/a",)
    made = await trees.commit(tree, ["web/a"], "a", trailers={})
    assert git(repo, "show", f"{made}:api/b") == "b"


async def test_a_shallow_clone_is_said_with_the_commit_that_changes_are_compared_with(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    publish(repo, git, more="more\n")
    git(repo.parent, "clone", "-q", "--depth", "1", (repo.parent / "origin.git").as_uri(), "shallow")
    tree = await opened(trees, repo.parent / "shallow", workspace)
    found = (await points(tree))["history"]
    assert (found.result, tree.base_commit[:12] in found.said) == ("warning", True)


async def test_c10_ignored_env_files_are_named_and_none_is_made_from_an_example(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    publish(repo, git, **{".gitignore": ".env\n.env.local\nnode_modules/\n", ".env.example": "KEY=\n", "web/a": "a"})
    for name in (".env", "web/.env.local", "node_modules/x/.env", "other.env"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("KEY=secret\n")
    tree = await opened(trees, repo, workspace)
    found = (await points(tree))["env files"]
    assert (found.result, found.paths) == ("warning", (".env", "other.env", "web/.env.local"))
    assert ("secret" in f"{found}", (Path(tree.path) / ".env").exists()) == (False, False)
