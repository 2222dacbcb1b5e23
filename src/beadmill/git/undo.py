"""Undo refs: the whole working state kept as a commit before anything destructive, and brought back exactly.

``<prefix>/<n>`` names a commit whose tree is the working state (tracked and untracked, ignored files not), whose first
parent is HEAD, and whose second parent holds the index (missing while the index has conflicts). Its message says why,
what was left out, and of which working folder it is (git/kept.py reads that).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import NotFound, Stale
from beadmill.git import commits, refs, trees
from beadmill.git.run import Repo

PLACE = "Beadmill-Tree"  # the trailer that names the working folder
LEFT_OUT = "not kept (over"
LIMIT = 100 * 1024 * 1024  # bytes; a bigger untracked file is named in the undo commit, not kept


async def save(repo: Repo, prefix: str, *, why: str, scratch: Path, limit: int | None = None, key: str = "") -> str:
    """Keeps the working state and answers with its ref; a state that is kept already keeps its ref.

    With a ``key`` the answer is the first state: an act that is done once more has changed the tree already. What a
    person changed since is kept beside it.
    """
    limit = LIMIT if limit is None else limit
    first = await of_key(repo, prefix, key) if key else ""
    head = await refs.commit(repo, "HEAD")
    state = await trees.working(repo, scratch, limit=limit)
    parents = [head] if head else []
    if state.index:
        parents.append(await trees.bare_commit(repo, state.index, message="index"))
    kept = next((name for name, had in (await _known(repo, prefix)).items() if had == (state.tree, parents)), "")
    if first and (kept or await _bare(repo, head, state)):
        return first
    if kept and not key:
        return kept
    left = "".join(f"\n{LEFT_OUT} {limit} bytes): {path}" for path in state.left_out)
    marks = ({PLACE: str(repo.work_tree)} if repo.work_tree and "\n" not in str(repo.work_tree) else {}) | (
        {commits.KEY: key} if key and not first else {}
    )
    message = commits.message_of(f"{why}{left}", marks)
    commit = await trees.bare_commit(repo, state.tree, *parents, message=message, at=int(time.time()))
    crashpoints.reach("git.undo")
    made = await _write(repo, prefix, commit, why=why)
    return first or made


async def _bare(repo: Repo, head: str, state: trees.Working) -> bool:
    """Nothing that the commit at HEAD does not hold."""
    return bool(head) and not state.left_out and {state.tree, state.index} == {await refs.tree(repo, head)}


async def of_key(repo: Repo, prefix: str, key: str) -> str:
    """The ref of the state that was kept under ``key``; "" for none."""
    shape = f"--format=%(refname) %(contents:trailers:key={commits.KEY},valueonly,separator=%2C)"
    done = await repo.git("for-each-ref", shape, prefix)
    found = (line.partition(" ") for line in done.text.splitlines())
    return next((name for name, _, keys in found if keys.strip() == key), "")


async def _known(repo: Repo, prefix: str) -> dict[str, tuple[str, list[str]]]:
    """Tree and parents of every kept state."""
    done = await repo.git("for-each-ref", "--format=%(refname) %(tree) %(parent)", prefix)
    lines = (line.split(" ") for line in done.text.splitlines())
    return {name: (tree, [p for p in parents if p]) for name, tree, *parents in lines}


async def _write(repo: Repo, prefix: str, commit: str, *, why: str) -> str:
    taken = await refs.listing(repo, prefix)
    number = max((int(name.rpartition("/")[2]) for name in taken if name.rpartition("/")[2].isdigit()), default=0) + 1
    while True:
        ref = f"{prefix}/{number}"
        try:
            await refs.update(repo, ref, commit, old="", why=f"beadmill: {why}")
        except Stale:
            number += 1
        else:
            return ref


async def set_aside(repo: Repo, scratch: Path, *, limit: int | None = None) -> Path | None:
    """Moves what no undo ref keeps out of the tree, to ``<scratch>/set-aside/<n>``; None = there was nothing."""
    names = await trees.unkept(repo, LIMIT if limit is None else limit)
    return _move(repo.work_tree, scratch / "set-aside", names) if names and repo.work_tree else None


def _move(root: Path, aside: Path, names: Sequence[str]) -> Path:
    place = next(place for n in range(1, 100_000) if not (place := aside / str(n)).exists())
    for name in names:
        (place / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (root / name).rename(place / name)
    return place


async def restore(repo: Repo, ref: str) -> None:
    """Brings back HEAD, index and every file of an undo ref; untracked files it does not know go, ignored ones stay.

    Raises NotFound. The caller keeps the present state first.
    """
    commit = await refs.commit(repo, ref)
    if not commit:
        raise NotFound(
            f"there is no undo ref {ref}", code="NO_UNDO", next="List them with git for-each-ref refs/beadmill/undo."
        )
    parents = (await repo.git("log", "-1", "--format=%P", commit)).text.split()
    crashpoints.reach("git.reset")
    await repo.git("read-tree", "--reset", "-u", commit)
    await repo.git("clean", "-fdq")
    if parents:
        await repo.git("update-ref", "-m", f"beadmill: back to {ref}", "HEAD", parents[0])
    if len(parents) > 1:
        await repo.git("read-tree", parents[1])
    elif parents:
        await repo.git("read-tree", parents[0])
    await repo.git("update-index", "-q", "--refresh", ok=())
    crashpoints.reach("git.reset")
