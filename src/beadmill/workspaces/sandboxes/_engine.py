"""podman or docker: which one is here, and what it is told. Standard library only.

The CLI gets an environment of its own and never the agent's: a HOME that agents write, or a variable of theirs, would
tell it which programs to run outside of the box.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import resource
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from beadmill.errors import Unavailable
from beadmill.processes import executables
from beadmill.processes.environment import ENGINE

OLDEST: Final = (4, 0)  # of podman: the first that hands our pipes to a container without copying them
PATIENCE: Final = 30.0  # seconds for one answer: a first container on a busy machine takes ten
INSTALL: Final = "install podman with your system's package manager (Debian, Ubuntu, Fedora, Arch: the package podman)"
_RUN: Final = (
    "run", "--rm", "--pull", "never", "--cap-drop", "all", "--security-opt", "no-new-privileges",
    "--security-opt", "label=disable", "--read-only", "--no-healthcheck", "--shm-size", "1g", "--entrypoint", "/bin/sh",
)  # fmt: skip
_PODMAN: Final = (
    "--log-driver", "passthrough", "--preserve-fds", "2", "--read-only-tmpfs=false", "--http-proxy=false",
    "--systemd", "false", "--image-volume", "ignore",
)  # fmt: skip
_DOCKER: Final = ("--interactive", "--log-driver", "none", "--pids-limit", "4096")


@dataclass(frozen=True, slots=True)
class Engine:
    name: Literal["podman", "docker"]
    path: Path
    version: str
    rootless: bool

    def cli(self) -> tuple[str, ...]:
        quiet = (str(self.path), "--log-level", "fatal")  # its own troubles are not the command's stderr
        return (*quiet, *_runtime()) if self.name == "podman" else quiet

    def run(self) -> list[str]:
        """All that does not depend on the box."""
        if self.name == "docker":
            user = () if self.rootless else ("--user", f"{os.getuid()}:{os.getgid()}")
            return [*self.cli(), *_RUN, *_DOCKER, *user]
        user = ("--userns", "keep-id") if self.rootless and _keeps_ids() else ()
        return [*self.cli(), *_RUN, *_PODMAN, *_limits(), *user]

    def remove(self, *names: str) -> tuple[str, ...]:
        """Ends and removes containers; one that is not there is no error."""
        now = ("--time", "0", "--ignore") if self.name == "podman" else ()
        return (*self.cli(), "rm", "--force", *now, *names)

    async def ask(self, *arguments: str) -> tuple[int, str, str]:
        """Raises Unavailable when there is no answer in time."""
        return await executables.ask([*self.cli(), *arguments], env=environment(), patience=PATIENCE)

    async def path_in(self, image: str) -> str:
        """The PATH of an image, empty when it names none. Raises Unavailable for one that is not here."""
        code, said, _ = await self.ask("image", "inspect", "--format", "{{json .Config.Env}}", image)
        if code != 0:
            raise Unavailable(
                f"the image {image} is not on this machine",
                code="SANDBOX_IMAGE",
                kept="nothing was started",
                next=f"load it with `{self.name} load -i <file>`, or `{self.name} pull {image}` where its registry is "
                "in reach; or name another by the setting sandbox_image",
            )
        lines = [line for line in (json.loads(said or "null") or ()) if line.startswith("PATH=")]
        return lines[-1].removeprefix("PATH=") if lines else ""


def environment() -> dict[str, str]:
    """What the CLI may see."""
    return {name: os.environ[name] for name in ("PATH", "HOME", *ENGINE) if name in os.environ}


async def find() -> Engine:
    """podman, else docker. Raises Unavailable when neither works, Refused for one that others may change."""
    if sys.platform != "linux":
        raise _missing("the container sandbox is for Linux", "use the sandbox host")
    for name in ("podman", "docker"):
        path = executables.find(name)
        if path is not None:
            executables.require_trusted(path, os.environ)
            return await (_podman(path) if name == "podman" else _docker(path))
    raise _missing("neither podman nor docker was found on the PATH", INSTALL)


async def _podman(path: Path) -> Engine:
    _, said, _ = await executables.ask([str(path), "--version"], env=environment(), patience=PATIENCE)
    version = said.strip().rpartition(" ")[2]
    if tuple(int(n) for n in re.findall(r"\d+", version)[:2]) < OLDEST:
        raise _missing(f"podman {version or '(of no version)'} is too old: 4.0 is the first that will do", INSTALL)
    return Engine("podman", path, version, rootless=os.getuid() != 0)


async def _docker(path: Path) -> Engine:
    form = '["{{.ServerVersion}}",{{json .SecurityOptions}}]'
    code, said, err = await executables.ask([str(path), "info", "--format", form], env=environment(), patience=PATIENCE)
    try:
        version, options = json.loads(said)
    except ValueError:
        version, options = "", []
    if code != 0 or not version:
        why = err.strip().splitlines()[-1:] or ["it says nothing"]
        raise _missing(f"docker is here and its daemon does not answer: {why[0]}", f"start it, or {INSTALL}")
    return Engine("docker", path, version, rootless="name=rootless" in (options or ()))


def _missing(message: str, then: str) -> Unavailable:
    return Unavailable(message, code="SANDBOX_MISSING", next=then)


def _runtime() -> tuple[str, ...]:
    """crun takes no cgroups of both versions at once; runc does."""
    mixed = not Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return ("--runtime", "runc") if mixed and shutil.which("runc") else ()


def _limits() -> list[str]:
    """Ours, said aloud: podman's own wish for more is refused where we may not have it."""
    pids = int(Path("/proc/sys/kernel/pid_max").read_text())  # podman takes all beyond away from itself first
    most = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)}
    soft, hard = (
        pids if n == resource.RLIM_INFINITY else min(n, pids) for n in resource.getrlimit(resource.RLIMIT_NPROC)
    )
    most["nproc"] = (soft, hard)
    return [part for name, (soft, hard) in most.items() for part in ("--ulimit", f"{name}={soft}:{hard}")]


def _keeps_ids() -> bool:
    """Can a user be itself inside? Else it is root there, and outside nobody but itself all the same."""
    names = {str(os.getuid()), pwd.getpwuid(os.getuid()).pw_name}
    return shutil.which("newuidmap") is not None and all(
        names & {line.partition(":")[0] for line in _lines(Path(name))} for name in ("/etc/subuid", "/etc/subgid")
    )


def _lines(path: Path) -> Sequence[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()


def passed(env: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Variables that the container gets from the CLI's own environment: their values are in no command line."""
    return [part for name in names if name in env for part in ("--env", name)]
