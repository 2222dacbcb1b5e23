"""Files that a repository keeps in LFS: git holds a pointer of three lines, their content lies elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from beadmill.errors import Refused
from beadmill.git.run import Repo, encode

POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize \d+\n"
)
LARGEST = 1024  # bytes of a pointer


async def tracked(repo: Repo, paths: Sequence[str] | None = None) -> tuple[str, ...]:
    """Which of these paths (None = all in the index) the attributes say are kept in LFS."""
    assert repo.work_tree is not None
    given = (await repo.git("ls-files", "-z")).out if paths is None else b"".join(encode(p) + b"\0" for p in paths)
    done = await repo.git("check-attr", "-z", "--stdin", "filter", input=given)
    return tuple(path for path, value in zip(done.fields[::3], done.fields[2::3], strict=True) if value == "lfs")


def is_pointer(path: Path) -> bool:
    """The file holds the pointer in place of the content."""
    try:
        with path.open("rb") as file:
            return POINTER.fullmatch(file.read(LARGEST + 1)) is not None
    except OSError:
        return False


async def check(repo: Repo, before: str, after: str, paths: Sequence[str]) -> None:
    """Raises Refused when the tree ``after`` holds, for one of these paths that LFS keeps, its raw content, or a pointer
    that is not ``before``'s and whose content is nowhere on this machine."""
    for path in await tracked(repo, paths) if paths else ():
        old, new = await _blob(repo, before, path), await _blob(repo, after, path)
        if new is None or new == old or (old is not None and POINTER.fullmatch(old) is None):
            continue  # gone, unchanged, or never was in LFS whatever the attributes say
        found = POINTER.fullmatch(new)
        if found is None:
            raise _refused(path, "its content would go into git itself, because git-lfs did not take it")
        if not await _stored(repo, found[1].decode()):
            raise _refused(path, "its pointer was changed by hand, and nobody could fetch what it names")


async def _blob(repo: Repo, tree: str, path: str) -> bytes | None:
    """The blob, cut where no pointer is longer; None when there is none."""
    size = await repo.git("cat-file", "-s", f"{tree}:{path}", ok=())
    if size.code:
        return None
    if int(size.text) > LARGEST:
        return (await repo.git("rev-parse", f"{tree}:{path}")).out
    return (await repo.git("cat-file", "blob", f"{tree}:{path}")).out


async def _stored(repo: Repo, oid: str) -> bool:
    elsewhere = await repo.git("config", "--get", "lfs.storage", ok=(0, 1))
    place = repo.common / (elsewhere.text or "lfs") / "objects" / oid[:2] / oid[2:4] / oid
    return place.is_file()


def _refused(path: str, why: str) -> Refused:
    return Refused(
        f"{path!r} is kept in LFS: {why}",
        code="LFS_CONTENT",
        details={"path": path},
        kept="Nothing was committed.",
        next="Install git-lfs and run `git lfs install`, or leave that file as it was; then retry.",
    )
