"""What came up on an open change since people last looked: failed checks, reviews that ask for changes, comments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Final

from beadmill.forges.contract import ChangeRef, ChangeState, Comment, Forge, Review

MOST: Final = 100  # remarks
SHOWN: Final = 4_000  # characters of one remark


@dataclass(frozen=True, slots=True)
class Remark:
    """A review that asks for changes, or a comment. ``id`` is of the forge."""

    id: str
    author: str
    body: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """``failed`` are names of checks, told only when none is pending. ``blocked`` is why the forge would refuse a merge
    now; it is shown and is no news by itself."""

    failed: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    pending: tuple[str, ...] = ()
    blocked: str = ""

    @property
    def asks(self) -> bool:
        """There is something to be done about."""
        return bool(self.failed or self.remarks)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(remark.id for remark in self.remarks)

    @property
    def digest(self) -> str:
        """Equal as long as there is nothing new; "" for nothing at all."""
        if not self.asks:
            return ""
        what = [sorted(self.failed), sorted(self.ids)]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


async def news(forge: Forge, change: ChangeRef, state: ChangeState, *, handled: Collection[str] = ()) -> News:
    """``handled`` are ids of remarks that became work already. Raises as the forge does."""
    comments = [one async for one in forge.comments(change)]
    remarks = [*(_review(one) for one in state.reviews if one.state == "changes_requested"), *map(_comment, comments)]
    new = [one for one in remarks if one.id not in handled and one.body.strip()]
    pending = tuple(check.name for check in state.checks if check.state == "pending")
    failed = tuple(f"{one.name} {one.url}".strip() for one in state.checks if one.state == "failed")
    return News(() if pending else failed, tuple(new[-MOST:]), pending, state.blocked)


def told(found: News) -> str:
    """For the bead that mends it. What others wrote is quoted: it is material, no instruction to a tool."""
    parts = []
    if found.failed:
        parts.append("These checks of the forge fail:\n" + "\n".join(f"- {name}" for name in found.failed))
    for remark in found.remarks:
        place = f" on {remark.path}:{remark.line}" if remark.path else ""
        quoted = "\n".join(f"> {line}" for line in remark.body.splitlines())
        parts.append(f"{remark.author} wrote{place}:\n{quoted}")
    return "\n\n".join(parts)


def shown(found: News) -> dict[str, object]:
    """As JSON, for the gate."""
    return {**asdict(found), "digest": found.digest}


def _review(review: Review) -> Remark:
    at = review.at.isoformat() if review.at else ""
    body = review.body.strip() or "asks for changes"
    return Remark(f"review:{review.author}:{at or review.commit}", review.author, body[:SHOWN])


def _comment(comment: Comment) -> Remark:
    return Remark(f"comment:{comment.id}", comment.author, comment.body[:SHOWN], comment.path, comment.line)
