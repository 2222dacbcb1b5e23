"""Everything done to a ticket's worktree. Each act is idempotent; each destructive one keeps the state first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import Conflict
from beadmill.git import commits, locks, refs, trees
from beadmill.git import undo as undoing
from beadmill.git.run import STRANGERS, Repo, z
from beadmill.workspaces import bases, opening, pushing
from beadmill.workspaces.tree import FileStatus, Tree, acting, common_of, lock_of, read_marker, repo_of

__all__ = ["FileStatus", "Tree", "Worktrees"]


class Worktrees:
    """Stateless: what it knows is in git and in ``<workspace>/runtime``."""

    async def open(self, repository: str, workspace: str, *, branch: str, base: str, name: str = "tree") -> Tree:
        """The workspace's tree on its own branch; the same workspace gets the same tree and branch again.

        ``base`` "" = the remote's default branch, else the branch checked out. ``warnings`` of the result say when the
        remote could not be asked. Raises Refused (no origin, no such base, bad place), Unavailable, Conflict.
        """
        return await opening.open_tree(opening.wish(repository, workspace, branch=branch, base=base, name=name))

    async def mend(self, repository: str, workspace: str, *, branch: str, base: str, start: str) -> Tree:
        """As ``open``, after somebody had the tree in hand: a branch that is gone comes back at ``start``."""
        await self.bring_back(workspace, start)
        return await self.open(repository, workspace, branch=branch, base=base)

    async def bring_back(self, workspace: str, start: str) -> None:
        """The branch of the workspace's tree, at ``start``, when somebody deleted it."""
        known = read_marker(Path(workspace), "tree")
        if known is not None and not await refs.commit(common_of(known), known.ref):
            async with locks.locked(lock_of(known.ticket, known.common)):
                await refs.update(common_of(known), known.ref, start, why="beadmill: the branch was deleted")

    async def head(self, tree: Tree) -> str:
        """The tip of the tree's own branch, whatever is checked out. Raises Conflict when the branch is gone."""
        return await branch_tip(repo_of(tree), tree)

    async def status(self, tree: Tree) -> tuple[FileStatus, ...]:
        """Compared with what is checked out; ignored files left out."""
        done = await repo_of(tree).git(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", *STRANGERS
        )
        return tuple(FileStatus(entry[3:], entry[:2]) for entry in done.fields)

    async def changed(self, tree: Tree, since: str) -> tuple[str, ...]:
        """Tracked and untracked paths that differ from ``since``, sorted; a rename is two paths. A repository that was
        made inside the tree is one path (and ``commit`` refuses it)."""
        repo = repo_of(tree)
        state = await trees.working(repo, tree.scratch)
        return tuple(sorted({*await trees.changed(repo, since, state.tree), *await trees.nested(repo)}))

    async def between(self, tree: Tree, since: str, until: str) -> tuple[str, ...]:
        """Paths that differ between two commits, sorted; a rename is two paths."""
        return tuple(sorted(await trees.changed(repo_of(tree), since, until)))

    async def commits(self, tree: Tree, since: str, until: str) -> tuple[str, ...]:
        """What ``until`` has that ``since`` has not, the newest first."""
        return tuple((await repo_of(tree).git("rev-list", until, f"^{since}")).text.split())

    async def diff(self, tree: Tree, since: str, until: str | None = None, paths: Sequence[str] = ()) -> str:
        """A patch from ``since`` to ``until`` (None = the working state, untracked files included)."""
        repo = repo_of(tree)
        end = until or (await trees.working(repo, tree.scratch)).tree
        flags = ("-r", "-p", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        done = await repo.git("diff-tree", *flags, since, end, "--", *paths)
        return done.out.decode("utf-8", "replace")

    async def files(self, tree: Tree) -> tuple[str, ...]:
        """Every file there is, tracked or not, ignored ones left out; sorted."""
        repo = repo_of(tree)
        state = await trees.working(repo, tree.scratch)
        return tuple(sorted((await repo.git("ls-tree", "-r", "-z", "--name-only", state.tree)).fields))

    async def tree_hash(self, tree: Tree) -> str:
        """64 hex digits over index and files (untracked too, ignored not). Same content, same hash."""
        repo = repo_of(tree)
        state = await trees.working(repo, tree.scratch)
        index = await repo.git("ls-files", "-z", "--stage")
        return hashlib.sha256(state.tree.encode() + b"\0" + index.out).hexdigest()

    async def undo(self, tree: Tree, why: str, *, key: str = "") -> str:
        """Keeps the whole working state; answers with ``refs/beadmill/undo/<KEY>/<n>``. Same state or key, same ref."""
        async with acting(tree) as repo:
            return await undoing.save(repo, tree.undo_prefix, why=why, scratch=tree.scratch, key=key)

    async def undone(self, tree: Tree, key: str) -> str:
        """The undo ref that ``reset`` or ``undo`` kept under this key; "" when there is none."""
        return await undoing.of_key(repo_of(tree), tree.undo_prefix, key)

    async def commit(self, tree: Tree, paths: Sequence[str], message: str, *, trailers: Mapping[str, str]) -> str:
        """Exactly these paths as they are (gone = deleted), by the user, on the tree's branch.

        The commit with the same ``Beadmill-Key`` is answered instead of made again; no difference = the head.
        Raises Unavailable (no identity, signing), Refused (a repository inside the tree), Stale, Invalid.
        """
        async with acting(tree) as repo:
            await attach_head(repo, tree)
            head = await branch_tip(repo, tree)
            made = await found(repo, trailers, since=tree.base_commit, until=head)
            if not made:
                content = await commits.tree_of(repo, tree.scratch, head, paths)
                if content != await refs.tree(repo, head):
                    text = commits.message_of(message, trailers)
                    made = await commits.write(repo, content, [head], text)
                    await commits.show(repo, tree.ref, made, head, why="commit")
            await commits.settle_index(repo, paths)
            return made or head

    async def reset(self, tree: Tree, to: str, *, why: str, key: str = "") -> str:
        """Files, index and branch as in ``to``; untracked files go, ignored ones stay.

        Answers with the undo ref that has what was there. What no ref can keep (inner repositories, huge files) is
        moved to ``<workspace>/runtime/set-aside/<n>``.
        """
        async with acting(tree) as repo:
            ref = await undoing.save(repo, tree.undo_prefix, why=why, scratch=tree.scratch, key=key)
            await attach_head(repo, tree)
            await show_flags(repo)
            crashpoints.reach("git.reset")
            await undoing.set_aside(repo, tree.scratch)
            await repo.git("reset", "--hard", "--quiet", to)
            await repo.git("clean", "-fdq")
            crashpoints.reach("git.reset")
            return ref

    async def restore_paths(self, tree: Tree, commit: str, paths: Sequence[str], kept: str = "") -> None:
        """These paths, in index and files, as in ``commit``: what it does not have goes. An undo ref is kept first,
        unless the caller has ``kept`` the state in one: done once more, half of the paths may have been brought."""
        wanted = commits.check_paths(paths)
        async with acting(tree) as repo:
            if not kept:
                await undoing.save(repo, tree.undo_prefix, why="restore paths", scratch=tree.scratch)
            await bring(repo, commit, wanted)

    async def stash_apply(self, tree: Tree, undo_ref: str, *, key: str = "") -> None:
        """The exact state of an undo ref: branch tip, index, files. What is there now is kept first.

        Raises NotFound when there is no such ref.
        """
        async with acting(tree) as repo:
            await undoing.save(repo, tree.undo_prefix, why=f"before {undo_ref}", scratch=tree.scratch, key=key)
            await attach_head(repo, tree)
            await show_flags(repo)
            await undoing.set_aside(repo, tree.scratch)
            await undoing.restore(repo, undo_ref)

    async def merge_base(self, tree: Tree) -> str:
        """Where the branch left the base as last fetched; the start commit when history does not tell (shallow)."""
        repo = repo_of(tree)
        tip = await bases.newest_copy(repo, tree.base) or tree.base_commit
        done = await repo.git("merge-base", tip, tree.ref, ok=(0, 1))
        return done.text if done.code == 0 else tree.base_commit

    async def fetch_base(self, tree: Tree) -> str:
        """The base's tip on the remote. Raises Unavailable when the remote cannot be reached."""
        return await bases.fetch(repo_of(tree), tree.base)

    async def squash(
        self, tree: Tree, onto: str, paths: Sequence[str], message: str, trailers: Mapping[str, str]
    ) -> str:
        """One commit on ``onto`` (an ancestor of the branch) with exactly these paths; files stay as they are.

        An undo ref keeps the branch. Idempotent by ``Beadmill-Key``. Raises Conflict when ``onto`` is no ancestor.
        """
        async with acting(tree) as repo:
            key = trailers.get(commits.KEY, "")
            head = await branch_tip(repo, tree)
            made = await found(repo, trailers, since=onto, until=head)
            why, scratch = "squash", tree.scratch
            kept = "" if made else await undoing.save(repo, tree.undo_prefix, why=why, scratch=scratch, key=key)
            await attach_head(repo, tree)
            if not made:
                if not await refs.is_ancestor(repo, onto, head):
                    raise Conflict(
                        f"{onto[:12]} is not in the history of {tree.branch}", code="NOT_AN_ANCESTOR", kept=kept
                    )
                content = await commits.tree_of(repo, tree.scratch, onto, paths)
                made = await commits.write(repo, content, [onto], commits.message_of(message, trailers))
                await commits.show(repo, tree.ref, made, head, why="squash")
            await repo.git("reset", "--quiet", "--mixed")
            return made

    async def push(self, tree: Tree, *, expected_remote: str | None) -> None:
        """The branch to origin, only when the remote branch is ``expected_remote`` ("" = absent; None = absent or
        what we pushed last). Raises Stale, Refused (by the remote), Unavailable."""
        await pushing.push(repo_of(tree), tree.branch, await self.head(tree), expected=expected_remote)

    async def remove(self, tree: Tree) -> None:
        """Removes the worktree and git's record of it; the branch and an undo ref of the last state stay.

        Raises Refused when the place is not the one of our record.
        """
        await opening.remove_tree(tree)


async def branch_tip(repo: Repo, tree: Tree) -> str:
    tip = await refs.commit(repo, tree.ref)
    if not tip:
        raise Conflict(
            f"the branch {tree.branch} is gone",
            code="BRANCH_GONE",
            kept=f"Its states are below {tree.undo_prefix}.",
            next=f"Make it again (git branch {tree.branch} <commit>) and retry.",
        )
    return tip


async def attach_head(repo: Repo, tree: Tree) -> None:
    """HEAD on the tree's own branch again when an agent switched away, detached, or left a rebase open.

    Files stay; the commits it made elsewhere are kept by an undo ref. A deleted branch comes back where HEAD is.
    """
    if (repo.git_dir / "rebase-merge").exists() or (repo.git_dir / "rebase-apply").exists():
        await undoing.save(repo, tree.undo_prefix, why="an open rebase", scratch=tree.scratch)
        await repo.git("rebase", "--quit", ok=())
    at = await refs.current_branch(repo)
    if at == tree.ref and await refs.commit(repo, tree.ref):
        return
    await undoing.save(repo, tree.undo_prefix, why=f"HEAD was at {at or 'no branch'}", scratch=tree.scratch)
    if not await refs.commit(repo, tree.ref):
        tip = await refs.commit(repo, "HEAD") or tree.base_commit
        await refs.update(repo, tree.ref, tip, old="", why="beadmill: the branch was deleted")
    await repo.git("symbolic-ref", "-m", "beadmill: back to the ticket's branch", "HEAD", tree.ref)


async def show_flags(repo: Repo) -> None:
    """Drops assume-unchanged marks, behind which changes would survive a reset."""
    done = await repo.git("ls-files", "-z", "-v")
    hidden = [entry[2:] for entry in done.fields if entry[0].islower()]
    if hidden:
        await repo.git("update-index", "-z", "--no-assume-unchanged", "--stdin", input=z(hidden))


async def found(repo: Repo, trailers: Mapping[str, str], *, since: str, until: str) -> str:
    key = trailers.get(commits.KEY, "")
    return await commits.by_key(repo, key, since=since, until=until) if key else ""


async def bring(repo: Repo, commit: str, paths: Sequence[str]) -> None:
    """These paths, in index and files, as in ``commit``. The caller has kept the state."""
    assert repo.work_tree is not None
    if not paths:
        return
    there = set((await repo.git("ls-tree", "-r", "-z", "--name-only", commit, "--", *paths)).fields)
    gone = [path for path in paths if path not in there]
    crashpoints.reach("git.reset")
    for path in gone:
        _delete(repo.work_tree, path)
    await repo.git("update-index", "-z", "--force-remove", "--stdin", input=z(gone))
    if there:
        flags = ("--pathspec-from-file=-", "--pathspec-file-nul")
        await repo.git("checkout", "--quiet", commit, *flags, input=z(sorted(there)))
    crashpoints.reach("git.reset")


def _delete(root: Path, path: str) -> None:
    place = root
    *folders, name = path.split("/")
    for folder in folders:
        place /= folder
        if place.is_symlink():  # what lies behind a link is not inside the tree
            return
    place /= name
    if place.is_symlink() or place.is_file():
        place.unlink()
    while place.parent != root and place.parent.is_dir() and not any(place.parent.iterdir()):
        place = place.parent
        place.rmdir()
