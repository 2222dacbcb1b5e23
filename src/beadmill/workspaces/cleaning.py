"""Removing worktrees that nobody needs: what each holds that is nowhere else, and the removal, which looks again first.

A worktree goes only when its whole state is on a ref that stays, or was put behind an undo ref just before. Branches
stay, and so does the record of the tree: a rerun makes the worktree again from its branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from beadmill import crashpoints
from beadmill.errors import BeadmillError, Conflict
from beadmill.git import kept, locks, refs, trees, undo
from beadmill.git.run import Repo, encode
from beadmill.workspaces import lanes, leftovers, record, states, submodules
from beadmill.workspaces.opening import drop_record
from beadmill.workspaces.tree import Tree, lock_of, read_marker, repo_of, sweep
from beadmill.workspaces.worktrees import Worktrees

Verdict = Literal["ready", "ask", "keep"]


@dataclass(frozen=True, slots=True)
class Look:
    """``ready``: nothing would be lost. ``ask``: ``loses`` would be, so only a person who names it may. ``keep``: it
    stays, ``why`` says why. ``mark`` changes with anything that lies there."""

    place: Path
    tree: Tree | None
    verdict: Verdict
    why: str
    loses: tuple[str, ...] = ()
    size: int = 0
    mark: str = ""
    head: str = ""
    state: tuple[str, str] = ("", "")  # the trees of the files and of the index
    bare: bool = False
    broken: bool = False


async def look(workspace: Path, repository: str = "") -> Look | None:
    """At the tree of a workspace or a lane; None = there is none. ``repository`` is what our records say, "" = ask the
    tree's own. Changes nothing but git's store of objects."""
    path = workspace / "tree"
    if not path.exists() and not path.is_symlink():
        return None
    weight = leftovers.weigh(path)
    try:
        tree = _ours(workspace, repository)
        broken = await _registered(tree)
        found = await _broken(tree) if broken else await _whole(tree)
    except (BeadmillError, OSError) as error:
        return Look(path, None, "keep", str(error), size=weight.size, mark=weight.mark)
    verdict, why, loses, facts = found
    inode = str(leftovers.inode(path))
    mark = hashlib.sha256("\0".join([inode, *facts, *loses]).encode(errors="surrogateescape")).hexdigest()
    seen = Look(path, tree, verdict, why, loses, size=weight.size, mark=mark, broken=broken)
    if broken:
        return seen
    head, bare, _tip, files, index = facts[:5]
    return replace(seen, head=head, bare=bare == "bare", state=(files, index))


Found = tuple[Verdict, str, tuple[str, ...], Sequence[str]]


def _ours(workspace: Path, repository: str) -> Tree:
    """The tree by its marker, believed only where it says what its own place says. Raises Conflict."""
    leftovers.inside(workspace / "tree", workspace)
    tree = read_marker(workspace, "tree")
    if tree is None:
        raise Conflict("nothing says whose worktree this is", code="NO_MARKER")
    place = (str(workspace / "tree"), str(workspace))
    if (tree.path, tree.workspace) != place or (repository and tree.repository != repository):
        raise Conflict("its record speaks of another place", code="OTHER_PLACE")
    return tree


async def _registered(tree: Tree) -> bool:
    """Whether git's record of the tree is gone. Raises Conflict when git says that it is another's, or locked."""
    repo = await states.repository(tree.repository)
    if Path(tree.git_dir).parent != repo.common / "worktrees":
        raise Conflict("its record is not one of its repository", code="OTHER_PLACE")
    listed = (await repo.git("worktree", "list", "--porcelain", "-z")).out.split(b"\0\0")
    mine = next((e for e in listed if e.split(b"\0")[0].strip(b"\0") == b"worktree " + encode(tree.path)), None)
    if mine is not None and any(line.startswith(b"locked") for line in mine.split(b"\0")):
        raise Conflict("somebody locked it (git worktree lock)", code="LOCKED_TREE")
    if not _recorded(tree):
        return True
    if mine is None:
        raise Conflict("git does not list it among the worktrees of its repository", code="OTHER_PLACE")
    return False


def _recorded(tree: Tree) -> bool:
    """Whether git has a record of the tree. Raises Conflict when that is of another folder."""
    points = Path(tree.git_dir) / "gitdir"
    if points.is_file() and points.read_text().rstrip("\n") != f"{tree.path}/.git":
        raise Conflict("git's record of it is of another folder", code="OTHER_PLACE")
    return Path(tree.git_dir).exists()


async def _broken(tree: Tree) -> Found:
    tip = await refs.commit(await states.repository(tree.repository), tree.ref)
    if not tip:
        raise Conflict(f"git's record of it and the branch {tree.branch} are gone", code="BRANCH_GONE")
    why = "its link to git is broken; it is mended first, its files stay, and it is looked at again"
    return "keep", why, (), (tip, "broken")


async def _whole(tree: Tree) -> Found:
    repo = repo_of(tree)
    held = await submodules.unsaved(tree)
    if held:
        raise Conflict(f"submodules hold what is nowhere else: {'; '.join(held[:5])}", code="SUBMODULE_WORK")
    head, tip = await refs.commit(repo, "HEAD"), await refs.commit(repo, tree.ref)
    state = await trees.working(repo, tree.scratch, limit=undo.LIMIT)
    ignored = (await repo.git("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")).fields
    loses = (*(f"{path} (ignored by git)" for path in ignored), *await trees.unkept(repo, undo.LIMIT))
    bare = bool(head) and {state.tree, state.index} == {await refs.tree(repo, head)} and not state.left_out
    count = await _nowhere_else(repo, tree)
    facts = (head, "bare" if bare else "changed", tip, state.tree, state.index, *state.left_out)
    if loses:
        return "ask", "no ref keeps all of it", loses, facts
    return "ready", _kept_how(tree, bare=bare, count=count), (), facts


async def _nowhere_else(repo: Repo, tree: Tree) -> int:
    """Commits of the branch that neither a remote branch nor another local one has."""
    if not await refs.commit(repo, tree.ref):
        return 0
    others = (f"--exclude={tree.branch}", "--branches", "--remotes", "--glob=refs/beadmill/base")
    return int((await repo.git("rev-list", "--count", tree.ref, "--not", *others)).text)


def _kept_how(tree: Tree, *, bare: bool, count: int) -> str:
    here = "nothing is uncommitted" if bare else "what is uncommitted goes behind an undo ref first"
    alone = f"; {count} commit(s) are only on the branch {tree.branch}, which stays" if count and not tree.owner else ""
    lane = "; its branch goes when its commits are kept elsewhere" if tree.owner else ""
    return f"{here}{alone}{lane}"


async def mend(found: Look) -> None:
    """git's record of the tree again, from the branch; the files stay. Raises what opening does."""
    tree = found.tree
    assert tree is not None
    if tree.owner:
        owner = read_marker(Path(tree.owner), "tree")
        if owner is not None:
            await lanes.open_lane(owner, int(Path(tree.workspace).name))
        return
    await Worktrees().open(tree.repository, tree.workspace, branch=tree.branch, base=tree.base)


async def release(workspace: Path, mark: str, *, repository: str = "", lose: bool = False) -> str:
    """Removes the tree that was looked at, when it still is as it was; what is kept, and where, in words.

    The caller holds the repository (``hold``). Raises Conflict when it changed, or must stay.
    """
    found = await look(workspace, repository)
    if found is None:
        return "it was gone already"
    tree = found.tree
    if tree is None or found.verdict == "keep":
        raise Conflict(found.why, code="KEPT")
    if found.mark != mark:
        raise Conflict("it changed since it was looked at", code="CHANGED")
    if found.loses and not lose:
        raise Conflict(f"{found.why}: {', '.join(found.loses[:5])}", code="KEPT")
    repo = repo_of(tree)
    sweep(tree)
    record.relink(tree)
    said = await _saved(repo, tree, found)
    now = await trees.working(repo, tree.scratch, limit=undo.LIMIT)
    if (now.tree, now.index) != found.state:
        raise Conflict("something is writing to it", code="CHANGED", kept="It stays, and an undo ref has its state.")
    _take_away(tree)
    return f"{said}; {await _branch(tree)}"


async def _saved(repo: Repo, tree: Tree, found: Look) -> str:
    but = tree.ref if tree.owner else ""
    if found.bare and await kept.holders(repo, found.head, but=but):
        return f"its commit {found.head[:12]} is on a ref that stays"
    ref = await undo.save(repo, tree.undo_prefix, why="the worktree was cleaned up", scratch=tree.scratch)
    return f"its last state is behind {ref}"


def _take_away(tree: Tree) -> None:
    """Out of its place in one act, then git's record, then the files: killed in between, what is left is named."""
    crashpoints.reach("clean.tree")
    gone = leftovers.aside(Path(tree.path), tree.scratch)
    crashpoints.reach("clean.tree")
    if Path(tree.git_dir).exists():
        drop_record(Path(tree.git_dir))
    crashpoints.reach("clean.tree")
    leftovers.wipe(gone)


async def _branch(tree: Tree) -> str:
    """A ticket's branch stays. A lane's goes when another ref has its commits."""
    repo = Repo(tree.common, None)
    tip = await refs.commit(repo, tree.ref)
    if not tree.owner or not tip:
        return f"the branch {tree.branch} stays"
    if not await kept.holders(repo, tip, but=tree.ref):
        return f"the branch {tree.branch} stays: its commits are nowhere else"
    await repo.git("update-ref", "-d", tree.ref, tip)
    return f"the branch {tree.branch} went with it, its commits are on another ref"


def hold(tree: Tree) -> AbstractAsyncContextManager[None]:
    """The lock of the tree's repository: whoever begins to work in it waits."""
    return locks.locked(lock_of(tree.ticket, tree.common))
