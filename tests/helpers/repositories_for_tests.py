"""Git repositories as tests begin with them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def repository_in(folder: Path) -> Path:
    """A checkout with one commit on main and a bare ``origin`` beside it."""
    origin, path = folder / "origin.git", folder / "checkout"
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    (path / "README.md").write_text("sample\n")
    for step in (
        ("add", "."),
        ("commit", "-qm", "first"),
        ("remote", "add", "origin", str(origin)),
        ("push", "-qu", "origin", "main"),
    ):
        subprocess.run(["git", "-C", str(path), *step], check=True)
    return path


def with_submodule(checkout: Path) -> Path:
    """Gives the checkout of ``repository_in`` a submodule in vendor/sub, published and not filled; answers with the
    repository it comes from, which holds ``file``."""
    inner = checkout.parent / "inner"
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    (inner / "file").write_text("needed\n")
    for where, *step in (
        (inner, "add", "."),
        (inner, "commit", "-qm", "inner"),
        (checkout, "submodule", "--quiet", "add", "../inner", "vendor/sub"),
        (checkout, "commit", "-qm", "a submodule"),
        (checkout, "push", "-q", "origin", "main"),
        (checkout, "submodule", "--quiet", "deinit", "-f", "--all"),
    ):
        subprocess.run(["git", "-C", str(where), *step], check=True)
    return inner
