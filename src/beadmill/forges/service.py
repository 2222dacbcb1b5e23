"""What a hosting service is to the forge contract: the questions and acts that differ, and their errors in one voice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from beadmill.errors import Conflict, NotFound, Refused, Stale
from beadmill.forges.address import Place
from beadmill.forges.contract import Change, ChangeDraft, ChangeState, ChangeStatus, Check, Comment, Review

OPEN = (ChangeStatus.DRAFT, ChangeStatus.OPEN)


class Exists(Exception):
    """The service says that the branch has a change already."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A change as a service tells it. ``id`` is the service's own name for it. ``waits`` = not worked out yet."""

    state: ChangeState
    id: str = ""
    waits: bool = False

    @property
    def change(self) -> Change:
        return self.state.change

    @property
    def number(self) -> int:
        return self.state.change.ref.number

    @property
    def open(self) -> bool:
        return self.change.status in OPEN


@dataclass(frozen=True, slots=True)
class Access:
    """Who the token is and what it may do with the base repository."""

    login: str
    push: bool
    drafts: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ends:
    """``head`` is where branches are pushed, ``base`` is where changes are proposed; a fork has two."""

    head: Place
    base: Place

    @property
    def forked(self) -> bool:
        return self.head.project != self.base.project


class Service(Protocol):
    """What differs between services. Each method is one question or one act; NotFound when there is no such change."""

    async def access(self) -> Access: ...
    async def tip(self, branch: str) -> str: ...
    async def ahead(self, draft: ChangeDraft) -> int:
        """Commits that the head has and the base lacks. Raises Conflict BASE_MISSING."""
        ...

    async def newest(self, branch: str) -> Pull | None: ...
    async def get(self, number: int) -> Pull: ...
    async def create(self, draft: ChangeDraft) -> Pull:
        """Raises Exists."""
        ...

    async def edit(self, pull: Pull, draft: ChangeDraft) -> None:
        """Title, text and base."""
        ...

    async def ready(self, pull: Pull) -> None: ...
    async def unready(self, pull: Pull) -> None: ...
    async def methods(self) -> tuple[str, ...]:
        """What of METHODS the base repository allows, its own way first."""
        ...

    async def checks(self, pull: Pull) -> tuple[Check, ...]: ...
    async def reviews(self, pull: Pull) -> tuple[Review, ...]: ...
    def comments(self, number: int, since: datetime | None) -> AsyncIterator[Comment]: ...
    async def merge(self, pull: Pull, method: str) -> bool:
        """True = a merge queue took it. Raises Stale, Conflict, Refused."""
        ...

    async def close(self, number: int) -> None: ...
    async def reopen(self, number: int) -> None: ...
    async def note(self, number: int, text: str) -> None: ...


def conflicting(pull: Pull) -> Conflict:
    return Conflict(
        f"change #{pull.number} does not merge into {pull.change.base}",
        code="MERGE_CONFLICT",
        kept="Nothing was merged.",
        next=f"Bring {pull.change.base} into {pull.change.branch}, test it again, then try again.",
    )


def blocked(pull: Pull, why: str) -> Conflict:
    return Conflict(
        f"change #{pull.number} may not be merged now: {why}",
        code="MERGE_BLOCKED",
        details={"reason": why, "url": pull.change.url},
        kept="Nothing was merged; the change is open.",
        next=f"Satisfy the rule of {pull.change.base} at {pull.change.url}, then try again.",
    )


def moved(pull: Pull, expected: str) -> Stale:
    return Stale(
        f"change #{pull.number} is at {pull.change.head[:12]}, not at the approved {expected[:12]}",
        code="HEAD_MOVED",
        details={"expected": expected, "found": pull.change.head},
        kept="Nothing was merged.",
        next="Review the new head.",
    )


def method_of(wanted: str, allowed: tuple[str, ...]) -> str:
    """Raises Refused."""
    if wanted and wanted not in allowed:
        raise Refused(
            f"{wanted!r} is no way to merge here",
            code="BAD_METHOD",
            next=f"Choose {', '.join(allowed) or 'none: ask its owner'}.",
        )
    if not allowed:
        raise Refused("this repository allows no way to merge", code="BAD_METHOD", next="Ask its owner to allow one.")
    return wanted or allowed[0]


def not_reopened(number: int, said: str) -> Conflict:
    return Conflict(
        f"change #{number} cannot be opened again: {said}",
        code="CHANGE_NOT_REOPENED",
        kept="It is closed as it was; the branch is pushed.",
        next="Open a new change for the branch.",
    )


def base_missing(base: str) -> Conflict:
    return Conflict(f"the remote has no branch {base!r}", code="BASE_MISSING", next=f"Push {base}.")


def when(text: str | None) -> datetime:
    """An ISO time of a service."""
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def no_change(number: int) -> NotFound:
    return NotFound(f"there is no change #{number}", code="NO_CHANGE")


def over(pull: Pull) -> Conflict:
    if pull.change.status is ChangeStatus.MERGED:
        return Conflict(
            f"change #{pull.number} is merged", code="CHANGE_MERGED", kept=f"Its merge is {pull.state.merge_sha}."
        )
    return Conflict(
        f"change #{pull.number} is closed", code="CHANGE_CLOSED", next="Reopen it, or push new work for a new one."
    )
