"""Sample values of every template: a saved edit must render with all of them, a preview is made of the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beadmill.artifacts.rubric import MEANINGS, RUBRICS, Domain
from beadmill.briefs.catalog import SHEETS
from beadmill.briefs.part import PartText

LABELS = ("Draft 1", "Draft 2")
Values = Mapping[str, Any]


def _ballot(domain: Domain) -> Values:
    return {"rubric": tuple(zip(RUBRICS[domain], MEANINGS[domain], strict=True)), "labels": LABELS}


_COVER: tuple[Values, ...] = (
    {"pass_number": 1, "max_passes": 5, "is_final": False, "extra": False},
    {"pass_number": 5, "max_passes": 5, "is_final": True, "extra": False},
    {"pass_number": 6, "max_passes": 5, "is_final": True, "extra": True},
)
_FOLLOW_UPS = {"follow_ups_left": 8, "follow_ups_total": 10, "follow_ups_used": 2}
_TURN = {"edited": False, "max_follow_ups": 10, "follow_ups_left": 10, "questions_left": 7}
_VALUES: Mapping[str, tuple[Values, ...]] = {
    "interview_draft": ({"max_questions": 50},),
    "interview_vote": (_ballot("interview"),),
    "interview_refine": ({"winner": "Draft 1", "max_questions": 50},),
    "interview_turn": (
        {**_TURN, "kind": "first", "batch": 1},
        {**_TURN, "kind": "next", "batch": 3, "edited": True},
        {**_TURN, "kind": "next", "batch": 2},
        {**_TURN, "kind": "resume", "batch": 3},
    ),
    "interview_coverage": tuple({**values, **_FOLLOW_UPS} for values in _COVER[:2]),
    "full_answers": ({"skipped": ("Q02", "Q05")},),
    "prd_vote": (_ballot("prd"),),
    "prd_refine": ({"winner": "Draft 1"},),
    "prd_coverage": _COVER,
    "beads_vote": (_ballot("beads"),),
    "beads_refine": ({"winner": "Draft 1"},),
    "beads_coverage": _COVER,
    "setup_plan": ({"comment": "Use the lock file."}, {"comment": ""}),
    "coding_continue": ({"why": "The bead's second command fails."}, {"why": ""}),
    "repair": (
        {"error": "status: Input should be 'clean' or 'gaps'", "reply_cut": False},
        {"error": "status: Input should be 'clean' or 'gaps'", "reply_cut": True},
    ),
}
HEADS: Mapping[str, str] = {"ticket": "DEMO-1", "subject": "write-rows", "seat": "1", "turn": "1"}


def values(template: str) -> tuple[Values, ...]:
    """At least one set: the cases that the template tells apart."""
    return _VALUES.get(template, ({},))


def material(template: str) -> list[PartText]:
    """Every part the template may be given, with a word instead of its text."""
    parts = [PartText(name, f"(the text of {name})") for name in SHEETS[template].parts if name != "drafts"]
    if "drafts" in SHEETS[template].parts:
        parts += [PartText("drafts", f"### Draft {n}\n\n(the text of draft {n})") for n in (1, 2)]
    return parts
