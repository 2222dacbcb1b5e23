"""Every shape a prompt may ask for, by its name."""

from __future__ import annotations

from typing import Any

from beadmill.artifacts.reading.of_bead_status import BEAD_STATUS
from beadmill.artifacts.reading.of_beads import BLUEPRINT, EXPANSION, REFINED_BLUEPRINT, REVISED_BLUEPRINT
from beadmill.artifacts.reading.of_coverage import COVERAGE, INTERVIEW_COVERAGE
from beadmill.artifacts.reading.of_delivery import (
    CANDIDATE_AUDIT,
    FINAL_TEST,
    NOTE,
    PULL_REQUEST,
    RELEVANT_FILES,
    REVIEW,
    SETUP_PLAN,
)
from beadmill.artifacts.reading.of_interview import FILLED_ANSWERS, QUESTIONS, REFINED_QUESTIONS, TURN
from beadmill.artifacts.reading.of_prd import PRD, REFINED_PRD, REVISED_PRD
from beadmill.artifacts.reading.of_qa import QA_CHECKLIST, QA_FIX_BEADS
from beadmill.artifacts.reading.of_votes import VOTES
from beadmill.artifacts.reading.shape import Shape

SHAPES: dict[str, Shape[Any]] = {
    shape.name: shape
    for shape in (
        RELEVANT_FILES,
        QUESTIONS,
        REFINED_QUESTIONS,
        TURN,
        COVERAGE,
        INTERVIEW_COVERAGE,
        FILLED_ANSWERS,
        PRD,
        REFINED_PRD,
        REVISED_PRD,
        BLUEPRINT,
        REFINED_BLUEPRINT,
        REVISED_BLUEPRINT,
        EXPANSION,
        VOTES,
        SETUP_PLAN,
        BEAD_STATUS,
        FINAL_TEST,
        REVIEW,
        CANDIDATE_AUDIT,
        QA_CHECKLIST,
        QA_FIX_BEADS,
        PULL_REQUEST,
        NOTE,
    )
}
STRICT: frozenset[str] = frozenset(SHAPES) - {"note"}  # shapes whose json_schema() fits a strict mode

__all__ = [
    "BEAD_STATUS",
    "BLUEPRINT",
    "CANDIDATE_AUDIT",
    "COVERAGE",
    "EXPANSION",
    "FILLED_ANSWERS",
    "FINAL_TEST",
    "INTERVIEW_COVERAGE",
    "NOTE",
    "PRD",
    "PULL_REQUEST",
    "QA_CHECKLIST",
    "QA_FIX_BEADS",
    "QUESTIONS",
    "REFINED_BLUEPRINT",
    "REFINED_PRD",
    "REFINED_QUESTIONS",
    "RELEVANT_FILES",
    "REVIEW",
    "REVISED_BLUEPRINT",
    "REVISED_PRD",
    "SETUP_PLAN",
    "SHAPES",
    "STRICT",
    "TURN",
    "VOTES",
]
