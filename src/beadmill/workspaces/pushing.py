"""Pushing a ticket's branch with a lease, and saying what a refusal means."""

from __future__ import annotations

from beadmill import crashpoints
from beadmill.errors import BeadmillError, Refused, Stale
from beadmill.git import refs
from beadmill.git.run import Done, Repo
from beadmill.workspaces.bases import REMOTE

PUSHED = "refs/beadmill/pushed"  # <PUSHED>/<branch>: what the remote last took from us
PUSHING = "refs/beadmill/pushing"  # what we last tried to push: the remote may have it after a crash


async def push(repo: Repo, branch: str, head: str, *, expected: str | None) -> None:
    """See Worktrees.push."""
    there = await remote_head(repo, branch)
    if there != head:
        allowed = {expected} if expected is not None else {"", *await _ours(repo, branch)}
        if there not in allowed:
            raise _moved(branch, there, expected)
        await refs.update(repo, f"{PUSHING}/{branch}", head)
        crashpoints.reach("git.push")
        lease = f"--force-with-lease=refs/heads/{branch}:{there}"
        done = await repo.git(
            "push",
            "--porcelain",
            "--no-verify",
            "--recurse-submodules=no",
            lease,
            REMOTE,
            f"{head}:refs/heads/{branch}",
            ok=(),
            timeout=600,
        )
        if done.code:
            raise rejected(done, branch)
        crashpoints.reach("git.push")
    await refs.update(repo, f"{PUSHED}/{branch}", head)


async def remote_head(repo: Repo, branch: str) -> str:
    """The branch's commit on origin now, "" = absent. Raises Unavailable."""
    done = await repo.git("ls-remote", REMOTE, f"refs/heads/{branch}", ok=(), timeout=60)
    if done.code:
        raise refs.outside(done, remote=REMOTE, doing=f"asking for {branch}")
    for line in done.text.splitlines():
        sha, _, name = line.partition("\t")
        if name == f"refs/heads/{branch}":
            return sha
    return ""


async def _ours(repo: Repo, branch: str) -> list[str]:
    found = [await refs.commit(repo, f"{kind}/{branch}") for kind in (PUSHED, PUSHING)]
    return [sha for sha in found if sha]


def rejected(done: Done, branch: str) -> BeadmillError:
    said = done.err.strip()[-2000:]
    if "stale info" in said + done.text or "fetch first" in said + done.text:
        return _moved(branch, "", None)
    if "[remote rejected]" in done.text + said or "pre-receive hook declined" in said:
        return Refused(
            f"the remote refused the branch {branch}: {said}",
            code="PUSH_REFUSED",
            kept="The commits are on the local branch.",
            next="Satisfy the remote's rule, or change it, then retry.",
        )
    return refs.outside(done, remote=REMOTE, doing=f"pushing {branch}")


def _moved(branch: str, found: str, expected: str | None) -> Stale:
    return Stale(
        f"somebody else moved {branch} on the remote",
        code="REMOTE_MOVED",
        details={"found": found, "expected": expected or ""},
        kept="Both are kept: theirs on the remote, ours on the local branch.",
        next=f"Look at it (git fetch {REMOTE} {branch}), then retry or delete the remote branch.",
    )
