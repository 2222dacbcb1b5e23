"""bubblewrap: programs, libraries and one workspace are all that there is. Standard library only: the runner loads it.

Shown: the system's programs and public configuration, toolchains on the PATH, the adapter's program (read-only); the
workspace's tree, home and tmp; the sign-in folders that the adapter names. Not there: homes, the data home, other
workspaces, sockets of services, other processes. Git's folder and the ``.git`` file are read-only.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from beadmill.errors import BeadmillError, Unavailable
from beadmill.processes import door, executables
from beadmill.processes.box import Health, Launch
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes._mounts import Mount, Mounts, resolver, system
from beadmill.workspaces.sandboxes._places import require, show
from beadmill.workspaces.sandboxes._toolchains import show_path, show_program

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
    foreign = False

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
        net = [] if self._policy.network == "on" else ["--unshare-net"]
        arguments = [*self._bwrap.start(), *net, *arguments_of(self._mounts), "--chdir", str(cwd), "--", *inside]
        return Launch(tuple(arguments), Path("/"), env)

    async def close(self) -> None:
        """Nothing is open: all that was mounted went with its processes."""


class BubblewrapSandbox:
    name = "bubblewrap"
    networks = frozenset({"on", "off", "allow-list"})

    async def probe(self, image: str = "") -> Health:  # noqa: ARG002 - the contract's: it takes none
        """Really runs a command in a box."""
        try:
            bwrap = await find()
            mounts = Mounts()
            system(mounts)
            argv = [*bwrap.start(), *arguments_of(mounts), "--", "/bin/sh", "-c", "exit 0"]
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
        require(workspace)
        mounts = Mounts()
        system(mounts)
        mounts.show(Path("/sys"))
        if policy.network == "on":
            resolver(mounts)
        if policy.door is not None:
            mounts.lay(door.INSIDE, policy.door)
            show_program(mounts, Path(sys.executable), hidden=policy.hidden)
        show_path(mounts, os.environ.get("PATH", os.defpath), hidden=policy.hidden)
        show(mounts, workspace, policy)
        return BubblewrapBox(await find(), mounts, policy)

    async def sweep(self, workspace: Path, mark: str) -> tuple[str, ...]:  # noqa: ARG002 - the contract's
        """Its processes are all that there is."""
        return ()


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


def arguments_of(mounts: Mounts) -> list[str]:
    """Links behind the mounts, the root closed last."""
    bound = [part for mount in mounts.mounts() for part in _argument(mount)]
    made = [part for path, text in mounts.links() for part in ("--symlink", text, str(path))]
    return [*_kernel(), *bound, *made, "--remount-ro", "/"]


def _argument(mount: Mount) -> tuple[str, ...]:
    if mount.source is None:
        return ("--tmpfs", str(mount.target))
    return ("--bind" if mount.write else "--ro-bind", str(mount.source), str(mount.target))


def _kernel() -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    # Root's own files below /proc are writable for root, capabilities or not.
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"):
        path = f"/proc/{name}"
        if Path(path).exists():
            yield from ("--ro-bind", path, path)
