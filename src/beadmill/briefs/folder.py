"""``<home>/prompts``: the edited templates as files. A person may edit them by hand; an upgrade never touches them.

``<name>.md.j2`` is an edit, ``base/<name>.md.j2`` the built-in text it was made from, ``reverted/`` what was taken back.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from beadmill.briefs.part import sha_of
from beadmill.briefs.source import SUFFIX, Edits, built_in, built_ins


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path

    def edits(self) -> Edits:
        return {name: self.read(name) for name in built_ins() if os.path.lexists(self._file(name))}

    def read(self, name: str) -> str | None:
        """The edited text; None when the file cannot be read as text, or is not there."""
        try:
            return self._file(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def edited(self, name: str) -> bool:
        return os.path.lexists(self._file(name))

    def base(self, name: str) -> str | None:
        """The built-in text that the edit was made from; None when nobody noted it (a file made by hand)."""
        try:
            return (self.path / "base" / self._file(name).name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def strangers(self) -> tuple[str, ...]:
        """Files that look like templates and are none: a misspelt name changes nothing."""
        known = {f"{name}{SUFFIX}" for name in built_ins()}
        found = (path.name for path in self.path.glob("*") if path.is_file() and not path.name.startswith("."))
        return tuple(sorted(name for name in found if name not in known))

    def save(self, name: str, text: str) -> None:
        """The edit, then the built-in text of this release that it was compared with. What is no text and would be
        written over is kept aside. Raises OSError."""
        if self.edited(name) and self.read(name) is None:
            self.revert(name)
        _write(self._file(name), text)
        _write(self.path / "base" / self._file(name).name, built_in(name))

    def revert(self, name: str) -> Path:
        """Takes the edit away and keeps it under the returned path. Raises OSError."""
        text = self.read(name)
        mark = sha_of(text)[:12] if text is not None else f"unreadable-{time.time_ns()}"
        kept = self.path / "reverted" / f"{name}.{mark}{SUFFIX}"
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file(name).replace(kept)
        (self.path / "base" / self._file(name).name).unlink(missing_ok=True)
        return kept

    def _file(self, name: str) -> Path:
        return self.path / f"{name}{SUFFIX}"


def _write(path: Path, text: str) -> None:
    """0600 and whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
