"""Whatever an agent plants, no git command of Beadmill's runs it: every act on a worktree, after every trick."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beadmill.errors import Refused
from beadmill.git import trust
from beadmill.git.run import discover
from beadmill.workspaces import attach, guard
from beadmill.workspaces.landing import land
from beadmill.workspaces.worktrees import Tree, Worktrees
from tests.workspaces.planted import INNER, OFF, STOPS, evil_program, script

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path) -> Iterator[None]:
    trust.keep(tmp_path / "trust")
    yield
    trust.keep(None)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return evil_program(tmp_path)


def plant(tree: Tree, text: str, evil: Path) -> None:
    done = script(text, evil=evil, repository=Path(tree.repository))
    subprocess.run(["sh", "-c", done], cwd=tree.path, check=False, capture_output=True)


async def everything(trees: Worktrees, tree: Tree) -> None:
    """All that Beadmill does to a tree between a session and a merge."""
    await trees.mend(tree.repository, tree.workspace, branch=tree.branch, base="main", start=tree.base_commit)
    (Path(tree.path) / "a.py").write_text("a = 1\n")
    (Path(tree.path) / "README.md").write_text("more\n")
    paths = await trees.changed(tree, tree.base_commit)
    await trees.diff(tree, tree.base_commit)
    await trees.tree_hash(tree)
    wanted = [path for path in paths if path in ("a.py", "README.md")]
    made = await land(tree, wanted, "bead(a): a", {"Beadmill-Key": "k"}, tree.base_commit)
    assert made
    (Path(tree.path) / "junk").write_text("junk")
    await trees.reset(tree, made, why="test")
    head = await trees.squash(tree, tree.base_commit, wanted, "one", {"Beadmill-Key": "s"})
    await trees.fetch_base(tree)
    await trees.push(tree, expected_remote=None)
    await guard.snapshot(tree.repository)
    await attach.inspect(tree.repository)
    assert await trees.head(tree) == head


@pytest.mark.parametrize("trick", OFF)
async def test_what_is_switched_off_for_good_runs_nothing_and_hinders_nothing(
    trees: Worktrees, tree: Tree, evil: Path, git: Git, *, trick: str
) -> None:
    plant(tree, OFF[trick], evil)
    await everything(trees, tree)
    assert not evil.with_name("ran").exists()
    assert (Path(tree.path) / ".git").read_text() == f"gitdir: {tree.git_dir}\n"
    origin = Path(tree.repository).parent / "origin.git"
    assert git(origin, "ls-tree", "--name-only", tree.branch).split("\n") == ["README.md", "a.py"]


@pytest.mark.parametrize("trick", STOPS)
async def test_what_could_run_a_program_is_refused_until_it_is_gone(
    trees: Worktrees, tree: Tree, evil: Path, *, trick: str
) -> None:
    config = tree.common / "config"
    before = config.read_text()
    plant(tree, STOPS[trick], evil)
    with pytest.raises(Refused, match="the repository's own git settings changed") as caught:
        await everything(trees, tree)
    assert (caught.value.code, evil.with_name("ran").exists()) == ("REPOSITORY_SETTINGS_CHANGED", False)
    config.write_text(before)
    (Path(tree.git_dir) / "config.worktree").unlink(missing_ok=True)
    await everything(trees, tree)
    assert not evil.with_name("ran").exists()


async def test_settings_that_a_person_vouches_for_are_used(trees: Worktrees, tree: Tree, git: Git) -> None:
    git(Path(tree.repository), "config", "filter.mine.clean", "tr a-z A-Z")
    git(Path(tree.repository), "config", "credential.helper", "store")
    with pytest.raises(Refused, match=r"credential\.helper, filter\.mine\.clean"):
        await trees.status(tree)
    await attach.trust(tree.repository)
    (Path(tree.path) / ".gitattributes").write_text("* filter=mine\n")
    (Path(tree.path) / "a").write_text("loud")
    await trees.commit(tree, ["a"], "a", trailers={})
    assert git(Path(tree.repository), "show", f"{tree.branch}:a") == "LOUD"


async def test_attaching_names_settings_that_nobody_vouches_for(repo: Path, git: Git) -> None:
    await attach.inspect(repo)
    git(repo, "config", "core.sshCommand", "evil")
    (problem,) = (await attach.inspect(repo)).problems
    assert (problem.code, "core.sshcommand" in problem.message) == ("REPOSITORY_SETTINGS_CHANGED", True)


async def test_other_settings_may_change_at_any_time(repo: Path, git: Git) -> None:
    here = await discover(repo)
    await here.git("status")
    git(repo, "config", "branch.main.remote", "other")
    git(repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    assert (await here.git("rev-parse", "HEAD")).text


async def test_an_included_file_that_changes_is_noticed(repo: Path, git: Git, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("[color]\n\tui = auto\n")
    git(repo, "config", "include.path", str(tmp_path / "more"))
    here = await discover(repo)
    await here.git("status")
    (tmp_path / "more").write_text('[filter "x"]\n\tclean = evil\n')
    with pytest.raises(Refused, match=r"filter\.x\.clean"):
        await here.git("status")


async def test_a_repository_in_the_place_of_a_submodule_runs_nothing(
    trees: Worktrees, repo: Path, workspace: Path, evil: Path, git: Git
) -> None:
    sha = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{sha},sub")
    git(repo, "commit", "-qm", "a submodule")
    git(repo, "push", "-q")
    tree = await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main")
    plant(tree, INNER, evil)
    await everything(trees, tree)
    assert not evil.with_name("ran").exists()
