"""Filling a disk to the last byte, and making room again."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Disk:
    path: Path

    @property
    def ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self) -> None:
        with self.ballast.open("ab", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self) -> None:
        self.ballast.unlink()
