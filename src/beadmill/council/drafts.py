"""What the seats wrote, and how it is shown to others: without names, as ``### Draft N``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Intervention
from beadmill.artifacts.lean import lean_yaml
from beadmill.briefs import PartText

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class Draft(Generic[D]):
    """``basis`` is what the seat rested on (its Full Answers in the PRD council); ``answered`` counts the questions of
    the seat that a person answered meanwhile."""

    seat: int
    document: D
    basis: Document | None = None
    interventions: tuple[Intervention, ...] = ()
    answered: int = 0


@dataclass(frozen=True, slots=True)
class Drafts(Generic[D]):
    """The completed drafts, by seat position."""

    all: tuple[Draft[D], ...]

    @property
    def seats(self) -> tuple[int, ...]:
        return tuple(draft.seat for draft in self.all)

    def of(self, seat: int) -> Draft[D]:
        return next(draft for draft in self.all if draft.seat == seat)

    def winner_first(self, winner: int) -> tuple[Draft[D], ...]:
        return (self.of(winner), *(draft for draft in self.all if draft.seat != winner))


def label(number: int) -> str:
    return f"Draft {number}"


def shown(drafts: Sequence[Draft[D]], remark: Callable[[int, Draft[D]], str]) -> tuple[PartText, ...]:
    """One part per draft, numbered from 1 in the given order. YAML in a fence, so no line of it looks like a heading."""
    return tuple(
        PartText("drafts", f"### {label(n)}\n\n{_line(remark(n, draft))}{fenced(draft.document)}")
        for n, draft in enumerate(drafts, 1)
    )


def fenced(document: Document) -> str:
    text = lean_yaml(document).rstrip("\n")
    fence = "~~~~" if "~~~" in text else "~~~"
    return f"{fence}yaml\n{text}\n{fence}"


def _line(remark: str) -> str:
    return f"{remark}\n\n" if remark else ""
