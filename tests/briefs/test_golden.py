"""Every template, assembled with sample parts, against a committed file. After a wanted change:
``UPDATE_GOLDEN=1 pytest tests/briefs/test_golden.py``, then read the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from beadmill.artifacts.reading import shapes
from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs import SHEETS, Briefs, PartText
from beadmill.council import BEADS, INTERVIEW, PRD, Domain
from beadmill.council.domains import ballot

GOLDEN = Path(__file__).parent / "golden"
COVER: dict[str, Any] = {"pass_number": 1, "max_passes": 5, "is_final": False, "extra": False}


LABELS = ("Draft 1", "Draft 2")


def vote(domain: Domain[Any]) -> dict[str, Any]:
    return {"rubric": domain.rubric, "labels": LABELS}


SHAPES: dict[str, Shape[Any]] = {
    "scan": shapes.RELEVANT_FILES,
    "interview_draft": shapes.QUESTIONS,
    "interview_vote": ballot(INTERVIEW.rubric, LABELS),
    "interview_refine": shapes.REFINED_QUESTIONS,
    "interview_turn": shapes.TURN,
    "interview_coverage": shapes.COVERAGE,
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
VALUES: dict[str, dict[str, Any]] = {
    "interview_draft": {"max_questions": 50},
    "interview_vote": vote(INTERVIEW),
    "interview_refine": {"winner": "Draft 1", "max_questions": 50},
    "interview_turn": {
        "kind": "first",
        "edited": False,
        "batch": 1,
        "max_follow_ups": 10,
        "follow_ups_left": 10,
        "questions_left": 7,
    },
    "interview_coverage": COVER | {"follow_ups_left": 8, "follow_ups_total": 10, "follow_ups_used": 2},
    "full_answers": {"skipped": ("Q02", "Q05")},
    "prd_vote": vote(PRD),
    "prd_refine": {"winner": "Draft 1"},
    "prd_coverage": COVER,
    "beads_vote": vote(BEADS),
    "beads_refine": {"winner": "Draft 1"},
    "beads_coverage": COVER | {"pass_number": 5, "is_final": True},
    "setup_plan": {"comment": "Use the lock file."},
    "coding_continue": {"why": "The bead's second command fails."},
    "repair": {"error": "status: Input should be 'clean' or 'gaps'", "reply_cut": False},
}


def assembled(template: str) -> str:
    parts = [PartText(name, f"(the text of {name})") for name in SHEETS[template].parts if name != "drafts"]
    if "drafts" in SHEETS[template].parts:
        parts += [PartText("drafts", f"### Draft {n}\n\n(the text of draft {n})") for n in (1, 2)]
    brief = Briefs().write(
        template,
        parts,
        ticket="DEMO-1",
        subject="write-rows",
        seat="1",
        turn="1",
        shape=SHAPES.get(template),
        **VALUES.get(template, {}),
    )
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
        values = VALUES["interview_turn"] | {"kind": kind, "edited": kind == "next", "batch": 3}
        parts = [PartText("answers" if kind == "next" else "session", "Q01: Who?\n  answer: Staff")]
        text = Briefs().write("interview_turn", parts, shape=shapes.TURN, **values).text
        path = GOLDEN / f"interview_turn.{kind}.md"
        if os.environ.get("UPDATE_GOLDEN") == "1":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_behind() -> None:
    known = {f"{name}.md" for name in SHEETS} | {"interview_turn.next.md", "interview_turn.resume.md"}
    assert {path.name for path in GOLDEN.iterdir()} == known
