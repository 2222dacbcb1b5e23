"""Tree objects: the working state as a tree, three-way merges without a checkout, proof that a base holds a change."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from beadmill.git import refs
from beadmill.git.run import Repo, encode, failed, z

GITLINK = "160000"
TAKE = ("--add", "--remove", "--replace")  # paths into an index as they are now
NEVER = 1  # the second of the epoch that stands for no time
NOBODY = {
    "GIT_AUTHOR_NAME": "Beadmill",
    "GIT_AUTHOR_EMAIL": "beadmill@localhost",
    "GIT_AUTHOR_DATE": "@1 +0000",
    "GIT_COMMITTER_NAME": "Beadmill",
    "GIT_COMMITTER_EMAIL": "beadmill@localhost",
    "GIT_COMMITTER_DATE": "@1 +0000",
}  # objects that never reach a branch: the same content is the same commit


@dataclass(frozen=True, slots=True)
class Working:
    """The state of a working folder. ``tree`` holds tracked and untracked files, ignored ones not; ``index`` is the
    tree of the index, "" while it holds conflicts; ``left_out`` are untracked files over the size limit."""

    tree: str
    index: str
    left_out: tuple[str, ...] = ()


@asynccontextmanager
async def scratch_index(repo: Repo, scratch: Path, *, copy: bool) -> AsyncIterator[Mapping[str, str]]:
    """An environment with an index of its own, so the real one is not touched. ``copy`` starts from the real one."""
    with _folder(scratch) as folder:
        if copy:
            _copy_index(repo, folder)
        yield {"GIT_INDEX_FILE": str(folder / "index")}


@contextmanager
def _folder(scratch: Path) -> Iterator[Path]:
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="index-", dir=scratch) as folder:
        yield Path(folder)


def _copy_index(repo: Repo, folder: Path) -> None:
    real = repo.git_dir / "index"
    if real.exists():
        shutil.copy2(real, folder / "index")


async def working(repo: Repo, scratch: Path, *, limit: int | None = None) -> Working:
    """Writes the working state as trees. ``limit`` is the size in bytes above which untracked files stay out."""
    async with scratch_index(repo, scratch, copy=True) as env:
        index = await repo.git("write-tree", env=env, ok=())  # conflicts in the index have no tree
        flagged = await _hidden(repo, env)
        await _stage(repo, env, flagged, "--no-assume-unchanged")
        updated = await _update(repo, env)
        kept, left_out = _by_size(repo, await untracked(repo, env), limit)
        await _stage(repo, env, kept, *TAKE)
        same = index.code == 0 and not (flagged or updated or kept)
        tree = index.text if same else (await repo.git("write-tree", env=env)).text
    return Working(tree, index.text if index.code == 0 else "", left_out)


async def _update(repo: Repo, env: Mapping[str, str]) -> bool:
    """Tracked files as they are; False = the index has them so. ``git add --update`` would run git, by a configuration
    that anybody may have written, inside every folder that the index says is a repository."""
    done = await repo.git("diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty", env=env)
    paths = tuple(dict.fromkeys(done.fields))
    present = tuple(path for path in paths if _is_file(repo, path))
    absent = tuple(path for path in paths if path not in set(present))
    await _stage(repo, env, absent, "--force-remove")
    await _stage(repo, env, present, *TAKE)
    return bool(paths)


async def _stage(repo: Repo, env: Mapping[str, str], paths: Sequence[str], *how: str) -> None:
    if paths:
        await repo.git("update-index", "-z", *how, "--stdin", input=z(paths), env=env)


async def untracked(repo: Repo, env: Mapping[str, str]) -> tuple[str, ...]:
    """Untracked files that are not ignored. A repository inside the tree is nobody's file: it stays out."""
    done = await repo.git("ls-files", "-z", "--others", "--exclude-standard", env=env)
    return tuple(path for path in done.fields if not path.endswith("/"))


async def nested(repo: Repo) -> tuple[str, ...]:
    """Folders that are git repositories of their own and neither tracked nor ignored."""
    done = await repo.git("ls-files", "-z", "--others", "--exclude-standard")
    return tuple(path.rstrip("/") for path in done.fields if path.endswith("/"))


async def unkept(repo: Repo, limit: int) -> tuple[str, ...]:
    """What no undo ref keeps and a clean-up would delete: inner repositories and untracked files over ``limit``."""
    return (*await nested(repo), *_by_size(repo, await untracked(repo, {}), limit)[1])


async def _hidden(repo: Repo, env: Mapping[str, str]) -> tuple[str, ...]:
    """Paths marked assume-unchanged: changes in them would stay unseen."""
    done = await repo.git("ls-files", "-z", "-v", env=env)
    return tuple(entry[2:] for entry in done.fields if entry[0].islower())


def _by_size(repo: Repo, paths: Sequence[str], limit: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if limit is None or repo.work_tree is None:
        return tuple(paths), ()
    big = tuple(path for path in paths if _size(repo.work_tree / path) > limit)
    return tuple(path for path in paths if path not in big), big


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # gone meanwhile
        return 0


async def with_paths(repo: Repo, scratch: Path, base: str, paths: Sequence[str]) -> str:
    """The tree of ``base`` with exactly these paths as they are in the working folder (absent = deleted)."""
    present = tuple(path for path in paths if _is_file(repo, path))
    absent = tuple(path for path in paths if path not in set(present))
    async with scratch_index(repo, scratch, copy=False) as env:
        await repo.git("read-tree", base, env=env)
        await _stage(repo, env, absent, "--force-remove")
        await _stage(repo, env, present, "--add", "--replace")
        return (await repo.git("write-tree", env=env)).text


def _is_file(repo: Repo, path: str) -> bool:
    """A file or link at exactly this place; a path through a link is not inside the tree."""
    assert repo.work_tree is not None
    place = repo.work_tree
    *folders, name = path.split("/")
    for folder in folders:
        place /= folder
        if place.is_symlink() or not place.is_dir():
            return False
    place /= name
    return place.is_symlink() or (place.exists() and (not place.is_dir() or (place / ".git").exists()))


async def changed(repo: Repo, before: str, after: str) -> tuple[str, ...]:
    """Paths that differ between two trees or commits; a rename is two paths."""
    return (await repo.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)).fields


async def new_gitlinks(repo: Repo, before: str, after: str) -> tuple[str, ...]:
    """Paths that ``after`` records as repositories inside the tree and ``before`` does not."""
    done = await repo.git("diff-tree", "-r", "-z", "--no-renames", before, after)
    modes, paths = done.fields[::2], done.fields[1::2]
    return tuple(path for mode, path in zip(modes, paths, strict=True) if _gains_link(mode))


def _gains_link(entry: str) -> bool:
    old, new, *_ = entry.split(" ")
    return new == GITLINK and old != f":{GITLINK}"


@dataclass(frozen=True, slots=True)
class Merged:
    """``conflicts`` are paths; empty = ``tree`` is the clean result."""

    tree: str
    conflicts: tuple[str, ...] = ()


async def merge(repo: Repo, ours: str, theirs: str) -> Merged:
    """Merges two commits by their merge base, in the object store alone."""
    done = await repo.git("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, ok=(0, 1))
    tree, *conflicts = done.fields
    return Merged(tree, tuple(dict.fromkeys(conflicts)) if done.code else ())


async def merge_trees(repo: Repo, base: str, ours: str, theirs: str) -> Merged:
    """A three-way merge of trees: ``theirs`` minus ``base`` put on ``ours``."""
    root = await bare_commit(repo, base)
    return await merge(repo, await bare_commit(repo, ours, root), await bare_commit(repo, theirs, root))


async def bare_commit(repo: Repo, tree: str, *parents: str, message: str = "tree", at: int = NEVER) -> str:
    """A commit object by nobody, ``at`` a moment of the epoch or at no time. ``tree`` may be a commit: its tree is
    meant."""
    flags = [part for parent in parents for part in ("-p", parent)]
    env = NOBODY | {"GIT_COMMITTER_DATE": f"@{at} +0000"}
    data = encode(message)
    return (await repo.git("commit-tree", f"{tree}^{{tree}}", *flags, input=data, env=env)).text


@dataclass(frozen=True, slots=True)
class Landed:
    """``how`` is merge, squash, rebase, or "" for not there; ``sha`` is the commit on the base that brought it."""

    how: str = ""
    sha: str = ""


async def contains(repo: Repo, base_ref: str, head: str, *, tree: str = "") -> str:
    """How the base contains the change: "merge", "squash", "rebase", "" = it does not. ``tree`` is the tree the change
    was approved with, "" = the head's own."""
    return (await landed(repo, base_ref, head, tree=tree)).how


async def landed(repo: Repo, base_ref: str, head: str, *, tree: str = "") -> Landed:
    """Looks for the head itself, then for its patches one by one, then for their sum, then for its tree.

    Raises GitFailed when ``head`` or ``base_ref`` is not in this repository.
    """
    if await refs.is_ancestor(repo, head, base_ref):
        return Landed("merge", await _brought(repo, base_ref, head))
    fork = await repo.git("merge-base", base_ref, head, ok=(0, 1))
    if fork.code:
        return Landed()
    own, theirs = await _patches(repo, fork.text, head), await _patches(repo, fork.text, base_ref)
    if len(own) > 1 and set(own.values()) <= set(theirs.values()):
        newest = next(iter(own.values()))
        return Landed("rebase", next(sha for sha, patch in theirs.items() if patch == newest))
    return await _squashed(repo, (fork.text, base_ref, head), own, theirs, tree=tree)


async def _squashed(
    repo: Repo, ends: tuple[str, str, str], own: Mapping[str, str], theirs: Mapping[str, str], *, tree: str
) -> Landed:
    fork, base_ref, head = ends
    whole = await patch_id(repo, fork, head)
    for sha, patch in theirs.items():
        if whole and patch == whole:
            return Landed(await _one(repo, own, head, sha), sha)
    wanted = tree or await refs.tree(repo, head)
    if not whole or wanted == await refs.tree(repo, fork):
        return Landed()
    history = await repo.git("log", "--format=%H %T", f"{fork}..{base_ref}")
    for line in history.text.splitlines():
        sha, found = line.split(" ")
        if found == wanted:
            return Landed("squash", sha)
    return Landed()


async def _one(repo: Repo, own: Mapping[str, str], head: str, sha: str) -> str:
    """A single commit that landed as another: with its own author and words it was rebased, else squashed."""
    if len(own) != 1:
        return "squash"
    words = [(await repo.git("log", "-1", "--format=%an%n%ae%n%B", rev)).text for rev in (head, sha)]
    return "rebase" if words[0] == words[1] else "squash"


async def _brought(repo: Repo, base_ref: str, head: str) -> str:
    """The oldest commit on the base's first-parent line that has ``head``."""
    done = await repo.git("rev-list", "--first-parent", "--ancestry-path", "--reverse", f"{head}..{base_ref}")
    for sha in done.text.splitlines():
        if await refs.is_ancestor(repo, head, sha):
            return sha
    return await refs.commit(repo, base_ref)


async def _patches(repo: Repo, fork: str, tip: str) -> dict[str, str]:
    """Commit → patch id from ``fork`` to ``tip``, newest first, merges left out."""
    shown = await repo.git("log", "-p", "--no-merges", *PLAIN, "--format=commit %H", f"{fork}..{tip}")
    return await _ids(repo, shown.out)


async def patch_id(repo: Repo, before: str, after: str) -> str:
    """The same for the same change on another base; "" for no change."""
    shown = await repo.git("diff-tree", "-r", "-p", *PLAIN, before, after)
    return next(iter((await _ids(repo, shown.out)).values()), "")


PLAIN = ("--no-ext-diff", "--no-textconv", "--full-index", "--binary", "--no-color", "--no-renames")


async def _ids(repo: Repo, patch: bytes) -> dict[str, str]:
    if not patch:
        return {}
    done = await repo.git("patch-id", "--stable", input=patch)
    pairs = (line.split(" ") for line in done.text.splitlines())
    return {commit: patch_id for patch_id, commit in pairs}


async def exists(repo: Repo, sha: str) -> bool:
    done = await repo.git("cat-file", "-e", sha, ok=())
    if done.code not in (0, 1, 128):
        raise failed("cat-file", done)
    return done.code == 0
