"""The reply form that Beadmill appends to each template, for a preview of the whole prompt."""

from __future__ import annotations

from functools import cache
from typing import Any

from beadmill.artifacts.reading import shapes
from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs.samples import LABELS
from beadmill.council import BEADS, INTERVIEW, PRD
from beadmill.council.domains import ballot


@cache
def form(template: str) -> Shape[Any] | None:
    """None for a reply in plain words."""
    forms: dict[str, Shape[Any]] = {
        "scan": shapes.RELEVANT_FILES,
        "interview_draft": shapes.QUESTIONS,
        "interview_vote": ballot(INTERVIEW.rubric, LABELS),
        "interview_refine": shapes.REFINED_QUESTIONS,
        "interview_turn": shapes.TURN,
        "interview_coverage": shapes.INTERVIEW_COVERAGE,
        "full_answers": shapes.FILLED_ANSWERS,
        "prd_draft": shapes.PRD,
        "prd_vote": ballot(PRD.rubric, LABELS),
        "prd_refine": shapes.REFINED_PRD,
        "prd_coverage": shapes.COVERAGE,
        "prd_revise": shapes.REVISED_PRD,
        "beads_draft": shapes.BLUEPRINT,
        "beads_vote": ballot(BEADS.rubric, LABELS),
        "beads_refine": shapes.REFINED_BLUEPRINT,
        "beads_coverage": shapes.COVERAGE,
        "beads_revise": shapes.REVISED_BLUEPRINT,
        "beads_expand": shapes.EXPANSION,
        "setup_plan": shapes.SETUP_PLAN,
        "setup_repair": shapes.SETUP_PLAN,
        "coding": shapes.BEAD_STATUS,
        "coding_continue": shapes.BEAD_STATUS,
        "bead_review": shapes.REVIEW,
        "final_test": shapes.FINAL_TEST,
        "review": shapes.REVIEW,
        "qa_checklist": shapes.QA_CHECKLIST,
        "qa_fix_beads": shapes.QA_FIX_BEADS,
        "candidate_audit": shapes.CANDIDATE_AUDIT,
        "pull_request": shapes.PULL_REQUEST,
        "repair": shapes.COVERAGE,
    }
    return forms.get(template)
