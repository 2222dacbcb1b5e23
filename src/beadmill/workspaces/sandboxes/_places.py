"""What of a workspace a box shows, and what beside it. Standard library only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from beadmill.domain.values import Access
from beadmill.errors import Unavailable
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes._mounts import Mounts, walk
from beadmill.workspaces.sandboxes._toolchains import reveals


def require(workspace: Path) -> None:
    """Raises Unavailable for a workspace that is not there."""
    if not workspace.is_dir():
        raise Unavailable(f"the workspace {workspace} is gone", code="WORKSPACE_GONE", next="Retry the step before.")


def refused(message: str, then: str) -> Unavailable:
    return Unavailable(message, code="SANDBOX_POLICY", next=then)


def show(mounts: Mounts, workspace: Path, policy: Policy) -> None:
    """Raises Unavailable for a policy that no box may hold."""
    _show_beside(mounts, policy)
    _show_workspace(mounts, workspace, policy)


def _show_beside(mounts: Mounts, policy: Policy) -> None:
    for write, paths in ((False, policy.readable), (True, policy.binds)):
        for path in paths:
            if reveals(walk(path)[0], policy.hidden):
                raise refused(f"{path} would show what the sandbox hides", "Name a narrower folder.")
            if write and path.is_file():  # CLIs write beside it first, and lock
                mounts.make(walk(path)[0].parent)
            mounts.show(path, write=write)


def _show_workspace(mounts: Mounts, workspace: Path, policy: Policy) -> None:
    tree = policy.tree or workspace / "tree"
    if not walk(tree)[0].is_relative_to(walk(workspace)[0]):
        raise refused(f"{tree} lies outside of the workspace {workspace}", "Report this.")
    for name in ("home", "tmp"):
        mounts.show(workspace / name, write=True)
    mounts.scratch = walk(workspace / "tmp")[0]
    mounts.show(tree, write=policy.access in (Access.WRITE, Access.ONLINE))
    mounts.link(workspace)
    if policy.access is Access.NONE:
        return
    for path in _of_git(workspace, tree):
        mounts.show(path)
    for path in (tree / ".git", *policy.read_only):
        if path.is_symlink():
            raise refused(f"{path} is a link", "Remove the link, then retry.")
        if path.exists():
            mounts.lay(walk(path)[0])


def _of_git(workspace: Path, tree: Path) -> Iterator[Path]:
    """The repository behind the tree, by our own record of it, never by what lies in the tree."""
    try:
        record = json.loads((workspace / "runtime" / f"{tree.name}.json").read_bytes())["git_dir"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    common = Path(record).parent.parent
    yield common
    yield from _alternates(common / "objects")


def _alternates(objects: Path) -> Iterator[Path]:
    """Where a repository that borrows finds its objects."""
    try:
        lines = (objects / "info" / "alternates").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in filter(None, lines):
        borrowed = Path(os.path.normpath(objects / line))
        yield borrowed
        yield from _alternates(borrowed)
