"""What a box shows, whoever builds it. Standard library only.

Sources are resolved first and mounted where they really lie, links on the way are made anew: nobody has to walk
through a link whose target is not there yet.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu")
TMP: Final = Path("/tmp")  # noqa: S108 - the box's own
_LINKS: Final = 40  # as the kernel


class TooManyLinks(OSError):
    """A path that never arrives."""


def walk(path: Path) -> tuple[Path, tuple[tuple[Path, str], ...]]:
    """Where ``path`` (absolute) really lies, and each link on the way with its text. Raises TooManyLinks."""
    at, todo, links = Path("/"), list(path.parts[1:]), list[tuple[Path, str]]()
    while todo:
        part = todo.pop(0)
        step = at.parent if part == ".." else at / part
        if not step.is_symlink():
            at = step
            continue
        if len(links) == _LINKS:
            raise TooManyLinks(f"{path} leads round in circles")
        text = str(step.readlink())
        links.append((step, text))
        at = Path("/") if text.startswith("/") else at
        todo = [p for p in text.split("/") if p not in ("", ".")] + todo
    return at, tuple(links)


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` None = an empty folder of the box's own."""

    target: Path
    source: Path | None = None
    write: bool = False


class Mounts:
    """Grows in the order of mounting: later ones lie on top of earlier ones."""

    def __init__(self) -> None:
        self._mounts: list[Mount] = []
        self._links: dict[Path, str] = {}
        self._shown: list[Path] = []
        self._made: set[Path] = set()
        self.scratch: Path | None = None

    def shows(self, path: Path) -> bool:
        """Is this real path inside something that was bound?"""
        return any(path.is_relative_to(place) for place in self._shown)

    def show(self, path: Path, *, write: bool = False) -> None:
        """Binds what is there; nothing is not an error."""
        real, links = walk(path)
        if real.exists() and (write or not self.shows(real)):
            self._mounts.append(Mount(real, real, write))
            self._shown.append(real)
        self._keep(links)

    def link(self, path: Path) -> None:
        """The links on the way to ``path`` alone."""
        self._keep(walk(path)[1])

    def put_link(self, path: Path, text: str) -> None:
        """A link that is not there outside."""
        self._links[path] = text

    def lay(self, path: Path, source: Path | None = None) -> None:
        """What is shown there already becomes read-only, or ``source`` in its place."""
        self._mounts.append(Mount(path, source or path))

    def empty(self, path: Path) -> None:
        self._mounts.append(Mount(path))

    def make(self, path: Path) -> None:
        """A folder of the box's own at a real ``path``, unless something shown lies there, above or below."""
        if path not in self._made and not self.shows(path) and not any(p.is_relative_to(path) for p in self._shown):
            self.empty(path)
            self._made.add(path)

    def mounts(self) -> list[Mount]:
        return [*self._mounts, *self._tmp()]

    def links(self) -> list[tuple[Path, str]]:
        """To be made behind all mounts, which must not lead through one. Those inside of something shown are there
        anyhow."""
        return [(path, text) for path, text in self._links.items() if not self.shows(path)]

    def _tmp(self) -> list[Mount]:
        """``scratch`` as /tmp, so that the commands of a workspace find what earlier ones left there. Not where other
        mounts lie below /tmp: their way must not lead through a folder that an agent writes."""
        if self.scratch is None or any(p.is_relative_to(TMP) for p in self._shown):
            return []
        return [Mount(TMP, self.scratch, write=True)]

    def _keep(self, links: Iterable[tuple[Path, str]]) -> None:
        self._links.update(links)


def system(mounts: Mounts) -> None:
    """Programs, libraries and public configuration; no home, no service, no other disk."""
    for name in SYSTEM:
        mounts.show(Path(name))
    for path in _public(Path("/opt")):
        mounts.show(path)
    mounts.show(Path("/etc"))
    for path in _private(Path("/etc")):
        if path.is_dir():
            mounts.empty(path)
        else:
            mounts.lay(path, Path("/dev/null"))
    own(mounts)


def own(mounts: Mounts) -> None:
    """Folders that every box has for itself."""
    for place in (TMP, Path("/var") / "tmp", Path("/run")):
        mounts.empty(place)
    mounts.put_link(Path("/var/run"), "/run")


def resolver(mounts: Mounts) -> None:
    """The name servers of the host, where a link leads to them."""
    mounts.show(Path("/etc/resolv.conf"))


def _public(folder: Path) -> Iterator[Path]:
    """What everybody may read of a folder."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        try:
            mode = entry.stat().st_mode
        except OSError:
            continue
        if mode & stat.S_IROTH and (not stat.S_ISDIR(mode) or mode & stat.S_IXOTH):
            yield Path(entry.path)


def _private(folder: Path) -> Iterator[Path]:
    """What not everybody may read, at any depth; nothing below a folder that is private itself."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            continue
        if not mode & stat.S_IROTH or (stat.S_ISDIR(mode) and not mode & stat.S_IXOTH):
            yield Path(entry.path)
        elif stat.S_ISDIR(mode):
            yield from _private(Path(entry.path))
