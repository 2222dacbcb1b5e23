"""Looking at a folder that a person wants to attach: what it is, and what stands in the way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from beadmill.errors import BeadmillError, Refused
from beadmill.git import commits, refs, remotes
from beadmill.git.run import STRANGERS, GitFailed, Repo, decode, discover
from beadmill.workspaces import bases

OLDEST = (2, 38)  # the first git that merges without a checkout


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable; ``next`` is what a person can do."""

    code: str
    message: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """``path`` is the root of the checkout. ``problems`` stand in the way of a ticket, ``warnings`` do not.
    ``branch`` is what is checked out, "" when detached. ``remote_url`` is free of credentials."""

    path: str
    base: str = ""
    remote: str = ""
    remote_url: str = ""
    branch: str = ""
    identity: str = ""
    problems: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


async def inspect(path: str | Path, *, base: str = "") -> Repository:
    """Never raises for what it finds; every bad case is a Finding. ``base`` is the branch the person wants."""
    place = Path(path).expanduser().absolute()  # noqa: ASYNC240 - one look at a local path
    try:
        repo = await discover(place)
    except GitFailed as error:
        return Repository(str(place), problems=(_not_one(place, error),))
    except BeadmillError as error:
        return Repository(str(place), problems=(_finding(error),))
    try:
        return await _seen(repo, place, base)
    except Refused as error:  # settings that nobody vouches for: no git command is run here
        return Repository(str(repo.work_tree or place), problems=(_finding(error),))


async def trust(path: str | Path) -> None:
    """A person vouches for the git settings of this repository as they are now. Raises GitFailed."""
    await (await discover(Path(path).expanduser().absolute())).trust()  # noqa: ASYNC240 - one look at a local path


async def _seen(repo: Repo, place: Path, base: str) -> Repository:
    if repo.work_tree is None and (checkout := await _checkout_of(repo)):
        return await _look(await discover(checkout), base)
    if repo.work_tree is None:
        bare = Finding("BARE", f"{place} is a bare repository", "Attach a checkout of it (git clone).")
        return Repository(str(place), problems=(bare,))
    return await _look(repo, base)


async def _checkout_of(repo: Repo) -> Path | None:
    """The checkout that a bare repository with worktrees stands for: of its own HEAD's branch, else the first. Worktrees
    of tickets are none."""
    listed = await repo.git("worktree", "list", "--porcelain", "-z")
    found = {}
    for entry in decode(listed.out).split("\0\0"):
        said = dict(line.partition(" ")[::2] for line in entry.split("\0") if line)
        place, branch = Path(said.get("worktree", "/")), said.get("branch", "")
        if (place / ".git").is_file() and not branch.startswith("refs/heads/beadmill/"):
            found[branch] = place
    return found.get(await refs.current_branch(repo)) or next(iter(found.values()), None)


async def common_of(path: str | Path) -> Path | None:
    """git's folder that all worktrees of the repository share; None when there is no repository any more."""
    try:
        return (await discover(Path(path))).common.resolve()
    except BeadmillError:
        return None


async def _look(repo: Repo, wanted: str) -> Repository:
    problems: list[Finding] = []
    warnings: list[Finding] = []
    url, base, remote = "", "", bases.Remote(reason="there is no remote")
    branch = (await refs.current_branch(repo)).removeprefix("refs/heads/")
    if not await refs.commit(repo, "HEAD"):
        problems.append(Finding("EMPTY", "the repository has no commit yet", "Make a first commit and push it."))
    try:
        url = await bases.remote_url(repo)
        remote = await bases.ask(repo)
    except BeadmillError as error:
        problems.append(_finding(error))
    if url and remote.heads is None:
        warnings.append(Finding("REMOTE_UNREACHABLE", remote.reason, "Work starts from the local copy of the base."))
    if url:
        base, found = await _base(repo, wanted, remote)
        problems += found
    identity, missing = await _identity(repo)
    problems += missing
    problems += await _version(repo)
    warnings += await _state(repo, branch)
    return Repository(
        path=str(repo.work_tree),
        base=base,
        remote=bases.REMOTE if url else "",
        remote_url=remotes.without_sign_in(url),
        branch=branch,
        identity=identity,
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


async def _base(repo: Repo, wanted: str, remote: bases.Remote) -> tuple[str, list[Finding]]:
    try:
        name = await bases.named(repo, wanted, remote)
        if remote.heads is None and not await bases.newest_copy(repo, name):
            gone = Finding("BASE_MISSING", f"there is no branch {name!r}", "Choose another base, or fetch it.")
            return name, [gone]
    except BeadmillError as error:
        return wanted, [_finding(error)]
    return name, []


async def _identity(repo: Repo) -> tuple[str, list[Finding]]:
    try:
        return await commits.identity(repo), []
    except BeadmillError as error:
        return "", [_finding(error)]


async def _version(repo: Repo) -> list[Finding]:
    said = (await repo.git("version")).text
    numbers = re.findall(r"\d+", said)
    if tuple(int(n) for n in numbers[:2]) >= OLDEST:
        return []
    return [Finding("GIT_TOO_OLD", f"{said} is too old", f"Install git {OLDEST[0]}.{OLDEST[1]} or newer.")]


async def _state(repo: Repo, branch: str) -> list[Finding]:
    found = []
    status = await repo.git("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames", *STRANGERS)
    if status.fields:
        message = (
            f"the checkout has {len(status.fields)} uncommitted files; tickets start from the base and leave them alone"
        )
        found.append(Finding("DIRTY", message, "Nothing to do."))
    if not branch:
        found.append(Finding("DETACHED", "HEAD is detached", "Nothing to do when the base is named."))
    shallow = await repo.git("rev-parse", "--is-shallow-repository")
    if shallow.text == "true":
        found.append(
            Finding("SHALLOW", "the clone is shallow", "git fetch --unshallow gives full diffs against the base.")
        )
    return found


def _not_one(place: Path, error: GitFailed) -> Finding:
    if not place.is_dir():
        return Finding("NO_FOLDER", f"there is no folder {place}", "Check the path.")
    if "dubious ownership" in error.message:
        hint = f"git config --global --add safe.directory {place}"
        return Finding("FOREIGN", f"{place} belongs to another user, so git refuses it", hint)
    return Finding(
        "NOT_A_REPOSITORY", f"{place} is not inside a git repository", "Run git init there, or choose another."
    )


def _finding(error: BeadmillError) -> Finding:
    return Finding(error.code, error.message, error.next)
