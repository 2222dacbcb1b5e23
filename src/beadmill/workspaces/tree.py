"""The value Tree and what every act on one needs: its repository, its lock, its scratch folder, its marker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from beadmill.errors import Conflict
from beadmill.git import locks
from beadmill.git.run import Repo


@dataclass(frozen=True, slots=True)
class Tree:
    """A worktree of ours. Paths are absolute; ``git_dir`` is git's record of it; ``base_commit`` is where it began.
    ``owner`` is the ticket's workspace when this is one of its lanes, "" when it is the ticket's own tree."""

    path: str
    repository: str
    git_dir: str
    branch: str
    base: str
    base_commit: str
    workspace: str
    warnings: tuple[str, ...] = ()
    owner: str = ""

    @property
    def there(self) -> bool:
        """Both its folder and git's record of it exist."""
        return Path(self.path).is_dir() and Path(self.git_dir).is_dir()

    @property
    def ticket(self) -> Path:
        """The workspace of the ticket, also for a lane."""
        return Path(self.owner or self.workspace)

    @property
    def key(self) -> str:
        return self.ticket.name

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    @property
    def undo_prefix(self) -> str:
        return f"refs/beadmill/undo/{self.key}"

    @property
    def scratch(self) -> Path:
        return Path(self.workspace) / "runtime"

    @property
    def common(self) -> Path:
        return Path(self.git_dir).parent.parent  # git keeps records as <common>/worktrees/<name>


@dataclass(frozen=True, slots=True)
class FileStatus:
    """``code`` is git's two letters: index, then worktree; ``??`` = untracked."""

    path: str
    code: str


def repo_of(tree: Tree) -> Repo:
    return Repo(Path(tree.git_dir), Path(tree.path), tree.common)


def common_of(tree: Tree) -> Repo:
    """The repository without the tree, for what must work when the tree is damaged."""
    return Repo(tree.common, None)


def lock_of(ticket: Path, common: Path) -> Path:
    """One lock per repository, in the folder that holds the tickets' workspaces."""
    name = hashlib.sha256(os.fsencode(common.resolve())).hexdigest()[:16]
    return ticket.parent / ".locks" / f"{name}.lock"


@asynccontextmanager
async def acting(tree: Tree) -> AsyncIterator[Repo]:
    """Holds the repository while something is changed, and removes lock files of our own dead git first.

    Raises Conflict when the tree is not there any more.
    """
    if not tree.there:
        raise Conflict(
            f"the worktree {tree.path} is gone",
            code="TREE_GONE",
            kept=f"The branch {tree.branch} and the refs below {tree.undo_prefix} are in the repository.",
            next="Retry: the worktree is made again from its branch.",
        )
    async with locks.locked(lock_of(tree.ticket, tree.common)):
        sweep(tree)
        yield repo_of(tree)


def sweep(tree: Tree) -> tuple[Path, ...]:
    """Locks that only this tree's git can have made: its record's own, its branch's and its undo refs'."""
    undo = tree.common / tree.undo_prefix
    ours = [*Path(tree.git_dir).glob("*.lock"), tree.common / f"{tree.ref}.lock", *undo.glob("*.lock")]
    return locks.sweep(ours, tree=Path(tree.path), git_dir=Path(tree.git_dir))


def marker_of(workspace: Path, name: str) -> Path:
    return workspace / "runtime" / f"{name}.json"


def write_json(path: Path, value: object) -> None:
    """Whole or not at all, and on the disk when it returns."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump(value, file, ensure_ascii=True)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_marker(tree: Tree) -> None:
    write_json(marker_of(Path(tree.workspace), tree.name), asdict(tree))


def read_marker(workspace: Path, name: str) -> Tree | None:
    """None when there is none. Raises Conflict when it cannot be read: it is never guessed."""
    path = marker_of(workspace, name)
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text())
        return Tree(**data | {"warnings": tuple(data["warnings"])})
    except (ValueError, TypeError, KeyError) as error:
        raise Conflict(
            f"the marker {path} cannot be read: {error}",
            code="BAD_MARKER",
            kept="The worktree and its branch are untouched.",
            next="Restore the file from a backup, or move it and the worktree away.",
        ) from error
