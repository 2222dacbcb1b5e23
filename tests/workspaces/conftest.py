"""A ticket's worktree, and how the user's checkout is photographed byte by byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.workspaces.worktrees import Tree, Worktrees


@pytest.fixture
def trees() -> Worktrees:
    return Worktrees()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "work spaces" / "demo" / "DEMO-1"


@pytest.fixture
async def tree(trees: Worktrees, repo: Path, workspace: Path) -> Tree:
    return await trees.open(str(repo), str(workspace), branch="beadmill/DEMO-1", base="main")


@pytest.fixture
def photograph() -> Callable[[Path], dict[str, str]]:
    """Every file of a checkout but git's objects, its record of worktrees, and refs of ours, with mode and content."""
    ours = (
        ".git/objects/",
        ".git/worktrees/",
        "refs/beadmill/",
        "refs/heads/beadmill/",
        "refs/remotes/origin/beadmill/",
    )

    def take(checkout: Path) -> dict[str, str]:
        found = {}
        for path in sorted(checkout.rglob("*")):
            name = path.relative_to(checkout).as_posix()
            if path.is_file() and not any(part in f"{name}/" for part in ours):
                found[name] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        return found

    return take
