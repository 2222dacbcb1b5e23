"""Making a worktree so that a killed process never leaves half of one that counts.

An intent file names branch and start before git is asked; a marker says the tree is whole. Without a marker what lies
there was never given to anybody and is removed; the branch of the intent is ours again.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import Conflict, Refused
from beadmill.git import locks, refs, undo
from beadmill.git.run import STRANGERS, Repo, discover
from beadmill.workspaces import bases, record, submodules
from beadmill.workspaces.tree import (
    Tree,
    acting,
    lock_of,
    marker_of,
    read_marker,
    repo_of,
    save_marker,
    sweep,
    write_json,
)


@dataclass(frozen=True, slots=True)
class Wish:
    repository: Path
    workspace: Path
    branch: str
    base: str
    name: str
    owner: str = ""  # the ticket's workspace, for one of its lanes

    @property
    def ticket(self) -> Path:
        return Path(self.owner) if self.owner else self.workspace

    @property
    def path(self) -> Path:
        return self.workspace / self.name

    @property
    def aside(self) -> Path:
        """Where the files of a broken tree wait."""
        return self.workspace / "runtime" / f"{self.name}.aside"

    @property
    def intent(self) -> Path:
        return self.workspace / "runtime" / f"{self.name}.intent.json"


def wish(repository: str, workspace: str, *, branch: str, base: str, name: str) -> Wish:
    return Wish(Path(repository).absolute(), Path(workspace).absolute(), branch, base, name)


async def open_tree(wish: Wish) -> Tree:
    """Raises Refused, Unavailable, Conflict, GitFailed."""
    _check_place(wish)
    repo = await _main(wish.repository)
    lock = lock_of(wish.ticket, repo.common)
    async with locks.locked(lock):
        if known := await _known(repo, wish):
            return known
    await bases.remote_url(repo)
    remote = await bases.ask(repo)  # the remote may be slow: nobody waits for it behind the lock
    base = await bases.resolve(repo, wish.base, remote)
    async with locks.locked(lock):
        return await _known(repo, wish) or await _first(repo, wish, remote, base)


async def open_lane(ticket: Tree, place: Path) -> Tree:
    """A tree of its own branch in the workspace ``place``, beside the ticket's and from where that began. Asks no
    remote. Raises Conflict, GitFailed."""
    branch = f"{ticket.branch}-lane-{place.name}"
    wished = Wish(Path(ticket.repository), place, branch, ticket.base, "tree", owner=ticket.workspace)
    _check_place(wished)
    repo = Repo(ticket.common, None)
    async with locks.locked(lock_of(wished.ticket, repo.common)):
        start = bases.Base(ticket.base, ticket.base_commit)
        return await _known(repo, wished) or await _first(repo, wished, bases.Remote(), start)


async def _known(repo: Repo, wish: Wish) -> Tree | None:
    """The tree of the marker, made whole again if need be; None when there never was one."""
    known = read_marker(wish.workspace, wish.name)
    if known is None:
        _check_unknown(wish)
        return None
    if not wish.aside.exists() and await _whole(known, wish):
        return known
    return await _again(repo, wish, known)


def _check_unknown(wish: Wish) -> None:
    """Without a marker and without an intent of ours, what lies there is somebody's."""
    if wish.intent.exists() or not wish.path.exists() or not any(wish.path.iterdir()):
        return
    raise Conflict(
        f"there are files in {wish.path}, and nothing says that they are of this ticket",
        code="UNKNOWN_TREE",
        kept="Nothing was touched.",
        next="Move that folder away, then retry.",
    )


async def _main(repository: Path) -> Repo:
    """The repository seen from its common folder, so nothing depends on which checkout was attached."""
    found = await discover(repository)
    return Repo(found.common, None)


def _check_place(wish: Wish) -> None:
    if wish.path.is_symlink() or wish.workspace.is_symlink():
        raise Refused(
            f"{wish.path} is a link, and a workspace must be a real folder",
            code="LINKED_WORKSPACE",
            next="Remove the link, or choose another workspace root.",
        )
    if wish.workspace.resolve().is_relative_to(wish.repository.resolve()):
        raise Refused(
            f"the workspace {wish.workspace} lies inside the repository",
            code="WORKSPACE_INSIDE",
            next="Choose a workspace root outside of the repository.",
        )
    try:
        for folder in ("runtime", "home", "tmp"):
            (wish.workspace / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(
            f"the workspace {wish.workspace} cannot be made: {error.strerror}",
            code="WORKSPACE_PLACE",
            kept="Nothing was made; the repository is untouched.",
            next="Make its folder writable, or choose another root for workspaces (the setting workspaces).",
        ) from error


async def _whole(tree: Tree, wish: Wish) -> bool:
    """Is the tree of the marker still there? A damaged ``.git`` file is written again from the record."""
    if Path(tree.repository) != wish.repository:
        raise Conflict(
            f"the workspace {wish.workspace} belongs to {tree.repository}",
            code="OTHER_REPOSITORY",
            next="Use another workspace, or attach that repository again.",
        )
    if not tree.there or not (Path(tree.git_dir) / "HEAD").is_file():
        return False
    record.relink(tree)
    sweep(tree)
    await record.mend_index(tree)
    return bool(await refs.commit(repo_of(tree), tree.ref))


async def _again(repo: Repo, wish: Wish, known: Tree) -> Tree:
    """The folder, or git's record of it, vanished: made again from its own branch. Files that are still there stay
    what they are; they wait beside the tree while git makes it, so a kill in between finds them again."""
    if not await refs.commit(repo, known.ref):
        raise Conflict(
            f"the branch {known.branch} of this workspace is gone",
            code="BRANCH_GONE",
            kept=f"Its states are below {known.undo_prefix}.",
            next=f"Make it again (git branch {known.branch} <commit>) and retry, or cancel the ticket.",
        )
    if wish.path.is_dir() and not wish.aside.exists():
        wish.path.rename(wish.aside)
    await _clear(repo, wish)
    tree = await _add(repo, wish, ["--force", str(wish.path), known.branch], replace(known, warnings=()))
    save_marker(tree)
    if wish.aside.exists():
        _bring_back(wish)
    return tree


def _bring_back(wish: Wish) -> None:
    link = wish.aside / ".git"
    if link.is_dir() and not link.is_symlink():
        link.rename(record.free(wish.workspace / "runtime"))
    link.unlink(missing_ok=True)
    shutil.copy2(wish.path / ".git", link)
    shutil.rmtree(wish.path)
    wish.aside.rename(wish.path)


async def _first(repo: Repo, wish: Wish, remote: bases.Remote, base: bases.Base) -> Tree:
    await refs.good_branch(repo, wish.branch)
    await _clear(repo, wish)
    await _drop_own_branch(repo, wish)
    local = await refs.listing(repo, "refs/heads")
    taken = {name.removeprefix("refs/heads/") for name in local} | set(remote.heads or {})
    branch = refs.free_branch(wish.branch, taken)
    tree = Tree(
        path=str(wish.path),
        repository=str(wish.repository),
        git_dir="",
        branch=branch,
        base=base.name,
        base_commit=base.commit,
        workspace=str(wish.workspace),
        warnings=base.warnings,
        owner=wish.owner,
    )
    write_json(wish.intent, {"branch": branch, "commit": base.commit})
    tree = await _add(repo, wish, ["--no-track", "-b", branch, str(wish.path), base.commit], tree)
    save_marker(tree)
    wish.intent.unlink(missing_ok=True)
    return tree


async def _add(repo: Repo, wish: Wish, how: list[str], tree: Tree) -> Tree:
    crashpoints.reach("git.worktree")
    await repo.git("worktree", "add", "--quiet", *how, timeout=1800)
    crashpoints.reach("git.worktree")
    link = (wish.path / ".git").read_text().removeprefix("gitdir: ").rstrip("\n")
    made = replace(tree, git_dir=link)
    if Path(link).parent != repo.common / "worktrees":
        raise Conflict(f"git put the record of {wish.path} at {link}", code="ODD_RECORD", next="Report this.")
    status = await repo_of(made).git("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", *STRANGERS)
    if status.out:
        raise Conflict(
            "the new worktree does not show the files of its start commit",
            code="BAD_CHECKOUT",
            details={"status": status.text[:2000]},
            next="Look for a filter (LFS, line endings) that fails in a fresh checkout, then retry.",
        )
    return made


async def _clear(repo: Repo, wish: Wish) -> None:
    """Removes a tree that no marker vouches for, and git's record of it. Never follows a link."""
    for found in (*records(repo, wish.path), *_begun(repo, wish)):
        crashpoints.reach("git.worktree")
        drop_record(found)
    if wish.path.exists():
        shutil.rmtree(wish.path)
    marker_of(wish.workspace, wish.name).with_suffix(".part").unlink(missing_ok=True)


async def remove_tree(tree: Tree) -> None:
    """See Worktrees.remove. Raises Conflict when a submodule holds what would be lost."""
    _check_owned(tree)
    if tree.there:
        async with acting(tree) as repo:
            await _check_submodules(tree)
            await undo.save(repo, tree.undo_prefix, why="remove the worktree", scratch=tree.scratch)
            await undo.set_aside(repo, tree.scratch)
    async with locks.locked(lock_of(tree.ticket, tree.common)):
        crashpoints.reach("git.worktree")
        _delete(tree)
        crashpoints.reach("git.worktree")


async def _check_submodules(tree: Tree) -> None:
    held = await submodules.unsaved(tree)
    if held:
        raise Conflict(
            f"submodules of {tree.path} hold what is nowhere else: {'; '.join(held[:5])}",
            code="SUBMODULE_WORK",
            details={"held": list(held)},
            kept="Nothing was deleted.",
            next="Push it, or delete it there, then try again.",
        )


def _delete(tree: Tree) -> None:
    if Path(tree.path).exists():
        shutil.rmtree(tree.path)
    if Path(tree.git_dir).exists():
        drop_record(Path(tree.git_dir))
    marker_of(Path(tree.workspace), tree.name).unlink(missing_ok=True)


def _check_owned(tree: Tree) -> None:
    """Deletion resolves real paths and believes only the marker and git's record. Nothing there at all is fine."""
    path, there = Path(tree.path), Path(tree.git_dir)
    if not (path.exists() or path.is_symlink() or there.exists()):
        return
    known = read_marker(Path(tree.workspace), tree.name)
    inside = not path.is_symlink() and path.resolve().parent == Path(tree.workspace).resolve()
    points = there / "gitdir"
    ours = not there.exists() or (points.is_file() and points.read_text().rstrip("\n") == str(path / ".git"))
    if known is None or (known.path, known.git_dir) != (tree.path, tree.git_dir) or not inside or not ours:
        raise Refused(
            f"{tree.path} is not the worktree this workspace was given",
            code="NOT_OUR_TREE",
            kept="Nothing was deleted.",
            next="Look at what lies there and remove it by hand.",
        )


def _begun(repo: Repo, wish: Wish) -> tuple[Path, ...]:
    """Records that our killed git had only begun: named like our tree, newer than our intent, pointing nowhere yet."""
    if not wish.intent.exists():
        return ()
    since = wish.intent.stat().st_mtime
    found = (repo.common / "worktrees").glob(f"{wish.name}*")
    return tuple(r for r in found if not (r / "gitdir").exists() and r.stat().st_mtime >= since)


def records(repo: Repo, path: Path) -> tuple[Path, ...]:
    """git's records that point at ``path``."""
    found = []
    for one in sorted((repo.common / "worktrees").glob("*")):
        gitdir = one / "gitdir"
        if gitdir.is_file() and Path(gitdir.read_text(errors="surrogateescape").rstrip("\n")) == path / ".git":
            found.append(one)
    return tuple(found)


def drop_record(place: Path) -> None:
    shutil.rmtree(place)
    if not any(place.parent.iterdir()):
        place.parent.rmdir()


async def _drop_own_branch(repo: Repo, wish: Wish) -> None:
    """The branch a killed process made: ours by the intent, and nothing on it yet."""
    if not wish.intent.exists():
        return
    intent = json.loads(wish.intent.read_text())
    ref = f"refs/heads/{intent['branch']}"
    locks.sweep([repo.common / f"{ref}.lock"], tree=wish.path, git_dir=repo.common / "no-such-record")
    if await refs.commit(repo, ref) == intent["commit"]:
        await repo.git("update-ref", "-d", ref, intent["commit"])
    wish.intent.unlink()
