"""A text in the person's own editor, in the foreground of their terminal. Standard library only."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.errors import Unavailable

USUAL: Final = ("editor", "nano", "vi")


def edited(text: str, *, suffix: str = ".md", env: Mapping[str, str] = os.environ) -> str:
    """The text as it was saved; as it was given when nothing was. Raises Unavailable when there is no editor, or it
    failed."""
    argv = _editor(env)
    handle, name = tempfile.mkstemp(suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            code = subprocess.run([*argv, name], check=False).returncode
        except OSError as error:
            raise _unavailable(f"{argv[0]} could not start: {error}") from error
        if code:
            raise _unavailable(f"{argv[0]} ended with {code}")
        return path.read_text(encoding="utf-8", errors="replace")
    finally:
        path.unlink(missing_ok=True)


def _editor(env: Mapping[str, str]) -> Sequence[str]:
    chosen = env.get("VISUAL") or env.get("EDITOR") or next(filter(shutil.which, USUAL), "")
    if not chosen:
        raise _unavailable("no editor was found")
    return shlex.split(chosen)


def _unavailable(message: str) -> Unavailable:
    return Unavailable(message, code="EDITOR", kept="your text as it was", next="set EDITOR, or type it on one line")
