"""Undo states of a ticket, brought back: into its worktree, or as a branch. The user's checkout is never touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from beadmill.errors import Conflict, NotFound
from beadmill.git import commits, kept, locks, refs
from beadmill.git.kept import Kept
from beadmill.git.run import Repo, discover
from beadmill.workspaces.tree import Tree, acting, lock_of
from beadmill.workspaces.worktrees import Worktrees

PREFIX = "refs/beadmill/undo"


async def repository(path: str) -> Repo:
    """The user's repository without its checkout. Raises GitFailed."""
    return Repo((await discover(Path(path))).common, None)


async def listing(path: str, key: str) -> tuple[Kept, ...]:
    """The states of a ticket and its lanes, by number. Raises GitFailed."""
    return await kept.listing(await repository(path), f"{PREFIX}/{key}")


async def one(path: str, key: str, n: int) -> Kept:
    """Raises NotFound."""
    found = next((state for state in await listing(path, key) if state.n == n), None)
    if found is None:
        raise NotFound(f"{key} has no kept state {n}", code="NO_UNDO", next=f"beadmill undo list {key}")
    return found


async def as_branch(path: str, workspace: str, state: Kept, name: str) -> str:
    """A new branch with the files of the state, on the commit it stood on. Done again, the same branch. The commit.

    Raises Refused for a name that is none, Conflict for one that is taken, Unavailable without a git identity.
    """
    repo = await repository(path)
    await refs.good_branch(repo, name)
    async with locks.locked(lock_of(Path(workspace), repo.common)):
        ref = f"refs/heads/{name}"
        there = await refs.commit(repo, ref)
        if there and await _is(repo, there, state):
            return there
        _check_free(name, await refs.listing(repo, "refs/heads"))
        made = await _commit(repo, state)
        await refs.update(repo, ref, made, old="", why=f"beadmill: {state.ref}")
        return made


async def _is(repo: Repo, commit: str, state: Kept) -> bool:
    if await refs.tree(repo, commit) != state.tree:
        return False
    return state.head in (commit, await refs.commit(repo, f"{commit}^"))


def _check_free(name: str, heads: Mapping[str, str]) -> None:
    free = refs.free_branch(name, {ref.removeprefix("refs/heads/") for ref in heads})
    if free != name:
        raise Conflict(
            f"there is a branch {name!r} already, or one that clashes with it",
            code="BRANCH_TAKEN",
            kept="Nothing was changed.",
            next=f"Choose another name, for example {free}.",
        )


async def _commit(repo: Repo, state: Kept) -> str:
    """What was checked out when nothing was changed, else a commit by the user on it."""
    if state.head and await refs.tree(repo, state.head) == state.tree:
        return state.head
    return await commits.write(repo, state.tree, [state.head] if state.head else [], f"{state.why}\n\n{state.ref}\n")


async def into(trees: Worktrees, tree: Tree, state: Kept, *, ended: bool, key: str) -> str:
    """Branch, index and files of the tree as in the state. The ref that keeps what was there.

    While its run goes on, commits of the branch that the state does not have would be missed by the plan: Conflict.
    """
    async with acting(tree) as repo:
        head = await refs.commit(repo, tree.ref)
        if not ended and head and not await refs.is_ancestor(repo, head, state.head):
            count = (await repo.git("rev-list", "--count", head, f"^{state.head}")).text
            raise Conflict(
                f"the branch has {count} commit(s) since, of beads that count as done; this state would take them off",
                code="UNDO_BEHIND",
                kept="Nothing was changed.",
                next="Bring it back as a branch (--branch <name>) and take from it what you need.",
            )
        ref = await trees.undo(tree, f"before {state.ref}", key=key)
        await trees.stash_apply(tree, state.ref, key=key)
        return ref
