"""What a merge adds to the base: built in the object store, for the three methods people know."""

from __future__ import annotations

from collections.abc import Mapping

from beadmill.errors import Conflict, Unavailable
from beadmill.forges.records import Record
from beadmill.git import commits, refs, trees
from beadmill.git.run import Repo


async def signature(checkout: Repo) -> Mapping[str, str]:
    """The user's name and address as git variables. Raises Unavailable when there is none."""
    name, _, mail = (await commits.identity(checkout)).rpartition(" ")
    if not name:
        raise Unavailable("git knows no name to merge with", code="GIT_IDENTITY_MISSING")
    mail = mail.strip("<>")
    return {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", mail))
    }


async def build(repo: Repo, record: Record, base: str, *, method: str, env: Mapping[str, str]) -> str:
    """The base's new tip. Raises Conflict with the paths that do not merge."""
    if method == "rebase":
        return await _rebase(repo, record, base, env)
    merged = await trees.merge(repo, base, record.head)
    _clean(merged, record)
    if method == "squash":
        parents, message = [base], f"{record.title} (#{record.number})\n\n{record.body}"
    else:
        parents, message = [base, record.head], f"Merge change #{record.number}: {record.title}\n\n{record.body}"
    flags = [part for parent in parents for part in ("-p", parent)]
    text = message.strip().replace("\0", "").encode("utf-8", "replace") + b"\n"
    return (await repo.git("commit-tree", merged.tree, *flags, input=text, env=env)).text


async def _rebase(repo: Repo, record: Record, base: str, env: Mapping[str, str]) -> str:
    """The branch's commits one by one on the base, each with its author and words."""
    fork = (await repo.git("merge-base", base, record.head)).text
    listed = await repo.git("rev-list", "--reverse", "--topo-order", "--no-merges", f"{fork}..{record.head}")
    tip = base
    for sha in listed.text.splitlines():
        merged = await trees.merge_trees(repo, f"{sha}^", tip, sha)
        _clean(merged, record)
        if merged.tree != await refs.tree(repo, tip):
            tip = await _copy(repo, sha, merged.tree, tip, env=env)
    return tip


async def _copy(repo: Repo, sha: str, tree: str, parent: str, *, env: Mapping[str, str]) -> str:
    shown = await repo.git("log", "-1", "--format=%an%x00%ae%x00%aD%x00%B", sha)
    name, mail, date, body = shown.out.split(b"\0", 3)
    author = {
        "GIT_AUTHOR_NAME": name.decode("utf-8", "surrogateescape"),
        "GIT_AUTHOR_EMAIL": mail.decode("utf-8", "surrogateescape"),
        "GIT_AUTHOR_DATE": date.decode(),
    }
    text = body.rstrip(b"\n") + b"\n"
    return (await repo.git("commit-tree", tree, "-p", parent, input=text, env={**env, **author})).text


def _clean(merged: trees.Merged, record: Record) -> None:
    if merged.conflicts:
        raise Conflict(
            f"change #{record.number} does not merge into {record.base}: {', '.join(merged.conflicts[:10])}",
            code="MERGE_CONFLICT",
            details={"paths": list(merged.conflicts)},
            kept="Nothing was merged.",
            next=f"Bring {record.base} into {record.branch}, then try again.",
        )
