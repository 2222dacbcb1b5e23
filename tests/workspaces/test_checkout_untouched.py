"""Nothing of ours in the user's repository: the checkout is the same, byte by byte, after a whole ticket."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.forges.contract import ChangeDraft
from beadmill.forges.local import LocalForge
from beadmill.workspaces import attach, guard
from beadmill.workspaces.landing import land
from beadmill.workspaces.worktrees import Worktrees

Git = Callable[..., str]
Photograph = Callable[[Path], dict[str, str]]


def dirty_checkout(place: Path, git: Git) -> Path:
    """Staged, changed and untracked files, hooks that would shout, a stash, an own setting."""
    origin = place.parent / f"{place.name} origin.git"
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    (place / "tracked ü.txt").write_text("one\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    git(place, "remote", "add", "origin", str(origin))
    git(place, "push", "-qu", "origin", "main")
    (place / "tracked ü.txt").write_text("stashed\n")
    git(place, "stash")
    (place / "tracked ü.txt").write_text("changed\n")
    (place / "staged").write_text("staged\n")
    git(place, "add", "staged")
    (place / "untracked 中文").write_text("mine\n")
    for name in ("pre-commit", "post-checkout", "pre-push", "reference-transaction", "post-index-change"):
        (place / ".git" / "hooks" / name).write_text("#!/bin/sh\ntouch ../hook-ran hook-ran\nexit 1\n")
        (place / ".git" / "hooks" / name).chmod(0o755)
    return place


async def ticket(checkout: Path, workspace: Path) -> str:
    trees, forge = Worktrees(), LocalForge(checkout)
    await attach.inspect(checkout)
    tree = await trees.open(str(checkout), str(workspace), branch="beadmill/DEMO-1", base="")
    (Path(tree.path) / "new ü").write_text("n")
    sha = await land(tree, ["new ü"], "bead(a): new", {"Beadmill-Key": "k"}, tree.base_commit)
    assert sha
    (Path(tree.path) / "junk").write_text("n")
    await trees.reset(tree, sha, why="test")
    head = await trees.squash(tree, await trees.merge_base(tree), ["new ü"], "DEMO-1", {"Beadmill-Key": "s"})
    await trees.push(tree, expected_remote=None)
    change = await forge.put(ChangeDraft("t", "b", tree.branch, tree.base, head))
    merged = await forge.merge(change.ref, expected_head=head)
    await trees.fetch_base(tree)
    await trees.remove(tree)
    return merged.sha


@pytest.mark.parametrize("name", ["checkout 1", "with space ü", "中文"])
async def test_a_whole_ticket_leaves_the_checkout_as_it_was(
    tmp_path: Path, git: Git, photograph: Photograph, *, name: str
) -> None:
    checkout = dirty_checkout(tmp_path / name, git)
    before, seen = photograph(checkout), await guard.snapshot(checkout)
    merged = await ticket(checkout, tmp_path / "work" / "DEMO-1")
    assert photograph(checkout) == before
    assert guard.compare(seen, await guard.snapshot(checkout)) == ()
    assert git(tmp_path / f"{name} origin.git", "rev-parse", "main") == merged


def by_head(checkout: Path, git: Git) -> None:
    git(checkout, "switch", "-qc", "other")


def by_file(checkout: Path, git: Git) -> None:
    (checkout / "untracked 中文").write_text("overwritten\n")


def by_index(checkout: Path, git: Git) -> None:
    git(checkout, "reset", "-q")


def by_hook(checkout: Path, git: Git) -> None:
    (checkout / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")


def by_config(checkout: Path, git: Git) -> None:
    git(checkout, "config", "core.fsmonitor", "/tmp/evil")


def by_tag(checkout: Path, git: Git) -> None:
    git(checkout, "tag", "v1")


@pytest.mark.parametrize(
    ("touch", "said"),
    [
        (by_file, ("the file 'untracked 中文' changed",)),
        (by_index, ("the index changed", "the file 'staged' changed")),
        (by_hook, ("the hooks changed",)),
        (by_config, ("the configuration changed",)),
        (by_tag, ("the ref refs/tags/v1 changed",)),
    ],
)
async def test_the_guard_names_what_was_touched(
    tmp_path: Path, git: Git, *, touch: Callable[[Path, Git], None], said: tuple[str, ...]
) -> None:
    checkout = dirty_checkout(tmp_path / "checkout 1", git)
    for name in ("reference-transaction", "post-index-change"):
        (checkout / ".git" / "hooks" / name).unlink()
    before = await guard.snapshot(checkout)
    touch(checkout, git)
    assert guard.compare(before, await guard.snapshot(checkout)) == said


async def test_the_guard_names_a_moved_head(repo: Path, git: Git) -> None:
    before, sha = await guard.snapshot(repo), git(repo, "rev-parse", "HEAD")
    by_head(repo, git)
    assert guard.compare(before, await guard.snapshot(repo)) == (
        f"HEAD moved from refs/heads/main {sha} to refs/heads/other {sha}",
        "the ref refs/heads/other changed",
    )


async def test_branches_of_tickets_are_not_the_users(repo: Path, git: Git) -> None:
    before = await guard.snapshot(repo, ours=["feature/DEMO-1"])
    for name in ("beadmill/DEMO-2", "feature/DEMO-1"):
        git(repo, "branch", name)
        git(repo, "push", "-q", "origin", name)
    assert guard.compare(before, await guard.snapshot(repo, ours=["feature/DEMO-1"])) == ()
