"""Where a session works and what of the outside it gets. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from beadmill.domain.values import Access
from beadmill.processes.spec import AgentTask, Policy, Service

_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219}  # the C library has no name for this call
_JOIN_SESSION_KEYRING: Final = 1
LANES: Final = "lanes"


def places(workspace: Path) -> Mapping[str, str]:
    """The workspace's own HOME and TMPDIR, made when they are not there."""
    for name in ("home", "tmp"):
        (workspace / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"HOME": str(workspace / "home"), "TMPDIR": str(workspace / "tmp")}


def workspace_of(ticket: Path, cwd: Path) -> Path:
    """Whose HOME and TMPDIR a session in ``cwd`` has: those of its lane (``<ticket>/lanes/<n>``), else the ticket's."""
    inside = cwd.relative_to(ticket).parts if cwd.is_relative_to(ticket) else ()
    return ticket / LANES / inside[1] if len(inside) > 1 and inside[0] == LANES else ticket


def policy_of(policy: Policy, task: AgentTask | Service, agent: Any) -> Policy:
    """What the task and the adapter need of the outside, whatever the CLI's own flags say."""
    return replace(
        policy,
        access=task.access,
        tree=task.cwd,
        binds=(*policy.binds, *agent.auth_paths),
        readable=(*policy.readable, *getattr(agent, "read_paths", ())),
    )


@contextlib.asynccontextmanager
async def place(task: AgentTask, workspace: Path) -> AsyncIterator[AgentTask]:
    """Without access an agent works in an empty folder that goes with the session."""
    if task.access is not Access.NONE:
        yield task
        return
    empty = workspace / "empty" / str(os.getpid())  # where no other session can put a link in its place
    empty.mkdir(parents=True, exist_ok=True)
    empty.chmod(0o500)
    try:
        yield replace(task, cwd=empty)
    finally:
        shutil.rmtree(empty, ignore_errors=True)


def leave_keyring() -> None:
    """Linux: a session keyring of our own, so that no child reads keys of the login that the daemon came from."""
    number = _KEYCTL.get(os.uname().machine)
    if sys.platform == "linux" and number is not None:
        ctypes.CDLL(None, use_errno=True).syscall(number, _JOIN_SESSION_KEYRING, None)
