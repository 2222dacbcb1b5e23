"""Refs and names: reading, compare-and-set, free branch names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from beadmill.errors import Conflict, Refused, Stale, Unavailable
from beadmill.git.run import Done, Repo

ABSENT = "0" * 40
_HOST = re.compile(
    r"https?://(?:[^/@\s']+@)?([^/\s'?]+)|^(?:[\w.-]+@)?([\w.-]+): permission denied", re.IGNORECASE | re.MULTILINE
)
_NONE = ("could not read username", "could not read password", "terminal prompts disabled")


async def commit(repo: Repo, rev: str) -> str:
    """The commit a revision names, "" when it names none."""
    done = await repo.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}", ok=(0, 1, 128))
    return done.text if done.code == 0 else ""


async def tree(repo: Repo, rev: str) -> str:
    """The tree id of a revision. Raises GitFailed when there is none."""
    return (await repo.git("rev-parse", "--verify", "--end-of-options", f"{rev}^{{tree}}")).text


async def listing(repo: Repo, *prefixes: str) -> Mapping[str, str]:
    """Full ref name → object id, below the prefixes (none = all)."""
    done = await repo.git("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
    pairs = (line.split(" ", 1) for line in done.text.splitlines())
    return {name: sha for sha, name in pairs}


async def update(repo: Repo, ref: str, new: str, *, old: str | None = None, why: str = "beadmill") -> None:
    """Compare-and-set: ``old`` "" = must not exist, None = whatever it is. Raises Stale when it is another."""
    expected = () if old is None else (old or ABSENT,)
    done = await repo.git("update-ref", "-m", why, ref, new, *expected, ok=())
    if done.code == 0:
        return
    found = await repo.git("rev-parse", "--verify", "--quiet", ref, ok=(0, 1))
    if old is not None and found.text != old:
        raise Stale(f"{ref} moved", details={"expected": old, "found": found.text}, next="Read it again.")
    raise Conflict(f"{ref} could not be written: {done.err.strip()}", code="REF_REFUSED")


async def current_branch(repo: Repo) -> str:
    """The full ref HEAD points at, "" when detached."""
    done = await repo.git("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    return done.text


async def is_ancestor(repo: Repo, ancestor: str, descendant: str) -> bool:
    done = await repo.git("merge-base", "--is-ancestor", ancestor, descendant, ok=(0, 1, 128))
    return done.code == 0


async def good_branch(repo: Repo, name: str) -> None:
    """Raises Refused when git would not take this branch name."""
    done = await repo.git("check-ref-format", "--branch", name, ok=(0, 128, 129))
    if done.code or name.startswith(("-", "refs/")):
        raise Refused(f"{name!r} cannot be a branch name", code="BAD_BRANCH", next="Choose letters, digits, - and /.")


def free_branch(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, else ``wanted-2``, ``wanted-3`` … ``taken`` are branch names, local and remote. Names that differ only
    in case clash (disks that ignore case), and so does a name that is a folder of another or has one as a folder.
    A folder that is there already keeps its spelling: ``Alex/two`` beside ``alex/one`` is ``alex/two``."""
    wanted = _spelled(wanted, taken)
    folded = {name.casefold() for name in taken}
    folders = {"/".join(parts[:n]) for parts in (name.split("/") for name in folded) for n in range(1, len(parts))}
    for name in _names(wanted):
        low = name.casefold().split("/")
        parents = {"/".join(low[:n]) for n in range(1, len(low))}
        if not ({"/".join(low)} & (folded | folders) or parents & folded):
            return name
    raise Refused(f"no free branch name near {wanted!r}", code="NO_BRANCH_NAME", next="Delete old branches or rename.")


def _spelled(wanted: str, taken: Collection[str]) -> str:
    there = {"/".join(parts[:n]) for parts in (name.split("/") for name in sorted(taken)) for n in range(1, len(parts))}
    known = {folder.casefold(): folder for folder in sorted(there)}
    *folders, name = wanted.split("/")
    for n in range(len(folders), 0, -1):
        folder = "/".join(folders[:n])
        if folder not in there and folder.casefold() in known:
            return "/".join((known[folder.casefold()], *folders[n:], name))
    return wanted


def _names(wanted: str) -> Iterator[str]:
    flat = wanted.replace("/", "-")  # a branch named like our folder leaves no name below it
    for name in dict.fromkeys((wanted, flat)):
        yield name
        yield from (f"{name}-{n}" for n in range(2, 100))


def outside(done: Done, *, remote: str, doing: str) -> Unavailable:
    """What a failed talk with a remote means, in words."""
    said = done.err.strip().splitlines()[-1:] or [f"git ended with {done.code}"]
    text = done.err.lower()
    found = _HOST.search(done.err)
    host = (found[1] or found[2]) if found else ""
    at = f"the remote {remote!r}" + (f" at {host}" if host else "")
    if any(word in text for word in ("authentication failed", "permission denied (publickey", *_NONE)):
        missing = any(word in text for word in _NONE)
        what = f"there are no credentials for {at}" if missing else f"{at} did not accept the credentials"
        return Unavailable(
            f"{doing}: {what} ({said[0]})",
            code="REMOTE_CREDENTIALS",
            details={"host": host},
            next="Sign in to the remote with git itself (git fetch in your checkout), or give Beadmill a token for the host "
            "(docs/forges.md), then try again.",
        )
    return Unavailable(
        f"{doing}: {at} cannot be reached ({said[0]})",
        code="REMOTE_UNREACHABLE",
        next="Check the address (git remote -v) and the network, then try again.",
    )
