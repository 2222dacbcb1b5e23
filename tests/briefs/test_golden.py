"""Every template, assembled with sample parts, against a committed file. After a wanted change:
``UPDATE_GOLDEN=1 pytest tests/briefs/test_golden.py``, then read the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from beadmill.artifacts.reading import shapes
from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs import SHEETS, Briefs, PartText, samples
from beadmill.council import BEADS, INTERVIEW, PRD
from beadmill.council.domains import ballot

GOLDEN = Path(__file__).parent / "golden"
LABELS = samples.LABELS


SHAPES: dict[str, Shape[Any]] = {
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
    "final_test": shapes.FINAL_TEST,
    "review": shapes.REVIEW,
    "candidate_audit": shapes.CANDIDATE_AUDIT,
    "pull_request": shapes.PULL_REQUEST,
    "repair": shapes.COVERAGE,
}


def assembled(template: str) -> str:
    values = samples.values(template)[template == "beads_coverage"]  # of that one the last pass
    form = SHAPES.get(template)
    brief = Briefs().write(template, samples.material(template), **samples.HEADS, shape=form, **values)
    return brief.text


@pytest.mark.parametrize("template", sorted(SHEETS))
def test_the_assembled_prompt_is_the_committed_one(template: str) -> None:
    path = GOLDEN / f"{template}.md"
    text = assembled(template)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_turns_after_the_first_are_the_committed_ones() -> None:
    for kind in ("next", "resume"):
        values = next(v for v in samples.values("interview_turn") if v["kind"] == kind)
        parts = [PartText("answers" if kind == "next" else "session", "Q01: Who?\n  answer: Staff")]
        text = Briefs().write("interview_turn", parts, shape=shapes.TURN, **values).text
        path = GOLDEN / f"interview_turn.{kind}.md"
        if os.environ.get("UPDATE_GOLDEN") == "1":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_behind() -> None:
    known = {f"{name}.md" for name in SHEETS} | {"interview_turn.next.md", "interview_turn.resume.md"}
    assert {path.name for path in GOLDEN.iterdir()} == known
