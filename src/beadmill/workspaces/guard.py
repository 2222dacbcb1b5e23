"""Did somebody touch the user's checkout? What an agent must not change there, as one comparable value, and how a
person takes it back. Nothing here writes to the checkout."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beadmill.git import refs, trees
from beadmill.git.run import STRANGERS, Repo, discover

SHARED = ("config", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "shallow")
KEPT = 5 * 1024 * 1024  # bytes of one untracked file of the user that is kept before an agent works
OURS = ("refs/beadmill/", "refs/heads/beadmill/", "refs/stash-beadmill")


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """Hashes and names only: it may be stored. ``files`` is dirty path → code, size and time; ``refs`` leaves ours out."""

    head: str
    index: str
    files: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    hooks: str = ""
    config: str = ""
    kept: str = ""  # the ref that holds the uncommitted work as it was, "" = there was none


@dataclass(frozen=True, slots=True)
class Change:
    """``what`` it is: head, index, file, ref, hooks, config; ``undo`` is a command for the person, "" = look yourself.
    ``new`` says that there was nothing before."""

    what: str
    said: str
    undo: str = ""
    new: bool = False


async def snapshot(repository: str | Path, *, ours: Sequence[str] = (), kept: str = "") -> CheckoutState:
    """``ours`` are further branches that belong to tickets (a project may name them otherwise than ``beadmill/…``)."""
    repo = await discover(Path(repository))
    head = await repo.git("rev-parse", "HEAD", ok=(0, 128))
    branch = await repo.git("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    index = await repo.git("ls-files", "-z", "--stage", "-t")
    status = await repo.git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", *STRANGERS)
    return CheckoutState(
        head=f"{branch.text} {head.text}",
        index=hashlib.sha256(index.out).hexdigest(),
        files={entry[3:]: f"{entry[:2]} {_stamp(repo, entry[3:])}" for entry in status.fields},
        refs=await _refs(repo, ours),
        hooks=_folder(await hooks_of(repo)),
        config=_files([repo.common / name for name in SHARED] + [repo.git_dir / "config.worktree"]),
        kept=kept,
    )


async def keep(repository: str | Path, ref: str, scratch: Path) -> str:
    """The checkout's uncommitted work, kept under ``ref`` of ours by objects alone; "" when there is none."""
    repo = await discover(Path(repository))
    state = await trees.working(repo, scratch, limit=KEPT)
    head = await refs.commit(repo, "HEAD")
    if not head or state.tree == await refs.tree(repo, head):
        return ""
    made = await trees.bare_commit(repo, state.tree, head, message="the checkout before an agent worked")
    await refs.update(repo, ref, made)
    return ref


def compare(before: CheckoutState, after: CheckoutState) -> tuple[str, ...]:
    """One sentence per thing that changed; empty = untouched."""
    return tuple(change.said for change in changes(before, after))


def changes(before: CheckoutState, after: CheckoutState, *, at: str = ".") -> tuple[Change, ...]:
    """``at`` is the checkout, for the commands that take a change back."""
    git = f"git -C {shlex.quote(at)}"
    found: list[Change] = []
    if before.head != after.head:
        found.append(_head(before.head, after.head, git))
    if before.index != after.index:
        found.append(Change("index", "the index changed", f"{git} reset"))
    for path in _differing(before.files, after.files):
        source = before.kept if path in before.files else before.head.split(" ")[-1]
        undo = f"{git} restore --source={source} -- {shlex.quote(path)}" if source and not _added(after, path) else ""
        found.append(Change("file", f"the file {path!r} changed", undo, new=_added(after, path)))
    for name in _differing(before.refs, after.refs):
        old = before.refs.get(name, "").split(" ")[0]
        undo = f"{git} update-ref {name} {old}" if old else f"{git} update-ref -d {name}"
        found.append(Change("ref", f"the ref {name} changed", undo, new=not old))
    if before.hooks != after.hooks:
        found.append(Change("hooks", "the hooks changed"))
    if before.config != after.config:
        found.append(Change("config", "the configuration changed", f"{git} config --local --edit"))
    return tuple(found)


def _head(before: str, after: str, git: str) -> Change:
    branch, _, sha = before.partition(" ")
    name = branch.removeprefix("refs/heads/")
    undo = f"{git} switch {name}" if name and not after.startswith(f"{branch} ") else f"{git} reset --keep {sha}"
    return Change("head", f"HEAD moved from {before.strip()} to {after.strip()}", undo)


def _added(after: CheckoutState, path: str) -> bool:
    return after.files.get(path, "").startswith("??")


async def siblings(repository: str | Path, own: str, *, since: float) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Other worktrees of the repository with the uncommitted files that were written after ``since`` (epoch seconds)."""
    repo = await discover(Path(repository))
    found = []
    for record in sorted((repo.common / "worktrees").glob("*")):
        place = _place(record)
        if place is None or str(place) == own or not place.is_dir():
            continue
        there = Repo(record, place, repo.common)
        status = await there.git(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", *STRANGERS, ok=()
        )
        paths = tuple(entry[3:] for entry in status.fields if _written(place / entry[3:]) >= since)
        found.append((str(place), paths))
    return tuple(found)


def _place(record: Path) -> Path | None:
    try:
        return Path((record / "gitdir").read_text(errors="surrogateescape").rstrip("\n")).parent
    except OSError:
        return None


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


async def _refs(repo: Repo, ours: Sequence[str]) -> dict[str, str]:
    done = await repo.git("for-each-ref", "--format=%(refname) %(objectname) %(symref)")
    names = tuple(f"heads/{branch}" for branch in ours)
    found = {}
    for line in done.text.splitlines():
        name, _, value = line.partition(" ")
        tracking = name.startswith("refs/remotes/") and name.split("/", 3)[-1].startswith("beadmill/")
        mine = any(name == f"refs/{end}" or name.endswith(end.removeprefix("heads")) for end in names)
        if not (name.startswith(OURS) or tracking or mine):
            found[name] = value
    return found


async def hooks_of(repo: Repo) -> Path:
    """The folder of the user's hooks: the repository's setting without our own override."""
    done = await repo.git("config", "--local", "--get", "core.hooksPath", ok=(0, 1))
    if not done.text:
        return repo.common / "hooks"
    return (repo.work_tree or repo.git_dir) / done.text


def _stamp(repo: Repo, path: str) -> str:
    assert repo.work_tree is not None
    try:
        found = (repo.work_tree / path).lstat()
    except OSError:
        return "gone"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _folder(folder: Path) -> str:
    return _files(sorted(path for path in folder.rglob("*") if path.is_file())) if folder.is_dir() else ""


def _files(paths: Sequence[Path]) -> str:
    """A hash over names, modes and bytes."""
    total = hashlib.sha256()
    for path in paths:
        if path.is_file():
            body = path.read_bytes()
            total.update(f"{path.name} {path.stat().st_mode:o} {len(body)}\n".encode(errors="surrogateescape") + body)
    return total.hexdigest()
