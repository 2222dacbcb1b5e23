"""What an agent without a sandbox changed outside its tree: found behind every session that may write, and said.

People work in their checkout while tickets run, so a change alone is a warning. It stops the try when the agent's own
tool calls name the place, or run git on what all worktrees share; hooks and settings always do. Nothing of the user's is
put back by Beadmill: the gate says how.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from beadmill import redact
from beadmill.domain.values import GateKind, GateRequest
from beadmill.engine.port import Visit
from beadmill.errors import BeadmillError, Blocked, Refused
from beadmill.workspaces import guard
from beadmill.workspaces.guard import Change, CheckoutState
from beadmill.workspaces.lanes import branches
from beadmill.workspaces.worktrees import Tree, Worktrees

T = TypeVar("T")
LOOKS = ("mend", "escape", "escaped")
LEFT = "The agent changed things outside its worktree, and its work was given up. Work in the current folder only."
_SHARED = re.compile(
    r"\bgit\b[^\n;|&]*\s(?:branch|tag|update-ref|config|push|worktree|stash|remote|symbolic-ref|replace|notes|gc|prune"
    r"|reflog|filter-branch|pull)\b"
)
_BOXED = ("bubblewrap", "container")  # there nothing outside can be written: what changed is a person's


@dataclass(frozen=True, slots=True)
class Before:
    """The user's checkout before a session, and when that was (epoch seconds)."""

    checkout: CheckoutState
    at: float


@dataclass(frozen=True, slots=True)
class Escape:
    """``warnings`` are for the evidence; ``blamed`` says that the agent did it, ``undo`` how to take it back."""

    warnings: tuple[str, ...] = ()
    blamed: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    kept: str = ""
    refused: bool = False  # a person wants the try done again


async def before(v: Visit, tree: Tree) -> Before:
    """Keeps uncommitted work of the user behind a ref of ours first. An act of a step."""
    at = time.time()
    if v.settings.sandbox in _BOXED:
        return Before(CheckoutState("", ""), at)
    name = tree.key if not tree.owner else f"{tree.key}-{Path(tree.workspace).name}"
    kept = await guard.keep(tree.repository, f"refs/beadmill/checkout/{name}", tree.scratch)
    state = await guard.snapshot(tree.repository, ours=branches(tree), kept=kept)
    return Before(state, at)


async def after(v: Visit, tree: Tree, then: Before) -> Escape:
    """An act of a step behind the sessions of ``v``'s scope."""
    if v.settings.sandbox in _BOXED:
        return Escape()
    calls = await v.tools()
    try:
        now = await guard.snapshot(tree.repository, ours=branches(tree))
        found = guard.changes(then.checkout, now, at=tree.repository)
        others = await _others(tree, calls, then.at)
    except Refused:
        raise
    except (BeadmillError, OSError) as error:
        said = f"the repository {tree.repository} cannot be read any more: {error}"
        return Escape((said,), (said,), ("git fsck", f"git clone <its remote> {tree.repository}"), then.checkout.kept)
    named = _named(calls, tree.repository) or _named(calls, str(tree.common))
    shared = any(_SHARED.search(call) for call in calls)
    blamed = [change for change in found if _blamed(change, named=named, shared=shared)]
    return Escape(
        tuple(f"in the checkout, {change.said}" for change in found) + others,
        tuple(f"in the checkout, {change.said}" for change in blamed) + others,
        tuple(change.undo for change in blamed if change.undo),
        then.checkout.kept,
    )


def _blamed(change: Change, *, named: bool, shared: bool) -> bool:
    if change.what in ("hooks", "config"):
        return True
    return named or (shared and change.what in ("head", "ref") and not change.new)


def _named(calls: Sequence[str], place: str) -> bool:
    """The place itself or something inside it, not a folder whose name only begins like it."""
    wanted = re.compile(re.escape(place.rstrip("/")) + r"(?![\w.-])")
    return any(wanted.search(call) for call in calls)


async def _others(tree: Tree, calls: Sequence[str], since: float) -> tuple[str, ...]:
    """Files of other worktrees that were written meanwhile, where the agent's calls name that worktree."""
    home = str(tree.ticket.parent)
    if not any(home in call.replace(tree.workspace, "") for call in calls):
        return ()
    found = await guard.siblings(tree.repository, tree.path, since=since)
    return tuple(
        f"in {place}, the file {path!r} changed" for place, paths in found if _named(calls, place) for path in paths
    )


def gate(escape: Escape, *, what: str) -> GateRequest:
    """A blocked gate of its own: retry does the try again, keep goes on with its work."""
    said = f"The agent left its worktree while it worked at {what}: {'; '.join(escape.blamed)}"
    checkout = f"; your uncommitted work as it was before: {escape.kept}" if escape.kept else ""
    detail = redact.ours().json(
        {
            "code": "AGENT_ESCAPED",
            "message": said,
            "details": {"touched": list(escape.blamed), "undo": list(escape.undo)},
            "kept": f"everything the agent did is as it left it, there and in the worktree{checkout}",
            "next": "Look, and take back what you do not want ("
            + ("; ".join(escape.undo) or "git status")
            + "). Then retry does this try again from its start; keep goes on with the work in the worktree.",
        }
    )
    return GateRequest(
        GateKind.BLOCKED,
        detail["message"][:500],
        ("retry", "keep"),
        detail={**detail, "forget": [], "continuable": False},
    )


@dataclass(frozen=True, slots=True)
class Watch:
    """``start`` is the commit the tree stood at before the session; ``mender`` makes a lane whole again."""

    trees: Worktrees
    tree: Tree
    start: str
    then: Before
    mender: Callable[[Visit], Awaitable[Tree]] | None = None

    async def over(self, v: Visit, talk: Callable[[], Awaitable[T]], *, what: str) -> tuple[T, Escape]:
        """What ``talk`` (agent sessions in ``v``'s scope) gives, and what they did outside. The tree is whole again
        before anything else looks at it. A person is asked when the agent left it, also when the talk failed."""
        try:
            said = await talk()
        except Blocked as failed:
            await self._looked(v, what)
            failed.forget += tuple(f"{v.scope}/{name}" for name in LOOKS)  # whatever goes on is looked at again
            raise
        return said, await self._looked(v, what)

    async def _looked(self, v: Visit, what: str) -> Escape:
        await v.step("mend", self.mend, v)
        escape = await v.step("escape", after, v, self.tree, self.then)
        if not escape.blamed:
            return escape
        answer = await v.ask("escaped", gate(escape, what=what))
        return replace(escape, refused=answer.choice != "keep")

    async def mend(self, v: Visit) -> Tree:
        if self.mender is not None:
            return await self.mender(v)
        work = v.work
        return await self.trees.mend(
            work.repository, work.workspace, branch=work.branch, base=work.base, start=self.start
        )
