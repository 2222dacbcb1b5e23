"""The readiness contract: what a worktree of this repository holds otherwise than the checkout does, each with its
result and what to do. Nothing here changes anything."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import anyio.to_thread

from beadmill.git import lfs
from beadmill.git.run import Repo, discover
from beadmill.workspaces import filling, guard
from beadmill.workspaces.filling import Failed, Submodule
from beadmill.workspaces.tree import Tree, repo_of

SHOWN: Final = 10  # paths that a line names
ENV: Final = (".env", ".env.*", "*.env", ".envrc")
HOOKS: Final = frozenset(
    {
        *(
            "pre-commit",
            "prepare-commit-msg",
            "commit-msg",
            "post-commit",
            "post-checkout",
            "post-merge",
            "post-rewrite",
        ),
        *("pre-push", "pre-rebase", "reference-transaction", "post-index-change"),
    }
)
EXAMPLES: Final = ("*.example", "*.sample", "*.template", "*.dist", "*.defaults")


@dataclass(frozen=True, slots=True)
class Point:
    """One line. ``result`` is pass, warning or fail; ``paths`` are all that the words mean."""

    name: str
    result: str
    said: str
    next: str = ""
    paths: tuple[str, ...] = ()


async def look(tree: Tree, failed: Sequence[Failed] = ()) -> tuple[Point, ...]:
    """``failed`` are the submodules that could not be set up. Raises GitFailed, Refused (settings nobody vouches for)."""
    repo, checkout = repo_of(tree), await discover(Path(tree.repository))
    return (
        _submodules(await filling.listed(repo), failed),
        await _lfs(repo),
        await _sparse(repo, checkout),
        await _shallow(repo, tree),
        await _env(repo, checkout),
        await _hooks(checkout),
    )


def _submodules(found: Sequence[Submodule], failed: Sequence[Failed]) -> Point:
    name = "submodules"
    if failed:
        return Point(
            name,
            "fail",
            "; ".join(one.said for one in failed),
            "; ".join(dict.fromkeys(one.next for one in failed)),
            tuple(one.path for one in failed),
        )
    stray = tuple(one.path for one in found if not one.name)
    empty = tuple(one.path for one in found if one.name and not one.filled)
    if stray:
        said = f"{_shown(stray)}: recorded as a repository, but .gitmodules does not say where it comes from"
        return Point(name, "warning", said, "add it to .gitmodules, or take it out of git", stray)
    if empty:
        said = f"{_shown(empty)}: left empty, as the repository or your configuration says"
        return Point(name, "warning", said, "nothing to do when no command needs it", empty)
    if found:
        return Point(name, "pass", f"set up in the worktree: {_shown([one.path for one in found])}")
    return Point(name, "pass", "there are none")


async def _lfs(repo: Repo) -> Point:
    assert repo.work_tree is not None
    files = await lfs.tracked(repo)
    root = repo.work_tree
    pointers = await anyio.to_thread.run_sync(lambda: tuple(p for p in files if lfs.is_pointer(root / p)))
    if pointers:
        said = (
            f"{len(pointers)} of {len(files)} files of LFS are pointers here, without their content: {_shown(pointers)}"
        )
        then = (
            "nothing to do when no command needs them; else run git lfs install and git lfs pull in your checkout "
            "before the ticket starts"
        )
        return Point("LFS", "warning", said, then, pointers)
    if files:
        return Point("LFS", "pass", f"{len(files)} files are kept in LFS, and their content is here")
    return Point("LFS", "pass", "no file is kept in it")


async def _sparse(repo: Repo, checkout: Repo) -> Point:
    name = "sparse checkout"
    here, there = await _patterns(repo), await _patterns(checkout)
    if here:
        said = f"the worktree holds only {_shown(here)}, as the checkout does; what is outside stays as it is in git"
        return Point(name, "warning", said, "git sparse-checkout in your checkout shows and changes it", here)
    if there:
        return Point(name, "pass", f"your checkout holds only {_shown(there)}; the worktree holds everything")
    return Point(name, "pass", "the worktree holds everything")


async def _patterns(repo: Repo) -> tuple[str, ...]:
    """What a sparse checkout holds; () = everything."""
    on = await repo.git("config", "--type=bool", "--get", "core.sparseCheckout", ok=(0, 1))
    if on.text != "true":
        return ()
    return tuple((await repo.git("sparse-checkout", "list", ok=())).text.splitlines())


async def _shallow(repo: Repo, tree: Tree) -> Point:
    if (await repo.git("rev-parse", "--is-shallow-repository")).text != "true":
        return Point("history", "pass", "complete")
    said = f"the clone is shallow; changes are compared with the start commit {tree.base_commit[:12]}"
    return Point("history", "warning", said, "git fetch --unshallow in your checkout gives the whole history")


async def _env(repo: Repo, checkout: Repo) -> Point:
    """Files with local settings that the checkout has and git does not: the worktree starts without them."""
    assert checkout.work_tree is not None
    assert repo.work_tree is not None
    flags = ("-z", "--others", "--directory", "--no-empty-directory")  # folders that are wholly strange are one entry
    ignored = await checkout.git("ls-files", *flags, "--ignored", "--exclude-standard")
    other = await checkout.git("ls-files", *flags, "--exclude-standard")
    here, root = checkout.work_tree, repo.work_tree
    local = sorted(path for path in {*ignored.fields, *other.fields} if _local(path) and (here / path).is_file())
    absent = tuple(path for path in local if not (root / path).exists())
    if not absent:
        return Point("env files", "pass", "your checkout has none that the worktree lacks")
    said = f"your checkout has {_shown(absent)}, which git does not hold; the worktree starts without"
    then = "name them as workspace inputs in the setup plan when commands need them; nothing is made from an example"
    return Point("env files", "warning", said, then, absent)


async def _hooks(checkout: Repo) -> Point:
    """Beadmill's own commits run none, whatever they would do in a worktree: that is said, never silent."""
    folder = await guard.hooks_of(checkout)
    found = await anyio.to_thread.run_sync(lambda: tuple(sorted(p.name for p in _runnable(folder))))
    if not found:
        return Point("hooks", "pass", "there are none")
    said = f"{_shown(found)} in {folder}: Beadmill's commits and pushes run none of them"
    then = "let project commands in the setup plan check what they check; they run again when you commit yourself"
    return Point("hooks", "warning", said, then, found)


def _runnable(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.name in HOOKS and path.is_file() and os.access(path, os.X_OK)]


def told(points: Sequence[Point]) -> str:
    """The lines that an agent should know of, one each; "" = nothing differs from a plain clone."""
    return "".join(f"{point.name}: {point.said}\n" for point in points if point.result != "pass")


def _local(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return any(fnmatch.fnmatchcase(name, one) for one in ENV) and not any(
        fnmatch.fnmatchcase(name, one) for one in EXAMPLES
    )


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more
