"""Which parts each template may be given (reference looptroop-lifecycle §10.1), in which order they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sheet:
    """``parts`` is the allow-list in the order of the brief; ``needs`` are never dropped, ``ticket_details`` neither."""

    parts: tuple[str, ...]
    needs: frozenset[str] = frozenset()

    def holds(self, part: str) -> bool:
        return part == "ticket_details" or part in self.needs


TITLES: Mapping[str, str] = {
    "ticket_details": "Ticket",
    "relevant_files": "Relevant files",
    "questions": "Compiled questions",
    "session": "The interview so far",
    "answers": "Answers to the last batch",
    "user_answers": "What the person answered",
    "interview": "Interview",
    "skip_reasons": "Why questions were skipped",
    "full_answers": "Interview with every question answered",
    "prd": "Requirements",
    "beads": "Plan of work",
    "beads_draft": "Plan of work to expand",
    "drafts": "Drafts",
    "coverage_gaps": "Gaps to close",
    "decisions": "What the person decided",
    "extra_fixes": "Earlier extra rounds",
    "execution_setup_plan": "Setup plan",
    "execution_setup_profile": "Prepared environment",
    "execution_setup_plan_notes": "Notes on the setup plan",
    "execution_setup_notes": "Notes of earlier setup attempts",
    "workspace_locations": "Where things are",
    "failure": "What failed",
    "bead_data": "Bead",
    "bead_notes": "Notes of earlier tries",
    "interfaces": "What finished beads declared",
    "error_context": "What happened",
    "tests": "Tests",
    "final_test_notes": "Notes of earlier tries",
    "final_test_report": "Final test",
    "integration_report": "Integration",
    "qa_earlier": "Earlier rounds of manual QA",
    "qa_failures": "What failed, in groups",
    "files": "Changed files",
    "diff": "Diff",
    "previous_reply": "Your last reply",
}

# Dropped whole, first to last, until the brief fits (reference §10.1). What a sheet needs is passed over.
DROP_ORDER: tuple[str, ...] = (
    "error_context",
    "extra_fixes",
    "bead_notes",
    "execution_setup_plan_notes",
    "execution_setup_notes",
    "final_test_notes",
    "user_answers",
    "skip_reasons",
    "tests",
    "integration_report",
    "final_test_report",
    "qa_earlier",
    "diff",
    "files",
    "drafts",
    "full_answers",
    "beads_draft",
    "beads",
    "session",
    "interview",
    "prd",
    "interfaces",
    "relevant_files",
    "workspace_locations",
    "failure",
    "execution_setup_plan",
    "execution_setup_profile",
    "answers",
    "questions",
    "coverage_gaps",
    "decisions",
    "bead_data",
    "qa_failures",
    "previous_reply",
)

_FILES = ("ticket_details", "relevant_files")
_OPEN = ("coverage_gaps", "decisions", "extra_fixes")
_FULL = ("ticket_details", "relevant_files", "prd", "beads")


def _sheet(*parts: str, needs: str = "") -> Sheet:
    return Sheet(parts, frozenset(needs.split()))


SHEETS: Mapping[str, Sheet] = {
    "scan": _sheet("ticket_details"),
    "interview_draft": _sheet(*_FILES),
    "interview_vote": _sheet(*_FILES, "drafts", needs="drafts"),
    "interview_refine": _sheet(*_FILES, "drafts", needs="drafts"),
    "interview_turn": _sheet("ticket_details", "questions", "session", "answers", needs="questions session answers"),
    "interview_coverage": _sheet("ticket_details", "user_answers", "interview", needs="interview"),
    "full_answers": _sheet(*_FILES, "interview", "skip_reasons", needs="interview"),
    "prd_draft": _sheet(*_FILES, "full_answers", needs="full_answers"),
    "prd_vote": _sheet(*_FILES, "interview", "drafts", needs="drafts"),
    "prd_refine": _sheet(*_FILES, "full_answers", "drafts", needs="drafts"),
    "prd_coverage": _sheet("full_answers", "prd", "decisions", needs="full_answers prd decisions"),
    "prd_revise": _sheet("full_answers", "prd", *_OPEN, needs="full_answers prd coverage_gaps decisions"),
    "beads_draft": _sheet(*_FILES, "prd", needs="prd"),
    "beads_vote": _sheet(*_FILES, "prd", "drafts", needs="drafts"),
    "beads_refine": _sheet(*_FILES, "prd", "drafts", needs="drafts"),
    "beads_coverage": _sheet("prd", "beads", "decisions", needs="prd beads decisions"),
    "beads_revise": _sheet("prd", "beads", *_OPEN, needs="prd beads coverage_gaps decisions"),
    "beads_expand": _sheet(*_FILES, "prd", "beads_draft", needs="beads_draft"),
    "setup_plan": _sheet(
        *_FULL,
        "workspace_locations",
        "execution_setup_profile",
        "execution_setup_plan",
        "execution_setup_plan_notes",
        "failure",
        needs="beads",
    ),
    "setup_repair": _sheet(
        "ticket_details",
        "beads",
        "workspace_locations",
        "execution_setup_plan",
        "execution_setup_profile",
        "execution_setup_notes",
        "failure",
        "error_context",
        needs="execution_setup_plan failure",
    ),
    "coding": _sheet(
        "bead_data", "relevant_files", "interfaces", "execution_setup_profile", "bead_notes", needs="bead_data"
    ),
    "coding_continue": _sheet("bead_data", "error_context"),
    "bead_review": _sheet("bead_data", "files", "diff", needs="bead_data diff"),
    "iteration_note": _sheet("bead_data", "error_context"),
    "final_test": _sheet("ticket_details", "prd", "beads", "execution_setup_profile", "final_test_notes", needs="prd"),
    "final_test_note": _sheet("ticket_details", "error_context", needs="error_context"),
    "review": _sheet("ticket_details", "prd", "beads", "final_test_report", "tests", "files", "diff"),
    "qa_checklist": _sheet(
        "ticket_details", "prd", "beads", "final_test_report", "qa_earlier", "files", needs="prd qa_earlier"
    ),
    "qa_fix_beads": _sheet("ticket_details", "prd", "beads", "qa_failures", "files", needs="qa_failures"),
    "candidate_audit": _sheet(
        "ticket_details", "integration_report", "final_test_report", "files", "diff", needs="files"
    ),
    "pull_request": _sheet(
        "ticket_details", "prd", "beads", "integration_report", "final_test_report", "files", "diff"
    ),
    "repair": _sheet("previous_reply"),
}
