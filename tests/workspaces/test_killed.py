"""kill -9 of the process, and of the process and its git together: the next try gives the right state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from beadmill.git import locks
from beadmill.workspaces.opening import drop_record
from beadmill.workspaces.tree import lock_of
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]
ACT = Path(__file__).with_name("act_once.py")
SLOW = "while [ -e '{gate}' ]; do touch '{mark}'; sleep 0.01; done; cat"


def start(order: dict[str, Any], crash: str = "") -> subprocess.Popen[bytes]:
    env = os.environ | {"BEADMILL_TESTING": "1", "BEADMILL_CRASH": crash}
    return subprocess.Popen([sys.executable, str(ACT), json.dumps(order)], env=env, stderr=subprocess.PIPE)


def crash(order: dict[str, Any], point: str) -> int:
    with start(order, point) as process:
        return process.wait(60)


def until(true: Callable[[], bool]) -> None:
    """Waits for a condition of another process, with a deadline."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "the condition never came"
        os.sched_yield()


def working_in(*places: Path) -> list[int]:
    """The processes whose command line or folder names one of the places."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            said = (process / "cmdline").read_bytes() + os.fsencode((process / "cwd").readlink())
        except OSError:
            continue
        if process.name.isdigit() and any(os.fsencode(place) in said for place in places):
            found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


def kill_all(*places: Path) -> None:
    def gone() -> bool:
        left = working_in(*places)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    until(gone)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """While it exists, filters of the test hold git up."""
    path = tmp_path / "gate"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def held(repo: Path, git: Git, tmp_path: Path, gate: Path) -> Callable[[str], Path]:
    """Makes git stop in the middle of a checkout (smudge) or of reading a file (clean); returns the mark it sets."""

    def hold(side: str) -> Path:
        mark = tmp_path / "mark"
        git(repo, "config", f"filter.slow.{side}", SLOW.format(gate=gate, mark=mark))
        (repo / ".git" / "info").mkdir(exist_ok=True)
        (repo / ".git" / "info" / "attributes").write_text("*.slow filter=slow\n")
        return mark

    return hold


@pytest.fixture
def many(repo: Path, git: Git, gate: Path) -> None:
    """A base with files before and after the slow one."""
    gate.unlink()
    for name in ("a", "b.slow", "c"):
        (repo / name).write_text(f"{name}\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "many")
    git(repo, "push", "-q", "origin", "main")
    gate.touch()


def let_go(gate: Path) -> None:
    gate.unlink()


def order_open(repo: Path, workspace: Path) -> dict[str, Any]:
    return {"act": "open", "repository": str(repo), "workspace": str(workspace)}


async def whole(trees: Worktrees, repo: Path, workspace: Path) -> Tree:
    tree = await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main")
    assert tree.branch == "beadmill/DEMO-1"
    assert await trees.status(tree) == ()
    return tree


@pytest.mark.parametrize("point", ["git.worktree", "git.worktree@2"])
async def test_a_process_killed_around_worktree_add_gives_the_same_branch(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, *, point: str
) -> None:
    assert crash(order_open(repo, workspace), point) == -signal.SIGKILL
    await whole(trees, repo, workspace)
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2


@pytest.mark.usefixtures("many")
async def test_c23_process_and_git_killed_in_the_checkout_leave_nothing_half_made(
    trees: Worktrees, repo: Path, workspace: Path, *, gate: Path, held: Callable[[str], Path]
) -> None:
    mark = held("smudge")
    with start(order_open(repo, workspace)) as process:
        until(mark.exists)
        process.kill()
    kill_all(workspace)
    let_go(gate)
    assert not (workspace / "tree" / "c").exists()
    tree = await whole(trees, repo, workspace)
    assert await trees.files(tree) == ("README.md", "a", "b.slow", "c")


@pytest.mark.usefixtures("many")
async def test_a_git_that_outlives_its_process_is_waited_for(
    repo: Path, workspace: Path, *, gate: Path, held: Callable[[str], Path]
) -> None:
    mark = held("smudge")
    with start(order_open(repo, workspace)) as process:
        until(mark.exists)
        process.kill()
    lock = lock_of(workspace, repo / ".git")
    with pytest.raises(Exception, match="busy") as caught:
        async with locks.locked(lock, within=0.05):
            raise AssertionError
    assert caught.value.code == "REPOSITORY_BUSY"  # type: ignore[attr-defined]
    let_go(gate)
    async with locks.locked(lock):
        assert (workspace / "tree" / "c").read_text() == "c\n"


@pytest.mark.parametrize("point", ["git.commit", "git.commit@2"])
async def test_a_process_killed_around_a_commit_commits_once(
    trees: Worktrees, tree: Tree, git: Git, *, point: str
) -> None:
    (Path(tree.path) / "a").write_text("a")
    assert crash({"act": "commit", "tree": asdict(tree), "paths": ["a"]}, point) == -signal.SIGKILL
    sha = await trees.commit(tree, ["a"], "one", trailers={"Beadmill-Key": "k"})
    assert git(Path(tree.path), "log", "--format=%s").split("\n") == ["one", "first"]
    assert (await trees.head(tree), await trees.status(tree)) == (sha, ())


async def test_process_and_git_killed_in_a_commit_commit_once(
    trees: Worktrees, tree: Tree, *, gate: Path, held: Callable[[str], Path], git: Git
) -> None:
    mark = held("clean")
    (Path(tree.path) / "a.slow").write_text("a")
    with start({"act": "commit", "tree": asdict(tree), "paths": ["a.slow"]}) as process:
        until(mark.exists)
        process.kill()
    kill_all(Path(tree.path), Path(tree.git_dir))
    let_go(gate)
    await trees.commit(tree, ["a.slow"], "one", trailers={"Beadmill-Key": "k"})
    assert git(Path(tree.path), "log", "--format=%s").split("\n") == ["one", "first"]
    assert await trees.status(tree) == ()


@pytest.mark.parametrize("point", ["git.undo", "git.reset", "git.reset@2"])
async def test_a_process_killed_around_a_reset_loses_nothing(
    trees: Worktrees, tree: Tree, git: Git, *, point: str
) -> None:
    (Path(tree.path) / "a").write_text("precious")
    assert crash({"act": "reset", "tree": asdict(tree), "to": tree.base_commit}, point) == -signal.SIGKILL
    await trees.reset(tree, tree.base_commit, why="test")
    assert await trees.status(tree) == ()
    assert git(Path(tree.path), "show", "refs/beadmill/undo/DEMO-1/1:a") == "precious"


async def test_a_lock_of_a_dead_git_is_removed(trees: Worktrees, tree: Tree) -> None:
    lock = Path(tree.git_dir) / "index.lock"
    lock.touch()
    await trees.reset(tree, tree.base_commit, why="test")
    assert not lock.exists()


async def test_a_lock_that_a_process_has_open_is_left_and_named(
    trees: Worktrees, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.git.run.RETRIES", (0.01,))
    lock = Path(tree.git_dir) / "index.lock"
    with lock.open("w"), pytest.raises(Exception, match="lock that did not go away") as caught:
        await trees.reset(tree, tree.base_commit, why="test")
    assert caught.value.details == {"lock": str(lock)}  # type: ignore[attr-defined]
    assert lock.exists()


async def test_c26_a_lock_of_the_users_checkout_is_never_removed(trees: Worktrees, tree: Tree, repo: Path) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    await trees.reset(tree, tree.base_commit, why="test")
    assert lock.exists()


@pytest.mark.parametrize("point", ["git.worktree", "git.worktree@2"])
async def test_a_process_killed_while_it_repairs_a_tree_keeps_its_files(
    trees: Worktrees, tree: Tree, repo: Path, workspace: Path, *, point: str
) -> None:
    (Path(tree.path) / "unsaved").write_text("precious")
    drop_record(Path(tree.git_dir))
    assert crash(order_open(repo, workspace), point) == -signal.SIGKILL
    again = await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main")
    assert await trees.changed(again, tree.base_commit) == ("unsaved",)


async def test_a_record_that_a_killed_git_only_began_is_removed(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    assert crash(order_open(repo, workspace), "git.worktree") == -signal.SIGKILL
    begun = repo / ".git" / "worktrees" / "tree"
    begin_record(begun)
    tree = await whole(trees, repo, workspace)
    assert (tree.git_dir, (begun / "locked").exists()) == (str(begun), False)
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2


def begin_record(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "locked").write_text("initializing")
