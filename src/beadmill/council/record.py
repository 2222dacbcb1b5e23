"""What seats achieved over many councils: a pure fold over what the councils left behind.

Every number is defined once, in ``DEFINITIONS``; the pages and the documentation show these sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.council import CouncilDrafts, CouncilRefined, CouncilVotes
from beadmill.artifacts.prd import Prd

DEFINITIONS: Final[Mapping[str, str]] = {
    "drafts": "How often the seat was asked for a draft, by what came of it.",
    "mean": "The mean of the totals (0 to 100) that other seats gave to its drafts.",
    "wins": "Votes that chose its draft, of the votes in which it had one; planning without a vote counts for nobody.",
    "adopted": "Changes in documents of other winners that name its draft as their inspiration.",
    "brought": "Epics, stories and beads that were in its draft when it won, or that another winner took from its draft.",
    "approved": "Of those, the ones whose id is still in the document that was approved.",
    "merged": "Of the approved ones, beads that landed, and epics and stories that a landed bead refers to, in a run "
    "whose change was merged.",
    "spend": "Tokens, cost and working time of all its sessions in the steps of the councils, the refinement, the "
    "checks and the interview included.",
}


@dataclass(frozen=True, slots=True)
class Held:
    """One council and what became of it. ``approved`` is the document that a person approved in the newest run that
    stands on it; ``landed`` maps the beads that landed and were merged to what they refer to."""

    drafts: CouncilDrafts
    votes: CouncilVotes | None = None
    refined: CouncilRefined | None = None
    approved: Document | None = None
    landed: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """What one seat did in one council. ``given`` are the totals that others gave its draft."""

    seat: int
    label: str
    outcome: str
    stood: bool
    won: bool
    given: tuple[int, ...]
    adopted: int
    brought: frozenset[str]
    approved: frozenset[str]
    merged: frozenset[str]


@dataclass(slots=True)
class Sum:
    """What one label (agent, model, effort) did in all of them."""

    councils: int = 0
    drafts: Counter[str] = field(default_factory=Counter)  # by outcome
    stood: Counter[str] = field(default_factory=Counter)  # by domain
    wins: Counter[str] = field(default_factory=Counter)  # by domain
    given: list[int] = field(default_factory=list)
    adopted: int = 0
    brought: int = 0
    approved: int = 0
    merged: int = 0

    @property
    def mean(self) -> float | None:
        return sum(self.given) / len(self.given) if self.given else None

    def add(self, part: Part, domain: str) -> None:
        self.councils += 1
        self.drafts[part.outcome] += 1
        self.stood[domain] += part.stood
        self.wins[domain] += part.won
        self.given += part.given
        self.adopted += part.adopted
        self.brought += len(part.brought)
        self.approved += len(part.approved)
        self.merged += len(part.merged)


def parts(held: Held) -> tuple[Part, ...]:
    """Each seat's, in council order."""
    living = ids(held.approved)
    landed = frozenset(_merged(held))
    out = []
    for draft in held.drafts.drafts:
        brought = _brought(held, draft.seat)
        approved = brought & living
        out.append(
            Part(
                seat=draft.seat,
                label=draft.label,
                outcome=draft.outcome,
                stood=held.votes is not None and draft.outcome == "completed",
                won=held.votes is not None and held.votes.winner == draft.seat,
                given=_given(held.votes, draft.seat),
                adopted=len(_inspired(held, draft.seat)),
                brought=brought,
                approved=approved,
                merged=approved & landed,
            )
        )
    return tuple(out)


def summed(councils: Iterable[Held]) -> dict[str, Sum]:
    """By label, in the order in which labels appear."""
    sums: dict[str, Sum] = {}
    for held in councils:
        for part in parts(held):
            sums.setdefault(part.label, Sum()).add(part, held.drafts.domain)
    return sums


def _given(votes: CouncilVotes | None, seat: int) -> tuple[int, ...]:
    if votes is None:
        return ()
    return tuple(
        score.total
        for ballot in votes.ballots
        if ballot.outcome == "completed" and ballot.voter != seat
        for score in ballot.scores
        if score.draft == seat
    )


def _inspired(held: Held, seat: int) -> tuple[str, ...]:
    """Ids of the changes of another winner that this seat's draft inspired."""
    if held.refined is None or held.refined.winner == seat:
        return ()
    return tuple(c.id for c in held.refined.changes if c.inspiration is not None and c.inspiration.draft == seat)


def _brought(held: Held, seat: int) -> frozenset[str]:
    if held.refined is None or held.drafts.domain == "interview":
        return frozenset()
    if held.refined.winner != seat:
        return frozenset(_inspired(held, seat))
    return frozenset(_drafted(next((d.body for d in held.drafts.drafts if d.seat == seat), None)))


def _drafted(body: Any) -> Iterable[str]:
    """Ids in the stored body of a draft."""
    if not isinstance(body, Mapping):
        return
    for epic in body.get("epics", ()):
        yield str(epic["id"])
        yield from (str(story["id"]) for story in epic.get("user_stories", ()))
    yield from (str(bead["id"]) for bead in body.get("beads", ()))


def ids(document: Document | None) -> frozenset[str]:
    """Epics and stories, or beads."""
    if isinstance(document, Prd):
        return document.refs()
    return frozenset(bead.id for bead in document.beads) if isinstance(document, Beads) else frozenset()


def _merged(held: Held) -> Iterable[str]:
    if isinstance(held.approved, Beads):
        yield from held.landed
    elif isinstance(held.approved, Prd):
        served = frozenset[str]().union(*held.landed.values())
        yield from served
        yield from (epic.id for epic in held.approved.epics if served & {s.id for s in epic.user_stories})
