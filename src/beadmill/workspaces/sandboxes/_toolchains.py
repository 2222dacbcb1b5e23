"""Which folders programs need that do not lie in the system: version managers, npm packages, virtual environments.

Taken from the PATH of Beadmill and from the adapter's own program alone. What an agent writes (a link in its tree, a
path of a setup plan) never opens a folder. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from beadmill.workspaces.sandboxes._mounts import Mounts, walk

# Below the home; programs only. Their neighbours hold sign-ins, so nothing wider is ever shown.
KNOWN: Final = (
    ".pyenv/versions", ".pyenv/bin", ".pyenv/libexec", ".pyenv/shims", ".local/share/uv/python", ".local/share/uv/tools",
    ".local/share/pipx/venvs", ".local/share/mise/installs", ".asdf/installs", ".nvm/versions", ".volta/tools",
    ".local/share/fnm", ".local/share/pnpm/global", ".rustup/toolchains", ".rbenv/versions", ".sdkman/candidates",
)  # fmt: skip
PRIVATE: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local/share", ".local/state", ".cache",
    ".password-store", ".mozilla", ".netrc", ".git-credentials", ".gitconfig", ".npmrc", ".pypirc", ".bash_history",
    ".cargo/credentials.toml", ".cargo/credentials",
)  # fmt: skip


def homes() -> tuple[Path, ...]:
    """The user's homes, real paths: what the environment says and what the system says."""
    named = [os.environ.get("HOME", ""), pwd.getpwuid(os.getuid()).pw_dir]
    return tuple(dict.fromkeys(Path(p).resolve() for p in named if p.startswith("/") and p != "/"))


def reveals(path: Path, hidden: Sequence[Path]) -> bool:
    """Would showing this real path show a home, a place where secrets lie, or what the caller hides?"""
    for home in homes():
        places = (home, *(home / name for name in PRIVATE))
        if any(place.is_relative_to(path) for place in places):
            return True
        if any(path.is_relative_to(home / name) for name in PRIVATE[:6]):
            return True
    return any(place.resolve().is_relative_to(path) for place in hidden)


def show_path(mounts: Mounts, path: str, *, hidden: Sequence[Path]) -> None:
    """All that the folders of a PATH need; a folder that would reveal too much is left out."""
    known = [home / name for home in homes() for name in KNOWN]
    for folder in dict.fromkeys([*known, *map(Path, path.split(os.pathsep))]):
        with contextlib.suppress(OSError):  # what we may not look at helps nobody inside either
            if folder.is_absolute() and folder.is_dir():
                _show_folder(mounts, folder, hidden)


def show_program(mounts: Mounts, program: Path, *, hidden: Sequence[Path]) -> None:
    """A program and the package that it belongs to."""
    real, _ = walk(program)
    if mounts.shows(real) or not real.exists():
        mounts.link(program)
        return
    for place in _package(real):
        _show(mounts, place, hidden)
    if not mounts.shows(real) and not reveals(real, hidden):
        mounts.show(real)
    mounts.link(program)


def _show_folder(mounts: Mounts, folder: Path, hidden: Sequence[Path]) -> None:
    real, _ = walk(folder)
    if mounts.shows(real):
        mounts.link(folder)
        return
    if reveals(real, hidden):
        return
    for place in _environment_of(real):
        _show(mounts, place, hidden)
    mounts.show(folder)
    for entry in sorted(os.scandir(real), key=lambda e: e.name):
        if entry.is_symlink():
            with contextlib.suppress(OSError):
                show_program(mounts, Path(entry.path), hidden=hidden)


def _show(mounts: Mounts, place: Path, hidden: Sequence[Path]) -> None:
    if not reveals(walk(place)[0], hidden):
        mounts.show(place)


def _package(program: Path) -> Iterator[Path]:
    """The outermost node_modules, the prefix of a language, a virtual environment with the Python behind it."""
    modules = [p for p in program.parents if p.name == "node_modules"]
    if modules:
        yield modules[-1]
    if program.parent.name in ("bin", "sbin"):
        yield from _environment_of(program.parent)


def _environment_of(folder: Path) -> Iterator[Path]:
    prefix = folder.parent
    if (prefix / "pyvenv.cfg").is_file():
        yield prefix
        for name in ("python", "python3"):
            base = walk(folder / name)[0]
            if base.is_file() and not base.is_relative_to(prefix):
                yield from _environment_of(base.parent)
    elif folder.name in ("bin", "sbin") and (prefix / "lib").is_dir() and prefix.name not in (".local", "usr"):
        yield prefix
