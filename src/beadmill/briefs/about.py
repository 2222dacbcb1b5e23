"""What each template is for, in the order in which a ticket meets them."""

from __future__ import annotations

from collections.abc import Mapping

# Stage → prompt → what it is for. The snippets stand last: they are shared.
ABOUT: Mapping[str, Mapping[str, str]] = {
    "scan": {"scan": "finds the files that matter to the ticket"},
    "interview": {
        "interview_draft": "a seat drafts the questions to ask",
        "interview_vote": "a seat scores the drafts of questions",
        "interview_refine": "the winner makes the final list of questions",
        "interview_turn": "the winner interviews the person, batch by batch",
        "interview_coverage": "checks the answers for gaps",
    },
    "prd": {
        "full_answers": "a seat answers the questions that the person skipped",
        "prd_draft": "a seat drafts the requirements",
        "prd_vote": "a seat scores the drafts of requirements",
        "prd_refine": "the winner makes the final requirements",
        "prd_coverage": "checks the requirements for gaps",
        "prd_revise": "closes gaps of the requirements",
    },
    "beads": {
        "beads_draft": "a seat drafts the plan of work",
        "beads_vote": "a seat scores the drafts of the plan",
        "beads_refine": "the winner makes the final plan",
        "beads_coverage": "checks the plan for gaps",
        "beads_revise": "closes gaps of the plan",
        "beads_expand": "writes every bead out so that it can be built alone",
    },
    "setup": {
        "setup_plan": "plans how the workspace is prepared",
        "setup_repair": "finds out why a step of the preparation failed",
    },
    "build": {
        "coding": "builds one bead",
        "coding_continue": "goes on with a bead that is not finished",
        "bead_review": "another seat checks one bead against its criteria, where the settings ask for it",
        "iteration_note": "a failed try leaves a note to the next one",
    },
    "verify": {
        "final_test": "writes the final test of the ticket",
        "final_test_note": "a failed final test leaves a note to the next try",
        "review": "another seat reviews the whole change",
    },
    "qa": {
        "qa_checklist": "writes the list that a person checks by hand",
        "qa_fix_beads": "plans how failed checks are mended",
    },
    "integrate": {"candidate_audit": "decides which changed files belong into the change"},
    "pull_request": {"pull_request": "writes title and text of the pull request"},
    "any stage": {"repair": "asks again for a reply that could not be read"},
    "shared": {
        "_fresh": "rules of a session that begins without memory",
        "_same": "rules of a session that goes on",
        "_talk": "rules of the live interview",
        "_look": "how a session may look at the repository",
        "_vote": "how drafts are judged",
    },
}


def stage(name: str) -> str:
    return next(stage for stage, prompts in ABOUT.items() if name in prompts)


def purpose(name: str) -> str:
    return ABOUT[stage(name)][name]
