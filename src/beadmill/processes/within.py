"""Writing into a folder that agents write too, from outside of their box: no link of theirs is followed.

An agent may leave a link where the next session writes a file, and so have it written anywhere. What stands in the way
of a folder or a file is removed: it lies where agents may remove things themselves. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

MOST: Final = 1_000_000  # bytes of a file that is read
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 5  # somebody may plant while we clear


def make(root: Path, name: str | PurePath, *, mode: int = 0o700) -> Path:
    """The folder ``root/name``, made with all above it; ``root`` is there and can be trusted. Raises OSError."""
    path = PurePath(name)
    with _folder(root, path.parent) as above:
        os.close(_step(above, path.name, mode=mode))
    return root / path


def write(root: Path, name: str | PurePath, text: str) -> Path:
    """The file ``root/name`` (0600) with all above it, replaced at once; left alone when it holds ``text``."""
    path, data = PurePath(name), text.encode()
    with _folder(root, path.parent) as folder:
        if _content(folder, path.name) != data:
            fresh = f".{path.name}.{secrets.token_hex(6)}"
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            _put(folder, fresh, path.name)
    return root / path


def link(root: Path, name: str | PurePath, target: Path) -> None:
    """A link ``root/name`` to ``target``. A file that is newer than the target stays: a CLI renewed its sign-in there."""
    path = PurePath(name)
    with _folder(root, path.parent) as folder:
        with contextlib.suppress(OSError):
            found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_mtime > target.stat().st_mtime:
                return
            if stat.S_ISLNK(found.st_mode) and os.readlink(path.name, dir_fd=folder) == str(target):
                return
        fresh = f".{path.name}.{secrets.token_hex(6)}"
        os.symlink(target, fresh, dir_fd=folder)
        _put(folder, fresh, path.name)


def remove(root: Path, name: str | PurePath) -> None:
    """The file or link ``root/name``; nothing there is not an error."""
    path = PurePath(name)
    with _folder(root, path.parent) as folder, contextlib.suppress(FileNotFoundError):
        os.unlink(path.name, dir_fd=folder)


@contextlib.contextmanager
def _folder(root: Path, path: PurePath) -> Iterator[int]:
    """``path`` below ``root``, opened."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in path.parts:
            below = _step(handle, part)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _step(folder: int, name: str, *, mode: int = 0o700) -> int:
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f"{name!r} leads nowhere below")
    for _ in range(_TRIES):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=folder)
        try:
            return os.open(name, _OPEN, dir_fd=folder)
        except OSError:  # a link, a file, or gone again
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
    raise NotADirectoryError(f"no folder can be made at {name}")


def _content(folder: int, name: str) -> bytes | None:
    """None also for what is no ordinary file or too large; a pipe must not be waited for."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST:
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _put(folder: int, fresh: str, name: str) -> None:
    """``fresh`` under its name, whatever was there."""
    try:
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except (IsADirectoryError, NotADirectoryError):
        shutil.rmtree(name, dir_fd=folder)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
