"""What of a session's containers may still be, and its removal. Standard library only."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import Final

from beadmill.workspaces.sandboxes._engine import Engine

PLACE: Final = "boxes"  # in the workspace's runtime folder, which no box shows


def place_of(workspace: Path, mark: str) -> Path:
    """A session's folder: a file for each container that may still be, and the root that they share. Its name is what
    the names of its containers begin with."""
    return workspace / "runtime" / PLACE / f"beadmill-{hashlib.sha256(mark.encode()).hexdigest()[:20]}"


async def removed(engine: Engine, place: Path) -> tuple[str, ...]:
    """Removes the containers of a session's folder, then the folder. Returns those that stay."""
    left = _names(place)
    if left:
        code, _, _ = await engine.ask(*engine.remove(*left)[len(engine.cli()) :])
        if code != 0:
            return left
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(place)
    return ()


def _names(place: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in place.glob(f"{place.name}-*")))
