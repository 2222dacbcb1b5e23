"""CommandSpec: one command of a plan, as data. Standard library only: it crosses into the runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal


class BadCommand(ValueError):
    """The spec cannot be a command: says which field and why."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """Either ``mode="process"`` (program + args, no shell) or ``mode="shell"`` (a POSIX shell script).

    ``cwd`` is relative to the worktree and never leaves it; ``timeout_ms`` is 100 ms to 30 min, None = the caller's.
    """

    mode: Literal["process", "shell"] = "process"
    program: str = ""
    args: tuple[str, ...] = ()
    script: str = ""
    shell: Literal["posix"] = "posix"
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None

    def __post_init__(self) -> None:
        if self.mode == "process" and not self.program:
            raise BadCommand("program: a process command names its program")
        if self.mode == "shell" and not self.script.strip():
            raise BadCommand("script: a shell command has a script")
        path = PurePosixPath(self.cwd)
        if path.is_absolute() or ".." in path.parts:
            raise BadCommand(f"cwd: {self.cwd!r} leaves the worktree")
        if self.timeout_ms is not None and not 100 <= self.timeout_ms <= 1_800_000:
            raise BadCommand(f"timeoutMs: {self.timeout_ms} is outside 100..1800000")

    def argv(self) -> tuple[str, ...]:
        if self.mode == "process":
            return (self.program, *self.args)
        return ("/bin/sh", "-c", self.script)

    def __str__(self) -> str:
        return self.script if self.mode == "shell" else " ".join(self.argv())
