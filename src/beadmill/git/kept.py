"""Reading undo refs: what each keeps, since when, why, of which working folder, and what it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from beadmill.git import trees
from beadmill.git.run import Repo, decode
from beadmill.git.undo import LEFT_OUT, PLACE

FIELDS = ("refname", "objectname", "tree", "parent", "committerdate:unix", "contents")


@dataclass(frozen=True, slots=True)
class Touched:
    """A path that differs from the commit the state stood on. ``how`` is git's letter; ``size`` in bytes, 0 for gone."""

    path: str
    how: str
    blob: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """``head`` is what was checked out, "" in a repository without a commit. ``place`` is the working folder and
    ``when`` the moment, both "" for states that an earlier release kept. ``left_out`` was too big to be kept."""

    ref: str
    n: int
    commit: str
    tree: str
    head: str
    when: datetime | None
    why: str
    place: str = ""
    left_out: tuple[str, ...] = ()
    files: tuple[Touched, ...] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


async def listing(repo: Repo, prefix: str) -> tuple[Kept, ...]:
    """Every state below the prefix, by number, with the files it changes."""
    shape = "%00".join(f"%({field})" for field in FIELDS) + "%00"
    done = await repo.git("for-each-ref", f"--format={shape}", prefix)
    parts = [decode(part) for part in done.out.split(b"\0")]
    found = [_read(parts[i : i + len(FIELDS)]) for i in range(0, len(parts) - 1, len(FIELDS))]
    states = sorted((state for state in found if state is not None), key=lambda state: state.n)
    touched = await _touched(repo, states)
    sizes = await _sizes(repo, {file.blob for files in touched.values() for file in files if file.how != "D"})
    return tuple(_with_files(state, touched.get(state.commit, ()), sizes) for state in states)


def _with_files(state: Kept, files: Sequence[Touched], sizes: Mapping[str, int]) -> Kept:
    return replace(state, files=tuple(replace(file, size=sizes.get(file.blob, 0)) for file in files))


def _read(fields: Sequence[str]) -> Kept | None:
    """None for a ref that is no number: somebody else's."""
    ref, commit, tree, parents, at, message = fields
    name = ref.strip().rpartition("/")[2]
    if not name.isdigit():
        return None
    lines = message.splitlines()
    out = tuple(line.partition("): ")[2] for line in lines if line.startswith(LEFT_OUT))
    place = next((line.removeprefix(f"{PLACE}: ") for line in lines if line.startswith(f"{PLACE}: ")), "")
    when = datetime.fromtimestamp(int(at), UTC) if at and int(at) != trees.NEVER else None
    head = parents.split(" ")[0]
    why = lines[0] if lines else ""
    return Kept(ref.strip(), int(name), commit, tree, head, when, why, place, out)


async def _touched(repo: Repo, states: Sequence[Kept]) -> dict[str, tuple[Touched, ...]]:
    """Per commit, against the first parent alone: the second one is the index."""
    if not states:
        return {}
    lines = "".join(f"{state.commit} {state.head}".rstrip() + "\n" for state in states)
    flags = ("--stdin", "--root", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=dirty")
    done = await repo.git("diff-tree", *flags, input=lines.encode())
    return {commit: tuple(files) for commit, files in _commits(iter(done.fields))}


def _commits(fields: Iterator[str]) -> Iterator[tuple[str, list[Touched]]]:
    commit, files = "", list[Touched]()
    for field in fields:
        if field.startswith(":"):
            *_, blob, how = field.split(" ")
            files.append(Touched(next(fields), how[0], blob))
            continue
        if commit:
            yield commit, files
        commit, files = field.strip(), []
    if commit:
        yield commit, files


async def _sizes(repo: Repo, blobs: set[str]) -> dict[str, int]:
    """In bytes; what is no blob of this repository (a submodule's commit) has none."""
    asked = "".join(f"{blob}\n" for blob in sorted(blobs))
    done = await repo.git("cat-file", "--batch-check=%(objectname) %(objectsize)", input=asked.encode())
    pairs = (line.split(" ") for line in done.text.splitlines())
    return {name: int(size) for name, size in pairs if size.isdigit()}


async def holders(repo: Repo, commit: str, *, but: str = "") -> tuple[str, ...]:
    """The refs (branches, tags, remote branches, undo refs) from which ``commit`` can be reached, ``but`` left out."""
    done = await repo.git("for-each-ref", "--format=%(refname)", "--contains", commit)
    return tuple(ref for ref in done.text.splitlines() if ref != but)
