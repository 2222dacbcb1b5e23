"""A user's home, a data home with two tickets, a repository: what a box must hide, and the command that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beadmill.processes.spec import Policy
from beadmill.processes.wire import encode

SRC = Path(__file__).parents[2] / "src"
IN_BOX = Path(__file__).with_name("in_box.py")
CANARY = "canary-7f3a91"  # in every file that must not be readable
PYTHON = shutil.which("python3", path=os.defpath) or sys.executable  # one that every user may start
NOBODY = 65534  # an ordinary user; root alone can become it


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float


@dataclass(slots=True)
class Place:
    """``uid`` is who runs it all."""

    root: Path
    uid: int = field(default_factory=os.getuid)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def workspace(self) -> Path:
        return self.data / "workspaces" / "APP" / "APP-1"

    @property
    def tree(self) -> Path:
        return self.workspace / "tree"

    @property
    def common(self) -> Path:
        return self.root / "repository" / ".git"

    @property
    def program(self) -> Path:
        """A copy of ours and of in_box.py: another user need not reach the folder of this checkout."""
        return self.root / "program" / "in_box.py"

    @property
    def interpreter(self) -> str:
        return sys.executable if self.uid == os.getuid() else PYTHON

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Files that hold the canary."""
        inside = ("beadmill.db", "daemon.json", "sessions/s/events.jsonl", "workspaces/APP/APP-2/tree/other.txt")
        ours = (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", "notes.txt")
        return (*(self.data / name for name in inside), *(self.home / name for name in ours))

    def make(self) -> None:
        for path in self.secrets:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(CANARY)
        for name in ("home", "tmp", "runtime", "empty/1"):
            (self.workspace / name).mkdir(parents=True)
        (self.root / "run").mkdir(mode=0o700)
        self._repository()
        shutil.copytree(
            SRC / "beadmill", self.program.parent / "beadmill", ignore=shutil.ignore_patterns("web", "demo")
        )
        shutil.copy(IN_BOX, self.program)
        (self.workspace / "runtime" / "tree.json").write_text(
            json.dumps({"git_dir": str(self.common / "worktrees" / "tree")})
        )
        if self.uid != os.getuid():
            self.root.chmod(0o755)
            for path in (self.root, *self.root.rglob("*")):
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def _repository(self) -> None:
        checkout = self.common.parent
        checkout.mkdir()
        (checkout / "readme").write_text("hello\n")
        for argv in (
            ["init", "-q", "-b", "main"],
            ["add", "."],
            ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "first"],
            ["worktree", "add", "-q", "-b", "beadmill/APP-1", str(self.tree)],
        ):
            subprocess.run(["git", *argv], cwd=checkout, check=True, capture_output=True)

    def run(
        self,
        argv: Sequence[str],
        *,
        sandbox: str = "bubblewrap",
        policy: Policy | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Done:
        """Raises AssertionError when the box itself could not be opened."""
        own = {"HOME": str(self.workspace / "home"), "TMPDIR": str(self.workspace / "tmp"), **(env or {})}
        wish: dict[str, Any] = {
            "sandbox": sandbox, "workspace": str(self.workspace), "argv": [*argv], "env": own,
            "cwd": str(cwd or self.tree), "policy": encode(policy or Policy(hidden=(self.data,))),
        }  # fmt: skip
        done = subprocess.run(
            [*self.as_user(), str(self.interpreter), str(self.program), json.dumps(wish)],
            env={
                "PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONPATH": str(self.program.parent),
                "XDG_RUNTIME_DIR": str(self.root / "run"),
            },
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return Done(**json.loads(done.stdout))

    def end(self) -> None:
        """Ends the process that podman leaves for a user's next container."""
        for path in self.root.glob("run/libpod/tmp/pause.pid"):
            os.kill(int(path.read_text()), signal.SIGKILL)

    def shell(self, script: str, **how: Any) -> Done:
        return self.run(["/bin/sh", "-c", script], **how)

    def python(self, code: str, *arguments: str, **how: Any) -> Done:
        return self.run([PYTHON, "-I", "-S", "-c", code, *arguments], **how)

    def as_user(self) -> list[str]:
        if self.uid == os.getuid():
            return []
        setpriv = shutil.which("setpriv")
        assert setpriv is not None, "setpriv (util-linux) is missing"
        return [setpriv, f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]


def users() -> tuple[int, ...]:
    """Who the escape suite runs as: us, and an ordinary user when we may become one."""
    return (os.getuid(), NOBODY) if os.getuid() == 0 else (os.getuid(),)
