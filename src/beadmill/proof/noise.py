"""Which changed paths are meant: tracked changes always, untracked files unless they are generated (reference §9.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

FOLDERS = frozenset({
    "node_modules", "dist", "build", "out", "coverage", "htmlcov", "target", ".venv", "venv", "__pycache__", ".cache",
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".gradle", ".next", ".turbo", "tmp", "logs", "bin", "obj",
})  # fmt: skip
NAMES = ("*.log", "*.pyc", ".env", ".env.*", ".DS_Store", ".coverage", ".coverage.*", "*.egg-info", "*.tsbuildinfo")


def is_noise(path: str) -> bool:
    """True for what tools generate; only ever asked about untracked files."""
    parts = PurePosixPath(path).parts
    if any(part in FOLDERS or part.endswith(".egg-info") for part in parts[:-1]):
        return True
    return any(fnmatchcase(parts[-1], pattern) for pattern in NAMES)


def meant(
    changed: Iterable[str], *, untracked: Collection[str], inputs: Collection[str], wanted: Collection[str]
) -> tuple[str, ...]:
    """The paths a commit may take, sorted. ``inputs`` are copied workspace files, ``wanted`` the plan's target files:
    an untracked file counts as generated only when the plan does not name it."""

    def is_meant(path: str) -> bool:
        if path not in untracked:
            return True
        return not _under(path, inputs) and (path in wanted or not is_noise(path))

    return tuple(sorted(path for path in changed if is_meant(path)))


def _under(path: str, roots: Collection[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
