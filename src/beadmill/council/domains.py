"""The three things a council makes. Everything else about a council is the same for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Blueprint
from beadmill.artifacts.council import ScoreLine
from beadmill.artifacts.interview import Questions
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading.replies import Refined, Revised
from beadmill.artifacts.reading.shape import Shape
from beadmill.artifacts.reading.shapes import (
    BLUEPRINT,
    QUESTIONS,
    REFINED_BLUEPRINT,
    REFINED_PRD,
    REFINED_QUESTIONS,
    REVISED_BLUEPRINT,
    REVISED_PRD,
    VOTES,
)
from beadmill.artifacts.reading.shapes import PRD as PRD_SHAPE
from beadmill.artifacts.rubric import MEANINGS, RUBRICS

D = TypeVar("D", bound=Document)
Name = Literal["interview", "prd", "beads"]


@dataclass(frozen=True, slots=True)
class Domain(Generic[D]):
    """``name`` is also the prefix of its templates. ``questions`` = its drafters may ask a person (reference §8.4)."""

    name: Name
    document: type[D]
    draft: Shape[D]
    refined: Shape[Refined[D]]
    revised: Shape[Revised[D]] | None
    questions: bool

    @property
    def rubric(self) -> tuple[tuple[str, str], ...]:
        """Category and its meaning, in the order of the scores."""
        return tuple(zip(RUBRICS[self.name], MEANINGS[self.name], strict=True))


def ballot(rubric: Sequence[tuple[str, str]], labels: Sequence[str]) -> Shape[dict[str, ScoreLine]]:
    """VOTES with an example in exactly these labels and categories, so that nothing wrong can be copied from it."""
    lines = ["draft_scores:"]
    for label in labels:
        lines += [f"  {label}:", *(f"    {name}: 10" for name, _ in rubric)]
        lines += ["    total_score: 50", "    reason: One sentence about what decided it."]
    return replace(VOTES, example="\n".join(lines))


INTERVIEW = Domain("interview", Questions, QUESTIONS, REFINED_QUESTIONS, None, questions=False)
PRD = Domain("prd", Prd, PRD_SHAPE, REFINED_PRD, REVISED_PRD, questions=True)
BEADS = Domain("beads", Blueprint, BLUEPRINT, REFINED_BLUEPRINT, REVISED_BLUEPRINT, questions=True)
