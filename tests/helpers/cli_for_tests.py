"""Running the command line as a person does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warm_for_tests import Warm

SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Cli:
    """``cli("ticket", "list")`` on the home below ``place``. Its daemon takes a free port, unless ``usual_port``.
    ``cold``: each command is a Python that imports everything anew."""

    place: Path
    extra: tuple[tuple[str, str], ...] = ()
    usual_port: bool = False
    cold: bool = False

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BEADMILL_", "GIT_"))}
        user = self.place / "user"
        user.mkdir(exist_ok=True)
        ours = {"HOME": str(user), "BEADMILL_HOME": str(self.home), "PYTHONPATH": str(SOURCE), "COLUMNS": "120"}
        port = {} if self.usual_port else {"BEADMILL_PORT": "0"}
        return {**kept, **ours, **port, **dict(self.extra)}

    def __call__(self, *args: str, stdin: str = "") -> Said:
        with self.popen(args, stdin=subprocess.PIPE) as child:
            try:
                out, err = child.communicate(stdin, 90)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        return Said(child.returncode, out, err)

    @contextmanager
    def begin(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on; killed at the end when it still runs."""
        with self.popen(args) as child:
            try:
                yield child
            finally:
                child.kill()

    def popen(self, args: Sequence[str], *, stdin: int | None = None) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        if self.cold:
            return subprocess.Popen(self.argv(*args), env=self.env, stdin=stdin, stdout=pipe, stderr=pipe, text=True)
        return Warm(args, env=self.env, stdin=stdin, stdout=pipe, stderr=pipe, text=True)

    def argv(self, *args: str) -> Sequence[str]:
        return [sys.executable, "-m", "beadmill.cli.main", *args]


def git(where: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(where), *args], check=True, capture_output=True)
