"""Workspace inputs: local files a person approved to be copied from their checkout into the worktree (reference §7.3)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import anyio.to_thread

from beadmill.artifacts.setup import WorkspaceInput
from beadmill.errors import Blocked
from beadmill.git.run import Repo
from beadmill.proof.noise import FOLDERS
from beadmill.workspaces.tree import Tree, repo_of

MAX_FILES = 10_000
MAX_BYTES = 100 * 1024 * 1024
_OURS = frozenset({".git", ".beadmill"})


@dataclass(frozen=True, slots=True)
class Copied:
    """Files relative to the worktree, sorted, and why others were refused."""

    files: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


async def copy(tree: Tree, inputs: Sequence[WorkspaceInput]) -> Copied:
    """Idempotent. A refused input is named with its reason and copies nothing."""
    files: list[str] = []
    refused: list[str] = []
    for item in inputs:
        problem = await _problem(tree, item)
        if not problem:
            found = await anyio.to_thread.run_sync(_measure, Path(tree.repository), item)
            problem = found if isinstance(found, str) else await _overwrites(tree, found)
            if not problem:
                assert not isinstance(found, str)
                await anyio.to_thread.run_sync(_copy, Path(tree.repository), Path(tree.path), found)
                files += found
        if problem:
            refused.append(f"{item.path}: {problem}")
    return Copied(tuple(sorted(files)), tuple(refused))


async def again(tree: Tree, files: Sequence[str]) -> None:
    """Puts copied inputs back that a reset or a session removed. A source that is gone by now stays gone."""
    missing = [f for f in files if not (Path(tree.path) / f).exists() and (Path(tree.repository) / f).is_file()]
    await anyio.to_thread.run_sync(_copy, Path(tree.repository), Path(tree.path), missing)


async def _problem(tree: Tree, item: WorkspaceInput) -> str:
    path = PurePosixPath(item.path)
    if (
        path.is_absolute()
        or ".." in path.parts
        or not path.parts
        or item.path.startswith(":")
        or _OURS & set(path.parts)
    ):
        return "the path does not lie inside the checkout"
    if any(part in FOLDERS for part in path.parts):
        return "it can be rebuilt (dependencies, caches, build output), so it is not copied"
    problem = await anyio.to_thread.run_sync(_not_there, Path(tree.repository), item)
    if problem:
        return problem
    checkout = Repo(
        Path(tree.git_dir), Path(tree.repository), tree.common
    )  # the worktree's index, the checkout's rules
    env = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore knows no literal mode; the path begins with no colon
    asked = await checkout.git("check-ignore", "-q", "--no-index", "--", item.path, ok=(0, 1), env=env)
    status = "ignored" if asked.code == 0 else "untracked"
    return "" if status == item.source_status else f"it is {status}, not {item.source_status}"


def _not_there(checkout: Path, item: WorkspaceInput) -> str:
    source = checkout / item.path
    if source.parent.resolve() != checkout.resolve() / PurePosixPath(item.path).parent or source.is_symlink():
        return "it is, or lies behind, a symbolic link"
    if not (source.is_dir() if item.kind == "directory" else source.is_file()):
        return f"there is no such {item.kind} in the checkout"
    return ""


async def _overwrites(tree: Tree, files: Sequence[str]) -> str:
    tracked = set((await repo_of(tree).git("ls-files", "-z", "--cached")).fields)
    clash = next((file for file in files if file in tracked), "")
    return f"{clash} is a tracked file and is never overwritten" if clash else ""


def _measure(checkout: Path, item: WorkspaceInput) -> list[str] | str:
    """The files of one input, or why it is refused."""
    files: list[str] = []
    total = 0
    for entry in _walk(checkout / item.path):
        if entry.is_symlink():
            return f"{entry.relative_to(checkout)} is a symbolic link"
        files.append(entry.relative_to(checkout).as_posix())
        total += entry.stat().st_size
        if not item.allow_large_copy and (len(files) > MAX_FILES or total > MAX_BYTES):
            return f"it holds more than {MAX_FILES} files or {MAX_BYTES // 1024 // 1024} MiB"
    return files


def _walk(path: Path) -> Iterator[Path]:
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for entry in sorted(os.scandir(path), key=lambda e: e.name):
        if entry.name not in _OURS and entry.name not in FOLDERS:
            yield from _walk(Path(entry.path))


def _copy(checkout: Path, tree: Path, files: Sequence[str]) -> None:
    for file in files:
        target = tree / file
        if tree.resolve() not in target.parent.resolve().parents and target.parent.resolve() != tree.resolve():
            raise Blocked("WORKSPACE_INPUT_ESCAPES", f"{file} would be written outside the worktree")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        shutil.copy2(checkout / file, part, follow_symlinks=False)
        part.replace(target)
