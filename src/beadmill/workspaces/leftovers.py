"""Plain folders and files on the disk: how big they are, and their removal. Links are never followed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import Conflict

# What a workspace may hold beside its tree, and what of ``runtime`` stays: the record of the tree (a rerun finds its
# branch by it), and what was saved there because no undo ref could keep it.
FOLDERS = ("tmp", "home", "empty")
SAVED = ("set-aside", "foreign-git-*", "*.aside", "*.intent.json", "tree.json")
GONE = "gone-*"  # a removal that was killed in its middle


@dataclass(frozen=True, slots=True)
class Weight:
    """``size`` in bytes on the disk. ``mark`` changes when anything below does."""

    size: int
    files: int
    mark: str


def weigh(*places: Path) -> Weight:
    """All of them together; what is not there weighs nothing."""
    size = files = 0
    newest, seen = 0, set[tuple[int, int]]()
    for found in _below(places):
        newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
        files += not stat.S_ISDIR(found.st_mode)
        if (found.st_dev, found.st_ino) not in seen:
            size += found.st_blocks * 512
        seen.add((found.st_dev, found.st_ino))
    roots = "+".join(str(inode(place)) for place in places)
    return Weight(size, files, f"{roots}:{files}:{size}:{newest}")


def inode(place: Path) -> int:
    """0 for what is not there."""
    try:
        return place.lstat().st_ino
    except OSError:
        return 0


def _below(places: Iterable[Path]) -> Iterator[os.stat_result]:
    for place in places:
        try:
            found = place.lstat()
        except OSError:
            continue
        yield found
        if stat.S_ISDIR(found.st_mode):
            try:
                inside = sorted(place.iterdir())
            except OSError:
                continue
            yield from _below(inside)


def inside(place: Path, parent: Path) -> Path:
    """``place``, when it really lies directly in ``parent`` and is no link. Raises Conflict."""
    if place.is_symlink() or place.resolve().parent != parent.resolve() or place.parent != parent:
        raise Conflict(f"{place} is a link, or lies elsewhere", code="NOT_OURS", kept="It was left as it is.")
    return place


def wipe(place: Path) -> None:
    """A file, or a folder with all in it. A link itself goes, never what it names; read-only folders are opened first."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    for folder, _, _ in os.walk(place, followlinks=False):
        opened = Path(folder)
        if not os.access(opened, os.W_OK | os.X_OK):
            opened.chmod(0o700)
    crashpoints.reach("clean.wipe")
    shutil.rmtree(place)


def aside(place: Path, runtime: Path) -> Path:
    """Moves what goes out of its place in one act, so that a kill leaves it whole or not there. Where it is now."""
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    free = next(free for n in range(1, 100_000) if not (free := runtime / f"gone-{n}").exists())
    place.rename(free)
    return free


def spare(workspace: Path) -> tuple[Path, ...]:
    """What a workspace has beside its trees and nobody needs once its ticket has ended."""
    runtime = workspace / "runtime"
    rest = runtime.iterdir() if runtime.is_dir() and not runtime.is_symlink() else ()
    kept = [path for path in rest if not any(path.match(pattern) for pattern in (*SAVED, GONE))]
    return tuple(sorted([*(workspace / name for name in FOLDERS if (workspace / name).exists()), *kept]))


def drop_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
