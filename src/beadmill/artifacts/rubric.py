"""Five categories of 0-20 per council domain (reference §2.4), and what a draft is measured by."""

from __future__ import annotations

from typing import Literal

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Beads, Blueprint
from beadmill.artifacts.interview import Questions
from beadmill.artifacts.prd import Prd

Domain = Literal["interview", "prd", "beads"]

_COMMON = (
    "Coverage of requirements",
    "Correctness / feasibility",
    "Testability",
    "Minimal complexity / good decomposition",
    "Risks / edge cases addressed",
)
RUBRICS: dict[Domain, tuple[str, str, str, str, str]] = {
    "interview": _COMMON,
    "prd": _COMMON,
    "beads": (
        "Coverage of PRD requirements",
        "Correctness / feasibility of technical approach",
        "Quality and isolation of bead-scoped tests",
        "Minimal complexity / good dependency management",
        "Risks / edge cases addressed",
    ),
}
MEANINGS: dict[Domain, tuple[str, str, str, str, str]] = {
    "interview": (
        "the questions reach every area that the requirements need",
        "each question is unambiguous and this user can answer it",
        "the answers will give measurable requirements",
        "from foundation to assembly, nothing twice, as few questions as needed",
        "constraints, failures and non-goals come out",
    ),
    "prd": (
        "everything from the interview is represented",
        "technically sound and consistent with itself",
        "criteria are specific and measurable",
        "epics and stories are well split and do not repeat each other",
        "errors, performance and security are written down",
    ),
    "beads": (
        "each story and criterion has a bead and a check",
        "achievable, and the commands are valid for this repository",
        "each bead's tests test that bead and nothing else",
        "smallest useful units, dependencies without cycles",
        "failure modes and anti-patterns are in the guidance",
    ),
}


def metrics(document: Document) -> dict[str, int]:
    """Counts shown beside a draft (reference §2.3). An unknown kind has none."""
    if isinstance(document, Questions):
        return {"questions": len(document.questions)}
    if isinstance(document, Prd):
        stories = [story for epic in document.epics for story in epic.user_stories]
        criteria = sum(len(story.acceptance_criteria) for story in stories)
        return {"epics": len(document.epics), "user_stories": len(stories), "acceptance_criteria": criteria}
    if isinstance(document, (Blueprint, Beads)):
        return {
            "beads": len(document.beads),
            "tests": sum(len(bead.tests) for bead in document.beads),
            "acceptance_criteria": sum(len(bead.acceptance_criteria) for bead in document.beads),
        }
    return {}
