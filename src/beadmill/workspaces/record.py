"""git's record of a worktree, put right: the ``.git`` file, what the record says of itself, an index that is no index."""

from __future__ import annotations

from pathlib import Path

from beadmill.workspaces.tree import Tree, repo_of


def relink(tree: Tree) -> None:
    """Written again from what we know. A repository that somebody made in the tree is kept in ``runtime``."""
    link, record = Path(tree.path) / ".git", Path(tree.git_dir)
    _say(record / "gitdir", f"{link}\n")
    _say(record / "commondir", "../..\n")
    if link.is_dir() and not link.is_symlink():
        link.rename(free(Path(tree.workspace) / "runtime"))
    _say(link, f"gitdir: {record}\n")


def free(aside: Path) -> Path:
    return next(place for n in range(1, 1000) if not (place := aside / f"foreign-git-{n}").exists())


def _say(place: Path, text: str) -> None:
    if place.is_symlink() or _read(place) != text:
        place.unlink(missing_ok=True)
        place.write_text(text)


def _read(place: Path) -> str:
    try:
        return place.read_text(errors="surrogateescape")
    except OSError:
        return ""


async def mend_index(tree: Tree) -> None:
    """An index that git cannot read holds nothing that could be lost: it is made anew from HEAD, the files stay."""
    repo = repo_of(tree)
    if (await repo.git("ls-files", "--stage", "-z", ok=())).code:
        (repo.git_dir / "index").unlink(missing_ok=True)
        await repo.git("reset", "--quiet", "--mixed", ok=())
