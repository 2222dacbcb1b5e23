"""Did somebody touch the user's checkout? What an agent must not change there, as one comparable value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beadmill.git.run import STRANGERS, Repo, discover

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


async def snapshot(repository: str | Path, *, ours: Sequence[str] = ()) -> CheckoutState:
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
        hooks=_folder(await _hooks(repo)),
        config=_files((repo.common / "config", repo.git_dir / "config.worktree", repo.common / "info" / "exclude")),
    )


def compare(before: CheckoutState, after: CheckoutState) -> tuple[str, ...]:
    """One sentence per thing that changed; empty = untouched."""
    found = []
    if before.head != after.head:
        found.append(f"HEAD moved from {before.head.strip()} to {after.head.strip()}")
    if before.index != after.index:
        found.append("the index changed")
    found += [f"the file {path!r} changed" for path in _differing(before.files, after.files)]
    found += [f"the ref {name} changed" for name in _differing(before.refs, after.refs)]
    if before.hooks != after.hooks:
        found.append("the hooks changed")
    if before.config != after.config:
        found.append("the configuration changed")
    return tuple(found)


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


async def _hooks(repo: Repo) -> Path:
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
