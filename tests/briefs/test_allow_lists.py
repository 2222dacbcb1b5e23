"""The allow-lists and the drop order against the reference (looptroop-lifecycle §10.1), with every difference named."""

from __future__ import annotations

import pytest

from beadmill.briefs import SHEETS, Briefs, PartText
from beadmill.briefs.catalog import DROP_ORDER
from beadmill.briefs.samples import values
from beadmill.briefs.write import fit
from beadmill.errors import Blocked, Refused

REFERENCE = {
    "scan": "ticket_details",
    "interview_draft": "ticket_details relevant_files",
    "interview_vote": "ticket_details relevant_files drafts",
    "interview_refine": "ticket_details relevant_files drafts",
    "interview_turn": "ticket_details",
    "interview_coverage": "ticket_details user_answers interview",
    "full_answers": "ticket_details relevant_files interview skip_reasons",
    "prd_draft": "ticket_details relevant_files full_answers",
    "prd_vote": "ticket_details relevant_files interview drafts",
    "prd_refine": "ticket_details relevant_files full_answers drafts",
    "prd_coverage": "full_answers prd",
    "prd_revise": "full_answers prd coverage_gaps extra_fixes",
    "beads_draft": "ticket_details relevant_files prd",
    "beads_vote": "ticket_details relevant_files prd drafts",
    "beads_refine": "ticket_details relevant_files prd drafts",
    "beads_coverage": "prd beads",
    "beads_revise": "prd beads coverage_gaps",
    "beads_expand": "ticket_details relevant_files prd beads_draft",
    "setup_plan": "ticket_details relevant_files prd beads workspace_locations execution_setup_profile execution_setup_plan "
    "execution_setup_plan_notes failure",
    "setup_repair": "ticket_details beads execution_setup_plan execution_setup_notes",
    "coding": "bead_data bead_notes",
    "iteration_note": "bead_data error_context",
    "final_test": "ticket_details prd beads final_test_notes",
    "qa_checklist": "ticket_details prd beads final_test_report qa_earlier files",
    "qa_fix_beads": "ticket_details prd beads qa_failures files",
    "candidate_audit": "ticket_details integration_report final_test_report diff",
    "pull_request": "ticket_details prd integration_report final_test_report diff",
}
# What ours may be given beyond the reference, and why.
MORE = {
    "interview_turn": "questions session answers",  # the reference's start, resume and answer messages
    "beads_revise": "extra_fixes decisions",  # "fix gaps" rounds exist for the plan too
    "beads_coverage": "decisions",  # contradictions that the person has settled
    "prd_coverage": "decisions",
    "prd_revise": "decisions",
    "setup_repair": "workspace_locations execution_setup_profile failure error_context",  # what failed, and where
    # what finished beads declared; how the workspace is prepared; what is there now, when the base moved
    "coding": "interfaces execution_setup_profile relevant_files",
    "final_test": "execution_setup_profile",
    "candidate_audit": "files",
    "pull_request": "beads files",  # its table goes from story to bead to check
    "coding_continue": "bead_data error_context",
    "final_test_note": "ticket_details error_context",
    "bead_review": "bead_data files diff",
    "review": "ticket_details prd beads final_test_report tests files diff",
    "repair": "previous_reply",
}
REFERENCE_DROPS = [
    "error_context",
    "bead_notes",
    "execution_setup_plan_notes",
    "execution_setup_notes",
    "final_test_notes",
    "user_answers",
    "tests",
    "drafts",
    "full_answers",
    "beads_draft",
    "beads",
    "interview",
    "prd",
    "relevant_files",
    "execution_setup_plan",
    "execution_setup_profile",
]


@pytest.mark.parametrize("template", sorted(SHEETS))
def test_a_template_may_be_given_what_the_reference_gives_and_what_is_named_here(template: str) -> None:
    allowed = f"{REFERENCE.get(template, '')} {MORE.get(template, '')}".split()
    assert sorted(SHEETS[template].parts) == sorted(allowed)


def test_the_ticket_stands_first_wherever_it_is_given() -> None:
    given = {name: sheet.parts[0] for name, sheet in SHEETS.items() if "ticket_details" in sheet.parts}
    assert set(given.values()) == {"ticket_details"}


def test_what_the_reference_drops_goes_in_its_order() -> None:
    assert [name for name in DROP_ORDER if name in REFERENCE_DROPS] == REFERENCE_DROPS
    assert len(set(DROP_ORDER)) == len(DROP_ORDER)


@pytest.mark.parametrize("template", sorted(SHEETS))
def test_whole_parts_go_one_by_one_in_the_order_and_what_is_held_stays(template: str) -> None:
    sheet = SHEETS[template]
    parts = [PartText(name, f"the text of {name}") for name in sheet.parts]
    goes = [name for name in DROP_ORDER if name in sheet.parts and not sheet.holds(name)]
    left = dict.fromkeys(fitting(template, parts, room) for room in range(600, -1, -1))
    stages = [tuple(name for name in sheet.parts if name not in goes[:count]) for count in range(len(goes) + 1)]
    assert [names for names in left if names is not None] == stages


def fitting(template: str, parts: list[PartText], room: int) -> tuple[str, ...] | None:
    """The names that are kept in so many tokens; None = what is held does not fit."""
    try:
        return tuple(part.name for part in fit(template, SHEETS[template], parts, room))
    except Blocked:
        return None


@pytest.mark.parametrize(
    ("template", "stranger"),
    [
        ("coding", "interview"),
        ("coding", "prd"),
        ("prd_refine", "votes"),
        ("beads_refine", "votes"),
        ("beads_draft", "interview"),
        ("prd_coverage", "interview"),
    ],
)
def test_what_a_stage_must_not_see_is_refused(template: str, stranger: str) -> None:
    with pytest.raises(Refused):
        Briefs().write(template, [PartText(stranger, "x")], **values(template)[0])
