"""Where a ticket's branch begins: the base branch of origin, fetched into refs of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from beadmill.errors import Refused, Unavailable
from beadmill.git import refs, remotes
from beadmill.git.run import Repo

REMOTE = "origin"
KEPT = (
    "refs/beadmill/base"  # <KEPT>/<branch>: the base as fetched; the user's own remote-tracking refs stay as they are
)
RACES = 10  # two tickets may fetch the same base at once: one of them finds the ref moved


@dataclass(frozen=True, slots=True)
class Remote:
    """What ``ls-remote`` says. ``reason`` is set when it could not be asked; then the rest is empty."""

    default: str = ""
    heads: Mapping[str, str] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Base:
    name: str
    commit: str
    warnings: tuple[str, ...] = ()


async def remote_url(repo: Repo) -> str:
    """Raises Refused when there is no origin."""
    done = await repo.git("config", "--get", f"remote.{REMOTE}.url", ok=(0, 1))
    if done.code or not done.text:
        raise Refused(
            f"the repository has no remote named {REMOTE!r}, so there is nowhere to propose a change",
            code="NO_ORIGIN",
            next=f"Add one (git remote add {REMOTE} <address>; a bare folder on this machine works) and push the base.",
        )
    return done.text


async def ask(repo: Repo) -> Remote:
    """Never raises for a remote that cannot be reached."""
    done = await repo.git("ls-remote", "--symref", REMOTE, "HEAD", "refs/heads/*", ok=(), timeout=60)
    if done.code:
        return Remote(reason=refs.outside(done, remote=REMOTE, doing="asking for its branches").message)
    default, heads = "", {}
    for line in done.text.splitlines():
        what, _, name = line.partition("\t")
        if what.startswith("ref: "):
            default = what.removeprefix("ref: refs/heads/")
        elif name.startswith("refs/heads/"):
            heads[name.removeprefix("refs/heads/")] = what
    return Remote(default if default in heads else "", heads)


async def resolve(repo: Repo, wanted: str, remote: Remote) -> Base:
    """The base, fetched. Offline, the newest local copy of it, with a warning. Raises Refused, Unavailable."""
    name = await named(repo, wanted, remote)
    if remote.heads is not None:
        try:
            return Base(name, await fetch(repo, name))
        except Unavailable as error:
            remote = Remote(reason=error.message)
    commit = await newest_copy(repo, name)
    if not commit:
        raise Unavailable(
            f"the base {name!r} is not here and {remote.reason}", code="BASE_UNREACHABLE", next="Try again when it is."
        )
    warning = f"{remote.reason}; working from the local copy of {name} at {commit[:12]}"
    return Base(name, commit, (warning,))


async def named(repo: Repo, wanted: str, remote: Remote) -> str:
    """The base's name on the remote; ``origin/main`` means ``main``. Raises Refused when the remote has no such branch."""
    name = wanted.removeprefix(f"{REMOTE}/") if remote.heads is None or wanted not in remote.heads else wanted
    name = name or await default_branch(repo, remote)
    if remote.heads is not None and name not in remote.heads:
        raise _missing(name, remote.heads)
    return name


async def default_branch(repo: Repo, remote: Remote) -> str:
    """The remote's default branch, else the branch checked out. Raises Refused when neither says one."""
    if remote.default:
        return remote.default
    head = f"refs/remotes/{REMOTE}/"
    known = await repo.git("symbolic-ref", "--quiet", f"{head}HEAD", ok=(0, 1))
    current = known.text.removeprefix(head) or (await refs.current_branch(repo)).removeprefix("refs/heads/")
    if not current:
        raise Refused(
            "no base branch can be found: the remote names no default and HEAD is detached",
            code="BASE_UNDECIDED",
            next="Name the base branch in the project's settings.",
        )
    return current


async def fetch(repo: Repo, name: str) -> str:
    """Fetches one branch of the repository that takes the changes (origin, or what it is a fork of) into a ref of ours
    and nothing else. Raises Unavailable."""
    remote = await remotes.base_of(repo, REMOTE)
    ref = f"{KEPT}/{name}"
    quiet = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=")
    for _ in range(RACES):
        done = await repo.git("fetch", "--quiet", *quiet, remote, f"+refs/heads/{name}:{ref}", ok=(), timeout=600)
        if "cannot lock ref" not in done.err:
            break
    if done.code:
        raise refs.outside(done, remote=remote, doing=f"fetching {name}")
    return await refs.commit(repo, ref)


async def newest_copy(repo: Repo, name: str) -> str:
    """The newest of: our last fetch, the user's last fetch; only without both, the user's own branch."""
    best = ""
    for ref in (f"{KEPT}/{name}", f"refs/remotes/{REMOTE}/{name}"):
        found = await refs.commit(repo, ref)
        if found and (not best or await refs.is_ancestor(repo, best, found)):
            best = found
    return best or await refs.commit(repo, f"refs/heads/{name}")


def _missing(name: str, heads: Mapping[str, str]) -> Refused:
    if not heads:
        return Refused(
            f"the remote {REMOTE!r} has no branches yet",
            code="REMOTE_EMPTY",
            next=f"Push the base: git push {REMOTE} {name}.",
        )
    return Refused(
        f"the remote {REMOTE!r} has no branch {name!r}",
        code="BASE_MISSING",
        details={"branches": sorted(heads)[:50]},
        next=f"Push it (git push {REMOTE} {name}) or choose another base.",
    )
