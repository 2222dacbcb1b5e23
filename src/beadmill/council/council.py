"""Draft in parallel, vote without names, let the winner refine (reference looptroop-lifecycle §2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, TypeVar
from uuid import uuid4

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import (
    Ballot,
    Change,
    CouncilDrafts,
    CouncilRefined,
    CouncilVotes,
    Intervention,
    Score,
    ScoreLine,
    SeatDraft,
)
from beadmill.artifacts.rubric import metrics
from beadmill.council.desk import Desk, Parts, SeatOut, Table, blocked_of
from beadmill.council.domains import Domain
from beadmill.council.domains import ballot as ballot_shape
from beadmill.council.drafts import Draft, Drafts, label, shown
from beadmill.domain.council import Tally, order, tally
from beadmill.domain.values import SYSTEM, Access, Event
from beadmill.engine.port import Visit
from beadmill.errors import Blocked

D = TypeVar("D", bound=Document)
ASKED = "While this draft was written, a person answered a question of its author."
Draw = Callable[[Desk], Awaitable[Draft[D]]]


@dataclass(frozen=True, slots=True)
class _Sat(Generic[D]):
    """What became of one seat: the record, the draft when there is one, the scope a retry must forget."""

    record: SeatDraft
    draft: Draft[D] | None
    scope: str


class Council(Generic[D]):
    """``v`` is the visit's top; rows below ``draft/seat-n``, ``vote/seat-n`` and ``refine``."""

    def __init__(self, v: Visit, domain: Domain[D], table: Table) -> None:
        self.v = v
        self.domain = domain
        self.table = table

    def desk(self, position: int, v: Visit) -> Desk:
        """A seat with a fresh clock."""
        return Desk(self.table, position, v)

    async def draft(self, work: Draw[D]) -> Drafts[D]:
        """Every seat at once, each in fresh sessions. Raises Blocked COUNCIL_QUORUM; alone at the table, a seat's
        failure is raised as it is, so that it can be continued."""

        async def one(v: Visit, position: int) -> _Sat[D]:
            desk = self.desk(position, await v.renewed())
            draft: Draft[D] | None = None
            try:
                draft = replace(await work(desk), answered=desk.answered)
            except (SeatOut, Blocked) as error:
                if self.table.solo:
                    raise blocked_of(error) from error
                out = error if isinstance(error, SeatOut) else SeatOut.of(error)
                record = self._out(desk, out)
            else:
                record = self._completed(desk, draft)
            await v.emit("drafted", self._event("drafted", seat=position, outcome=record.outcome, error=record.error))
            return _Sat(record, draft, v.scope)

        sat = await self.v.at("draft").map(range(len(self.table.seats)), one, key=seat_key)
        await self.v.put(CouncilDrafts(domain=self.domain.name, drafts=tuple(s.record for s in sat)), by=SYSTEM)
        drafts = Drafts(tuple(s.draft for s in sat if s.draft is not None))
        missing = [(s.record.seat, s.record.outcome, s.record.error, s.scope) for s in sat if s.draft is None]
        await self._quorum("draft", len(drafts.all), missing)
        return drafts

    def _completed(self, desk: Desk, draft: Draft[D]) -> SeatDraft:
        return SeatDraft(
            seat=desk.position,
            label=str(desk.seat),
            outcome="completed",
            body=draft.document.model_dump(mode="json"),
            basis=draft.basis.model_dump(mode="json") if draft.basis else None,
            seconds=(desk.budget - desk.left).total_seconds(),
            metrics=metrics(draft.document),
            interventions=draft.interventions,
            answered=draft.answered,
        )

    def _out(self, desk: Desk, out: SeatOut) -> SeatDraft:
        seconds = max(desk.budget - desk.left, timedelta()).total_seconds()
        return SeatDraft(
            seat=desk.position, label=str(desk.seat), outcome=out.outcome, error=out.error[:2000], seconds=seconds
        )

    async def vote(self, drafts: Drafts[D], parts: Parts) -> Tally:
        """``parts`` is the context beside the drafts. One draft needs no vote."""
        if len(drafts.all) == 1:
            return Tally({}, drafts.all[0].seat, "" if self.table.solo else "only draft")

        async def one(v: Visit, voter: int) -> tuple[Ballot, str]:
            return await self._ballot(await v.renewed(), voter, drafts, parts), v.scope

        cast = await self.v.at("vote").map(range(len(self.table.seats)), one, key=seat_key)
        ballots = tuple(ballot for ballot, _ in cast)
        missing = [(b.voter, b.outcome, b.error, scope) for b, scope in cast if b.outcome != "completed"]
        await self._quorum("vote", len(ballots) - len(missing), missing)
        counted = tally(ballots)
        await self.v.put(
            CouncilVotes(
                domain=self.domain.name,
                rubric=tuple(name for name, _ in self.domain.rubric),
                ballots=ballots,
                means=counted.means,
                winner=counted.winner,
                tie_break=counted.tie_break,
            ),
            by=SYSTEM,
        )
        await self.v.emit("voted", self._event("voted", winner=counted.winner))
        return counted

    async def _ballot(self, v: Visit, voter: int, drafts: Drafts[D], parts: Parts) -> Ballot:
        """No tools, a fresh session, an order of its own. With three drafts or more, the voter does not see its own."""
        seed = await v.step("seed", new_seed)
        seats = drafts.seats if len(drafts.seats) < 3 else tuple(s for s in drafts.seats if s != voter)
        seen = order(seed, seats)
        labels = tuple(label(n) for n in range(1, len(seen) + 1))
        ballot = Ballot(voter=voter, seed=seed, order=seen, outcome="completed")
        try:
            done = await self.desk(voter, v).write(
                "score",
                f"{self.domain.name}_vote",
                ballot_shape(self.domain.rubric, labels),
                lambda: (*parts(), *shown([drafts.of(seat) for seat in seen], _not_marked_down)),
                values={"rubric": self.domain.rubric, "labels": labels},
                context={
                    "labels": labels,
                    "domain": self.domain.name,
                    "rubric": tuple(name for name, _ in self.domain.rubric),
                },
                access=Access.NONE,
            )
        except Blocked as blocked:
            out = SeatOut.of(blocked)
            ballot = ballot.model_copy(update={"outcome": out.outcome, "error": out.error[:2000]})
        else:
            ballot = ballot.model_copy(update={"scores": _scores(done.value, seen)})
        await v.emit("voted", self._event("ballot", seat=voter, outcome=ballot.outcome, error=ballot.error))
        return ballot

    async def refine(
        self, drafts: Drafts[D], counted: Tally, parts: Parts, *, context: dict[str, object], values: dict[str, Any]
    ) -> D:
        """The winner takes what is better in the other drafts. Without other drafts there is nothing to take."""
        ranked = drafts.winner_first(counted.winner)
        mine = ranked[0]
        if len(ranked) == 1:
            await self._refined(counted.winner, (), ())
            return mine.document
        alternatives = {n: draft.seat for n, draft in enumerate(ranked, 1) if n > 1}
        others = {n: draft.document for n, draft in enumerate(ranked, 1) if n > 1}
        done = await self.desk(counted.winner, self.v).write(
            "refine",
            f"{self.domain.name}_refine",
            self.domain.refined,
            lambda: (*parts(), *shown(ranked, _whose)),
            values={"winner": label(1), **values},
            context={"before": mine.document, "alternatives": alternatives, "shown": others, **context},
        )
        await self._refined(counted.winner, done.value.changes, done.interventions)
        return done.value.document

    async def _refined(self, winner: int, changes: Sequence[Change], interventions: Sequence[Intervention]) -> None:
        record = CouncilRefined(
            domain=self.domain.name, winner=winner, changes=tuple(changes), interventions=tuple(interventions)
        )
        await self.v.put(record, by=self.table.seats[winner])

    async def _quorum(self, what: str, have: int, missing: Sequence[tuple[int, str, str, str]]) -> None:
        """As many as the settings want now; a retry reads them again."""
        here = await self.v.at(f"quorum/{what}").renewed()
        needed = min(here.settings.council.quorum, len(self.table.seats))
        if have >= needed:
            return
        lines = "; ".join(f"seat {n + 1} {self.table.seats[n]}: {outcome}: {error}" for n, outcome, error, _ in missing)
        raise Blocked(
            "COUNCIL_QUORUM",
            f"{have} of {len(self.table.seats)} seats gave a usable {what}, {needed} are needed. {lines}",
            forget=(*(scope for *_, scope in missing), here.scope),
            details={
                "seats": [
                    {"seat": n, "label": str(self.table.seats[n]), "outcome": outcome, "error": error}
                    for n, outcome, error, _ in missing
                ]
            },
            kept=f"the {what}s of the other seats",
            next="retry asks only the seats that failed",
        )

    def _event(self, what: str, **data: Any) -> Event:
        return Event(f"council.{what}", {"domain": self.domain.name, **data})


def seat_key(position: int) -> str:
    return f"seat-{position + 1}"


async def new_seed() -> str:
    """Randomness lives in a step: the recorded seed draws the same order for ever."""
    return uuid4().hex


def _not_marked_down(_number: int, draft: Draft[D]) -> str:
    """Without a name: who asked knows more than the others, and its draft may differ for that alone (reference §2.4)."""
    return f"{ASKED} Do not mark it down merely for differing from the others." if draft.answered else ""


def _whose(number: int, draft: Draft[D]) -> str:
    own = "This is your own draft, the winner." if number == 1 else "An alternative."
    return f"{own} {ASKED}" if draft.answered else own


def _scores(lines: dict[str, ScoreLine], seen: Sequence[int]) -> tuple[Score, ...]:
    """Labels back to seats."""
    return tuple(
        Score(
            draft=seat,
            categories=_five(lines[label(n)].categories),
            total=sum(lines[label(n)].categories),
            reason=lines[label(n)].reason,
        )
        for n, seat in enumerate(seen, 1)
    )


def _five(points: tuple[int, ...]) -> tuple[int, int, int, int, int]:
    a, b, c, d, e = points
    return a, b, c, d, e
