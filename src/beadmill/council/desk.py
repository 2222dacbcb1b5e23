"""Table: what all seats share. Desk: one seat at work, on one clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from beadmill.artifacts.council import Outcome
from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs import Briefs, PartText
from beadmill.council.seats import seats
from beadmill.domain.ended import Lapsed, SessionRef
from beadmill.domain.values import Access, Brief, Seat
from beadmill.engine.port import Visit
from beadmill.engine.structured import Structured, structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.processes.spec import AgentTask

T = TypeVar("T")
Parts = Callable[[], Sequence[PartText]]  # called only when a session must be started


@dataclass(frozen=True, slots=True)
class Table:
    """``tree`` is the worktree the seats look at; ``solo`` = one seat, no vote, no refinement."""

    briefs: Briefs
    seats: tuple[Seat, ...]
    tree: Path
    retries: int
    questions: bool

    @property
    def solo(self) -> bool:
        return len(self.seats) == 1

    @classmethod
    def of(cls, v: Visit, briefs: Briefs, tree: Path, *, solo: bool = False) -> Table:
        """A council of one seat is solo planning, whatever the mode says."""
        council = v.settings.council
        sitting = seats(v.settings)
        sitting = sitting[:1] if solo or council.mode == "solo" else sitting
        return cls(
            briefs=briefs.within(v.settings.context_tokens, v.prompts),
            seats=sitting,
            tree=tree,
            retries=council.structured_retries,
            questions=v.settings.questions.enabled,
        )


class Desk:
    """One seat with one budget of working time, ``v``'s deadline: everything it writes here runs on the same clock."""

    def __init__(self, table: Table, position: int, v: Visit) -> None:
        self.table = table
        self.position = position
        self.v = v
        self.budget = self.left = timedelta(seconds=v.settings.council.deadline_s)
        self.answered = 0  # questions of this seat that a person answered

    @property
    def seat(self) -> Seat:
        return self.table.seats[self.position]

    async def write(
        self,
        name: str,
        template: str,
        shape: Shape[T],
        parts: Parts,
        *,
        values: Mapping[str, Any] | None = None,
        context: Mapping[str, object] | None = None,
        check: Callable[[T], str] | None = None,
        access: Access = Access.READ,
        subject: str = "",
        turn: str = "",
        resume: SessionRef | None = None,
        fresh: bool = True,
        questions: bool = False,
    ) -> Structured[T]:
        """One structured exchange under the durable name ``name``. Raises what ``structured`` raises."""
        left = self.left

        def brief() -> Brief:
            heads = {"ticket": self.v.work.key, "subject": subject, "seat": str(self.position + 1), "turn": turn}
            return self.table.briefs.write(template, parts(), shape=shape, **heads, **(values or {}))

        def task(given: Brief) -> AgentTask:
            ask = questions and self.table.questions
            return AgentTask(
                seat=self.seat,
                brief=given,
                access=access,
                cwd=self.table.tree,
                budget=max(left, timedelta(seconds=1)),
                idle=self.budget,
                resume=resume,
                questions=ask,
            )

        done = await structured(
            self.v,
            name,
            shape=shape,
            task=task,
            brief=brief,
            retries=self.table.retries,
            briefs=self.table.briefs,
            fresh=fresh,
            context=context,
            check=check,
        )
        self.left -= done.worked
        self.answered += done.answered
        return done


class SeatOut(Exception):
    """A seat is out of this round: an outcome of that seat, not a block of the visit."""

    def __init__(self, outcome: Outcome, error: str, blocked: Blocked) -> None:
        super().__init__(error)
        self.outcome = outcome
        self.error = error
        self.blocked = blocked

    @classmethod
    def of(cls, blocked: Blocked, *, invalid: Outcome = "invalid_output") -> SeatOut:
        """Raises ``blocked`` again when it is not about the seat (a budget, a missing artifact)."""
        if isinstance(blocked, TurnFailed):
            return cls("timed_out" if isinstance(blocked.end, Lapsed) else "failed", blocked.message, blocked)
        if blocked.code == "AGENT_OUTPUT_INVALID":
            return cls(invalid, blocked.message, blocked)
        raise blocked


def blocked_of(error: SeatOut | Blocked) -> Blocked:
    return error.blocked if isinstance(error, SeatOut) else error
