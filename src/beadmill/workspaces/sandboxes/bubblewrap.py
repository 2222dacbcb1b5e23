"""bubblewrap: programs, libraries and one workspace are all that there is. Standard library only: the runner loads it.

Shown: the system's programs and public configuration, toolchains on the PATH, the adapter's program (read-only); the
workspace's tree, home and tmp; the sign-in folders that the adapter names. Not there: homes, the data home, other
workspaces, sockets of services, other processes. Git's folder and the ``.git`` file are read-only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from beadmill.domain.values import Access
from beadmill.errors import BeadmillError, Unavailable
from beadmill.processes import door, executables
from beadmill.processes.box import Health, Launch
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes._mounts import Mounts, resolver, system, walk
from beadmill.workspaces.sandboxes._toolchains import reveals, show_path, show_program

FLAGS: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--new-session", "--die-with-parent",
)  # fmt: skip
NO_USERNS: Final = (0, 8)  # the first release with --disable-userns
INSTALL: Final = "install it with your system's package manager (Debian, Ubuntu, Fedora, Arch: the package bubblewrap)"
FORBIDDEN: Final = (
    "the kernel does not let it open a user namespace: see the sysctls user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns, "
    "or the container that this runs in"
)
_NAMESPACE: Final = re.compile(r"namespace|uid map|gid map|Operation not permitted|Permission denied", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bwrap:
    """The program, and whether it can forbid namespaces inside."""

    path: Path
    version: str
    closes: bool

    def start(self) -> list[str]:
        return [str(self.path), *FLAGS, *(("--disable-userns",) if self.closes else ())]


class BubblewrapBox:
    isolates = True

    def __init__(self, bwrap: Bwrap, mounts: Mounts, policy: Policy) -> None:
        self._bwrap, self._mounts, self._policy = bwrap, mounts, policy

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], program: Path | None = None) -> Launch:
        """Raises FileNotFoundError for a program that is not there at all."""
        if shutil.which(argv[0], path=env.get("PATH")) is None and not (cwd / argv[0]).is_file():
            raise FileNotFoundError(f"no such program: {argv[0]}")
        if program is not None:
            show_program(self._mounts, program, hidden=self._policy.hidden)
        inside, env = [*argv], dict(env)
        if self._policy.door is not None:
            inside, env = [*door.knock(), *argv], door.environment(env, self._policy)
        arguments = [*self._bwrap.start(), *self._mounts.arguments(), "--chdir", str(cwd), "--", *inside]
        return Launch(tuple(arguments), Path("/"), env)

    async def close(self) -> None:
        """Nothing is open: all that was mounted went with its processes."""


class BubblewrapSandbox:
    name = "bubblewrap"
    networks = frozenset({"on", "off", "allow-list"})

    async def probe(self) -> Health:
        """Really runs a command in a box."""
        try:
            bwrap = await find()
            mounts = Mounts()
            system(mounts)
            argv = [*bwrap.start(), *mounts.arguments(), "--", "/bin/sh", "-c", "exit 0"]
            code, _, err = await executables.ask(argv, env={"PATH": os.defpath})
        except (BeadmillError, OSError) as error:
            said = error if isinstance(error, OSError) else f"{error.message}; {error.next}".rstrip("; ")
            return Health(ok=False, message=f"no bubblewrap: {said}")
        if code != 0:
            why = FORBIDDEN if _NAMESPACE.search(err) else "it cannot build a box here"
            return Health(ok=False, message=f"bubblewrap does not work here: {why} ({err.strip()[-300:]})")
        shut = "closed" if bwrap.closes else "open"
        return Health(
            ok=True,
            message="agents and commands see their workspace, the system's programs and nothing else of yours",
            detail={"isolation": "bubblewrap", "version": bwrap.version, "namespaces inside": shut},
        )

    async def open(self, workspace: Path, policy: Policy) -> BubblewrapBox:
        """Raises Unavailable, and Refused for a bwrap that others may change."""
        if not workspace.is_dir():  # noqa: ASYNC240 - one look at a local path
            raise Unavailable(
                f"the workspace {workspace} is gone", code="WORKSPACE_GONE", next="Retry the step before."
            )
        mounts = Mounts()
        system(mounts)
        if policy.network == "on":
            resolver(mounts)
        else:
            mounts.add("--unshare-net")
        if policy.door is not None:
            mounts.lay(door.INSIDE, policy.door)
            show_program(mounts, Path(sys.executable), hidden=policy.hidden)
        show_path(mounts, os.environ.get("PATH", os.defpath), hidden=policy.hidden)
        _show_beside(mounts, policy)
        _show_workspace(mounts, workspace, policy)
        return BubblewrapBox(await find(), mounts, policy)


async def find() -> Bwrap:
    """Raises Unavailable when it is not there, Refused when it is not trusted."""
    if sys.platform != "linux":
        raise Unavailable("bubblewrap is for Linux", code="SANDBOX_MISSING", next="use the sandbox host")
    path = executables.find("bwrap")
    if path is None:
        raise Unavailable("bwrap was not found on the PATH", code="SANDBOX_MISSING", next=INSTALL)
    executables.require_trusted(path, os.environ)
    _, said, _ = await executables.ask([str(path), "--version"], env={"PATH": os.defpath})
    numbers = tuple(int(n) for n in re.findall(r"\d+", said)[:2])
    setuid = bool(path.stat().st_mode & stat.S_ISUID)
    return Bwrap(path, said.strip().rpartition(" ")[2], closes=numbers >= NO_USERNS and not setuid)


def _refused(message: str, then: str) -> Unavailable:
    return Unavailable(message, code="SANDBOX_POLICY", next=then)


def _show_beside(mounts: Mounts, policy: Policy) -> None:
    for write, paths in ((False, policy.readable), (True, policy.binds)):
        for path in paths:
            if reveals(walk(path)[0], policy.hidden):
                raise _refused(f"{path} would show what the sandbox hides", "Name a narrower folder.")
            if write and path.is_file():  # CLIs write beside it first, and lock
                mounts.make(walk(path)[0].parent)
            mounts.show(path, write=write)


def _show_workspace(mounts: Mounts, workspace: Path, policy: Policy) -> None:
    tree = policy.tree or workspace / "tree"
    if not walk(tree)[0].is_relative_to(walk(workspace)[0]):
        raise _refused(f"{tree} lies outside of the workspace {workspace}", "Report this.")
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
            raise _refused(f"{path} is a link", "Remove the link, then retry.")
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
