"""What a box shows, as arguments of bwrap. Standard library only.

Sources are resolved first and mounted where they really lie, links on the way are made anew: bwrap never has to walk
through a link whose target is not there yet.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/sys")
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


class Mounts:
    """Grows in the order of mounting: later ones lie on top of earlier ones."""

    def __init__(self) -> None:
        self._arguments: list[str] = []
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
            self._arguments += ["--bind" if write else "--ro-bind", str(real), str(real)]
            self._shown.append(real)
        self._keep(links)

    def link(self, path: Path) -> None:
        """The links on the way to ``path`` alone."""
        self._keep(walk(path)[1])

    def lay(self, path: Path, source: Path | None = None) -> None:
        """What is shown there already becomes read-only, or ``source`` in its place."""
        self._arguments += ["--ro-bind", str(source or path), str(path)]

    def empty(self, path: Path) -> None:
        self._arguments += ["--tmpfs", str(path)]

    def make(self, path: Path) -> None:
        """A folder of the box's own at a real ``path``, unless something shown lies there, above or below."""
        if path not in self._made and not self.shows(path) and not any(p.is_relative_to(path) for p in self._shown):
            self.empty(path)
            self._made.add(path)

    def add(self, *arguments: str) -> None:
        self._arguments += arguments

    def arguments(self) -> list[str]:
        """Links last: a mount must not lead through one. Those inside of something shown are there anyhow."""
        links = [(p, text) for p, text in self._links.items() if not self.shows(p)]
        made = [part for path, text in links for part in ("--symlink", text, str(path))]
        return [*self._arguments, *self._tmp(), *made, "--remount-ro", "/"]

    def _tmp(self) -> list[str]:
        """``scratch`` as /tmp, so that the commands of a workspace find what earlier ones left there. Not where other
        mounts lie below /tmp: their way must not lead through a folder that an agent writes."""
        if self.scratch is None or any(p.is_relative_to(TMP) for p in self._shown):
            return []
        return ["--bind", str(self.scratch), str(TMP)]

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
    mounts.add("--proc", "/proc", "--dev", "/dev")
    # Root's own files below /proc are writable for root, capabilities or not.
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"):
        path = Path("/proc") / name
        if path.exists():
            mounts.lay(path)
    for place in (TMP, Path("/var") / "tmp", Path("/run")):
        mounts.empty(place)
    mounts.add("--symlink", "/run", "/var/run")


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
