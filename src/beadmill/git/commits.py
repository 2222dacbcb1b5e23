"""Commits of exact paths, made in the object store and shown by one compare-and-set of the branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from beadmill import crashpoints
from beadmill.errors import Invalid, Refused, Unavailable
from beadmill.git import lfs, refs, trees
from beadmill.git.run import GitFailed, Repo, z

KEY = "Beadmill-Key"
SIGNING = 60.0  # seconds for a signing program: nobody is there to answer its prompt


async def identity(repo: Repo) -> str:
    """``Name <mail>`` of the user's git configuration. Raises Unavailable when there is none."""
    found = []
    for role in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        done = await repo.git("var", role, ok=())
        if done.code:
            raise Unavailable(
                "git knows no name and e-mail address to commit with",
                code="GIT_IDENTITY_MISSING",
                details={"stderr": done.err.strip()[-500:]},
                next='Set them: git config --global user.name "…" and git config --global user.email "…".',
            )
        found.append(done.text.rsplit(" ", 2)[0])
    return found[0]


def message_of(message: str, trailers: Mapping[str, str]) -> str:
    """The message with its trailers as a last paragraph. Raises Invalid for a trailer that git would not read back."""
    for name, value in trailers.items():
        if not name.replace("-", "").isalnum() or "\n" in value or not value.strip():
            raise Invalid(f"{name!r}: {value!r} cannot be a commit trailer", code="BAD_TRAILER")
    lines = [f"{name}: {value}" for name, value in trailers.items()]
    body = message.strip().replace("\0", "")
    return f"{body}\n\n" + "\n".join(lines) + "\n" if lines else f"{body}\n"


async def by_key(repo: Repo, key: str, *, since: str, until: str) -> str:
    """The commit between ``since`` (exclusive) and ``until`` whose trailer is this key, "" for none."""
    shape = f"--format=%H%x09%(trailers:key={KEY},valueonly,separator=%x09)"
    done = await repo.git("log", "-z", shape, until, f"^{since}")
    for entry in done.fields:
        sha, *values = entry.rstrip("\n").split("\t")
        if key in values:
            return sha
    return ""


def check_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Exact, relative, inside the tree. Raises Invalid."""
    for path in paths:
        parts = path.split("/")
        if not path or "\0" in path or any(part in ("", ".", "..") or part.casefold() == ".git" for part in parts):
            raise Invalid(f"{path!r} is not a path inside the worktree", code="BAD_PATH")
    return tuple(dict.fromkeys(paths))


async def tree_of(repo: Repo, scratch: Path, base: str, paths: Sequence[str]) -> str:
    """The tree a commit of these paths on ``base`` has. Raises Refused for a repository inside the tree, and for a file
    of LFS whose content or made-up pointer would be committed."""
    tree = await trees.with_paths(repo, scratch, base, check_paths(paths))
    links = await trees.new_gitlinks(repo, base, tree)
    modules = await repo.git("config", "--blob", f"{tree}:.gitmodules", "-z", "--get-regexp", r"\.path$", ok=())
    known = {entry.partition("\n")[2] for entry in modules.fields} if modules.code == 0 else set()
    foreign = sorted(set(links) - known)
    if foreign:
        raise Refused(
            f"{foreign[0]!r} is a git repository of its own, and nobody could fetch what such a commit names",
            code="NESTED_REPOSITORY",
            details={"paths": foreign},
            kept="Nothing was committed.",
            next="Delete its .git folder, ignore it, or add it as a submodule.",
        )
    await lfs.check(repo, base, tree, paths)
    return tree


async def write(repo: Repo, tree: str, parents: Sequence[str], message: str) -> str:
    """A commit by the user, signed when the user signs. Not on any branch yet."""
    await identity(repo)
    flags = [part for parent in parents for part in ("-p", parent)]
    data = message.encode("utf-8", "replace")
    if not await signs(repo):
        return (await repo.git("commit-tree", tree, *flags, input=data)).text
    return await _signed(repo, tree, *flags, data=data)


async def signs(repo: Repo) -> bool:
    """The user signs commits."""
    return (await repo.git("config", "--type=bool", "--get", "commit.gpgSign", ok=(0, 1))).text == "true"


async def try_signing(repo: Repo) -> None:
    """Signs a commit that nothing points at. Raises Unavailable when that does not work without a prompt."""
    await _signed(repo, await refs.tree(repo, "HEAD"), data=b"does signing work?\n")


async def _signed(repo: Repo, tree: str, *flags: str, data: bytes) -> str:
    try:
        return (await repo.git("commit-tree", "-S", tree, *flags, input=data, timeout=SIGNING)).text
    except (GitFailed, Unavailable) as error:
        raise Unavailable(
            f"the commit could not be signed: {error.message}",
            code="SIGNING_FAILED",
            kept="Nothing was committed; the files are as they were.",
            next="Make signing work without a prompt (test: git commit -S in your checkout), or turn commit.gpgSign off.",
        ) from error


async def show(repo: Repo, ref: str, new: str, old: str, *, why: str) -> None:
    """Moves the branch by compare-and-set. Raises Stale when somebody moved it meanwhile."""
    crashpoints.reach("git.commit")
    await refs.update(repo, ref, new, old=old, why=f"beadmill: {why}")
    crashpoints.reach("git.commit")


async def settle_index(repo: Repo, paths: Sequence[str]) -> None:
    """The index entries of these paths as HEAD has them; files and other entries stay."""
    flags = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if paths:
        await repo.git("reset", "--quiet", *flags, input=z(paths))
