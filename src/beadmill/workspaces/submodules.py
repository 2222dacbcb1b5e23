"""What submodules of a worktree hold that is nowhere else. They go with the worktree: git keeps their commits inside its
record of it, so a removal that looked at the worktree alone would lose them."""

from __future__ import annotations

import re
from pathlib import Path

from beadmill.errors import BeadmillError
from beadmill.git import refs
from beadmill.git.run import STRANGERS, Repo
from beadmill.git.trees import GITLINK
from beadmill.workspaces.tree import Tree, repo_of

# What a submodule's own configuration holds when git wrote it. With more (a filter, say) git could run a program there.
PLAIN = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|worktree|ignorecase|precomposeunicode|symlinks)"
    r"|remote\..*\.(?:url|fetch)|branch\..*\.(?:remote|merge)|submodule\..*\.(?:url|active)",
    re.DOTALL,
)
MARKS = {"??": "not added", "!!": "ignored"}


async def unsaved(tree: Tree) -> tuple[str, ...]:
    """In words, per submodule; () = nothing would be lost. What cannot be looked at counts as something."""
    return await _below(repo_of(tree), "")


async def _below(repo: Repo, prefix: str) -> tuple[str, ...]:
    staged = await repo.git("ls-files", "--stage", "-z")
    paths = [entry.partition("\t")[2] for entry in staged.fields if entry.startswith(GITLINK)]
    found = [await _one(repo, path, f"{prefix}{path}") for path in dict.fromkeys(paths)]
    return tuple(line for lines in found for line in lines)


async def _one(repo: Repo, path: str, name: str) -> tuple[str, ...]:
    assert repo.work_tree is not None
    place = repo.work_tree / path
    if place.is_symlink() or not place.is_dir() or not any(place.iterdir()):
        return ()  # never checked out: a link is kept with the files of the worktree
    try:
        git_dir = _git_dir(place, repo.git_dir / "modules")
        if git_dir is None:
            return (f"{name}: its .git is not the one that git made",)
        odd = await _odd(repo, git_dir)
        if odd:
            return (f"{name}: it has settings of its own ({odd})",)
        own = Repo(git_dir, place)
        return (*await _held(own, name), *await _below(own, f"{name}/"))
    except (BeadmillError, OSError) as error:
        return (f"{name}: it cannot be looked at ({error})",)


def _git_dir(place: Path, modules: Path) -> Path | None:
    link = place / ".git"
    if link.is_symlink() or not link.exists():
        return None
    if link.is_dir():
        return link.resolve()
    target = (place / link.read_text(errors="surrogateescape").removeprefix("gitdir: ").rstrip("\n")).resolve()
    return target if target.is_relative_to(modules.resolve()) else None


async def _odd(repo: Repo, git_dir: Path) -> str:
    """Settings that git itself does not write, read without obeying them."""
    done = await Repo(repo.common, None).git("config", "--file", str(git_dir / "config"), "--list", "--name-only", "-z")
    return ", ".join(name for name in done.fields if not PLAIN.fullmatch(name))


async def _held(own: Repo, name: str) -> tuple[str, ...]:
    flags = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
    entries = (await own.git("status", *flags, *STRANGERS)).fields
    said = [f"{name}/{entry[3:]}: {MARKS.get(entry[:2], 'not committed')}" for entry in entries]
    count = (await own.git("rev-list", "--count", "HEAD", "--branches", "--not", "--remotes")).text
    if count != "0":
        said.append(f"{name}: {count} commit(s) that are not pushed")
    if await refs.commit(own, "refs/stash"):
        said.append(f"{name}: a stash")
    return tuple(said)
