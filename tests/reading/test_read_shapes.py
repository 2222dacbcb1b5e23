"""What each shape demands beyond its schema, and what it may put right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from beadmill.artifacts.interview import Answer, Interview, InterviewQuestion, Option
from beadmill.artifacts.reading import Reading, read
from beadmill.artifacts.reading.shapes import (
    BEAD_STATUS,
    BLUEPRINT,
    CANDIDATE_AUDIT,
    COVERAGE,
    EXPANSION,
    FILLED_ANSWERS,
    FINAL_TEST,
    PRD,
    PULL_REQUEST,
    QUESTIONS,
    REFINED_BLUEPRINT,
    REFINED_PRD,
    RELEVANT_FILES,
    REVIEW,
    REVISED_PRD,
    SETUP_PLAN,
    TURN,
    VOTES,
)
from beadmill.artifacts.rubric import RUBRICS

LABELS = ("Draft 1", "Draft 2")
NAMES = RUBRICS["prd"]


def ballot(**change: Any) -> dict[str, Any]:
    line = dict.fromkeys(NAMES, 10) | {"total_score": 50, "reason": "fine"}
    return {"draft_scores": {"Draft 1": line | change, "Draft 2": line}}


def vote(data: Any) -> Reading[Any]:
    return read(VOTES, json.dumps(data), context={"labels": LABELS, "domain": "prd"})


def notes(reading: Reading[Any]) -> list[str]:
    return [note.title for note in reading.interventions]


def test_totals_are_recomputed_and_reasons_cut() -> None:
    reading = vote(ballot(total_score=99, reason="x" * 300))
    assert reading.value is not None
    line = reading.value["Draft 1"]
    assert (line.total_score, len(line.reason)) == (50, 200)
    assert notes(reading) == ["total recomputed", "reason cut to 200 characters"]


def test_a_missing_total_is_the_sum() -> None:
    data = ballot()
    del data["draft_scores"]["Draft 1"]["total_score"]
    reading = vote(data)
    assert reading.value is not None
    assert reading.value["Draft 1"].total_score == 50


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (ballot(**{NAMES[0]: 21}), "Draft 1: Coverage of requirements: 21 is outside 0 to 20"),
        (ballot(**{NAMES[0]: -1}), "Draft 1: Coverage of requirements: -1 is outside 0 to 20"),
        (ballot(Style=3), "Draft 1: 'Style' is not a category"),
        ({"draft_scores": {"Draft 1": ballot()["draft_scores"]["Draft 1"]}}, "Draft 2: missing"),
        ({"draft_scores": ballot()["draft_scores"] | {"Draft 3": {}}}, "Draft 3: no such draft"),
    ],
)
def test_a_ballot_must_score_exactly_the_shown_drafts_in_five_categories(data: Any, error: str) -> None:
    reading = vote(data)
    assert (reading.value, reading.failure) == (None, "validation")
    assert reading.error.splitlines()[0] == error


def test_scores_come_back_in_the_order_of_the_labels_and_the_rubric() -> None:
    line = {name: n for n, name in enumerate(NAMES)}
    data = {"draft_scores": {"draft 2": dict(reversed(line.items())), "DRAFT-1": line}}
    reading = vote(data)
    assert reading.value is not None
    assert [(k, v.categories) for k, v in reading.value.items()] == [(k, (0, 1, 2, 3, 4)) for k in LABELS]


def test_short_category_names_points_of_twenty_and_a_list_of_drafts_are_understood() -> None:
    line = "    Coverage: 10/20\n    Correctness: 10\n    Testability: 10\n    Minimal complexity: 10\n    Risks: 10\n"
    text = "draft_scores:\n" + "".join(f"  - label: Draft {n}\n{line}" for n in (1, 2))
    reading = read(VOTES, text, context={"labels": LABELS, "domain": "prd"})
    assert reading.value is not None
    assert [v.total_score for v in reading.value.values()] == [50, 50]


def test_a_reason_with_a_colon_does_not_break_a_ballot() -> None:
    reading = read(VOTES, VOTES.example.replace("Simpler, but", "One thing: it"), context={"domain": "prd"})
    assert reading.value is not None
    assert reading.value["Draft 2"].reason == "One thing: it leaves out the import."


def test_question_ids_are_put_right_and_the_list_is_sorted_by_phase() -> None:
    rows = [("q2", "Structure"), ("q1", "Foundation"), ("Q01", "Assembly"), ("", "Foundation")]
    data = {"questions": [{"id": i, "phase": p, "question": f"{i} {p}"} for i, p in rows]}
    reading = read(QUESTIONS, json.dumps(data))
    assert reading.value is not None
    assert [(q.id, q.phase) for q in reading.value.questions] == [
        ("Q01", "Foundation"),
        ("Q04", "Foundation"),
        ("Q02", "Structure"),
        ("Q03", "Assembly"),
    ]


def test_more_questions_than_allowed_are_refused() -> None:
    reading = read(QUESTIONS, QUESTIONS.example, context={"max_questions": 2})
    assert reading.failure == "validation"
    assert "3 are more than the 2 allowed" in reading.error


def turn(*questions: dict[str, Any], **context: Any) -> Reading[Any]:
    rows = [{"question": "Why?", "phase": "Foundation"} | q for q in questions]
    text = json.dumps({"batch_number": 1, "questions": rows})
    return read(TURN, f"<INTERVIEW_BATCH>{text}</INTERVIEW_BATCH>", context=context)


def test_a_yes_no_question_becomes_a_choice_and_plain_options_get_ids() -> None:
    reading = turn(
        {"id": "Q01", "answer_type": "yes_no"}, {"id": "Q02", "answer_type": "single_choice", "options": ["A", "B"]}
    )
    assert reading.value is not None
    assert [[o.id for o in q.options] for q in reading.value.questions] == [["yes", "no"], ["opt1", "opt2"]]


def test_a_fourth_question_is_left_out_before_its_id_can_be_a_fault() -> None:
    reading = turn({"id": "Q01"}, {"id": "Q02"}, {"id": "Q03"}, {"id": "Q01"})
    assert reading.value is not None
    assert (len(reading.value.questions), notes(reading)) == (3, ["more than three questions in a batch"])


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"id": "Q09"}, "Q09: already answered, its id cannot be used again"),
        (
            {"id": "Q02", "answer_type": "single_choice", "options": ["A"]},
            "Q02: single_choice needs 2 to 10 options, not 1",
        ),
        ({"id": "Q02", "question": " "}, "Q02: the question is empty"),
        ({"id": "FU1"}, "FU1: only 0 follow-up questions are left"),
    ],
)
def test_a_batch_that_breaks_the_interview_is_refused(question: dict[str, Any], error: str) -> None:
    reading = turn(question, compiled_ids=("Q02", "Q09"), answered_ids=("Q09",), follow_ups_left=0)
    assert (reading.failure, reading.error) == ("validation", error)


def test_clean_beside_gaps_means_gaps() -> None:
    reading = read(COVERAGE, "status: clean\ngaps: [Nothing on errors]\nfollow_up_questions: []")
    assert reading.value is not None
    assert (reading.value.status, notes(reading)) == ("gaps", ["status clean beside gaps or questions read as gaps"])


def test_gaps_without_a_gap_are_refused() -> None:
    assert read(COVERAGE, "status: gaps\ngaps: []").failure == "validation"


def test_follow_ups_are_numbered_and_kept_within_the_budget() -> None:
    text = "status: gaps\ngaps: [a]\nfollow_up_questions:\n  - Who?\n  - id: Q01\n    question: What?\n  - Why?\n"
    context = {"domain": "interview", "follow_ups_left": 2, "known_ids": ("Q01", "CFU1")}
    reading = read(COVERAGE, text, context=context)
    assert reading.value is not None
    asked = [(q["id"], q["question"], q["source"]) for q in reading.value.follow_up_questions]
    assert asked == [("CFU2", "Who?", "coverage_follow_up"), ("CFU3", "What?", "coverage_follow_up")]


def test_a_budget_of_nothing_gives_no_question() -> None:
    context = {"domain": "interview", "follow_ups_left": 0}
    reading = read(COVERAGE, "status: gaps\ngaps: [a]\nfollow_up_questions: [Who?]", context=context)
    assert reading.value is not None
    assert reading.value.follow_up_questions == ()


INTERVIEW = Interview(
    ticket_id="A-1",
    questions=(
        InterviewQuestion(id="Q01", phase="Foundation", prompt="Who?", answer=Answer(free_text="staff")),
        InterviewQuestion(
            id="Q02",
            phase="Foundation",
            prompt="Which?",
            answer_type="single_choice",
            options=(Option(id="csv", label="CSV file"), Option(id="xls", label="Sheet")),
            answer=Answer(skipped=True, answered_by="user_skip"),
        ),
    ),
)


def fill(*answers: dict[str, Any]) -> Reading[Any]:
    return read(FILLED_ANSWERS, json.dumps({"answers": list(answers)}), context={"interview": INTERVIEW})


def test_an_option_label_becomes_its_id_and_an_answered_question_is_left_alone() -> None:
    reading = fill({"id": "Q02", "selected_option_ids": ["csv file"]}, {"id": "Q01", "free_text": "customers"})
    assert reading.value is not None
    assert [(a.id, a.selected_option_ids) for a in reading.value.answers] == [("Q02", ("csv",))]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"id": "Q01", "free_text": "x"}, "Q02: the answer is missing"),
        ({"id": "Q02", "free_text": " "}, "Q02: the answer is empty"),
        ({"id": "Q02", "selected_option_ids": ["pdf"]}, "Q02: no such option: pdf"),
        ({"id": "Q02", "selected_option_ids": ["csv", "xls"]}, "Q02: only one option may be chosen"),
    ],
)
def test_answers_that_are_not_exactly_the_skipped_ones_are_refused(answer: dict[str, Any], error: str) -> None:
    assert fill(answer).error.splitlines()[0] == error


def test_a_whole_interview_sent_back_gives_the_skipped_answers_only() -> None:
    data = INTERVIEW.model_dump(mode="json")
    data["questions"][1]["answer"] = {"skipped": False, "free_text": "CSV"}
    reading = read(FILLED_ANSWERS, json.dumps(data), context={"interview": INTERVIEW})
    assert reading.value is not None
    assert [(a.id, a.free_text) for a in reading.value.answers] == [("Q02", "CSV")]


def prd(**change: Any) -> dict[str, Any]:
    story = {"title": "Save", "acceptance_criteria": ["One line per row"]}
    return {"product": {"problem_statement": "P"}, "epics": [{"title": "Export", "user_stories": [story]}]} | change


def test_missing_ids_of_a_prd_are_given_by_position() -> None:
    reading = read(PRD, json.dumps(prd()))
    assert reading.value is not None
    assert reading.value.refs() == {"EPIC-1", "US-1-1"}


def test_a_model_cannot_approve_its_own_prd() -> None:
    reading = read(PRD, json.dumps(prd(status="approved", approval={"approved_by": "me", "approved_at": "now"})))
    assert reading.value is not None
    assert (reading.value.status, reading.value.approval.approved_by) == ("draft", "")


def test_an_epic_without_stories_is_refused() -> None:
    reading = read(PRD, json.dumps(prd(epics=[{"id": "EPIC-1", "title": "Export", "user_stories": []}])))
    assert reading.failure == "validation"


def test_changes_of_a_refined_prd_are_checked_against_the_draft() -> None:
    before = read(PRD, PRD.example).value
    text = REFINED_PRD.example.replace("title: Save a list as CSV", "title: Save a list", 1)
    reading = read(REFINED_PRD, text, context={"before": before, "alternatives": {2: 5}})
    assert reading.value is not None
    assert [(c.id, c.attribution, c.inspiration and c.inspiration.draft) for c in reading.value.changes] == [
        ("US-1-1", "inspired", 5)
    ]


def test_an_inspiration_that_names_no_shown_draft_does_not_count() -> None:
    before = read(PRD, PRD.example).value
    text = REFINED_PRD.example.replace("title: Save a list as CSV", "title: Save a list", 1)
    reading = read(REFINED_PRD, text, context={"before": before, "alternatives": {3: 5}})
    assert reading.value is not None
    assert [c.attribution for c in reading.value.changes] == ["invalid_unattributed"]


def test_each_gap_needs_exactly_one_resolution() -> None:
    gaps = ("Nothing says what happens to an empty list.", "Nothing says who may export.")
    reading = read(REVISED_PRD, REVISED_PRD.example, context={"gaps": gaps})
    assert reading.error == "gap_resolutions: missing: Nothing says who may export."


def test_a_gap_that_was_not_supplied_is_refused() -> None:
    reading = read(REVISED_PRD, REVISED_PRD.example, context={"gaps": ()})
    assert reading.error.startswith("gap_resolutions: not a supplied gap")


def test_a_contradiction_left_unresolved_touches_no_item() -> None:
    text = REVISED_PRD.example.replace("action: updated", "action: left_unresolved")
    assert (
        "left_unresolved touches no item"
        in read(REVISED_PRD, text, context={"gaps": ["Nothing says what happens to an empty list."]}).error
    )


def test_beads_get_unique_kebab_case_ids() -> None:
    row = {"title": "Add Parser!", "acceptanceCriteria": ["a"], "tests": ["t"], "testCommandReason": "none"}
    reading = read(BLUEPRINT, json.dumps({"beads": [row, row | {"id": "Add_Parser"}]}))
    assert reading.value is not None
    assert [bead.id for bead in reading.value.beads] == ["add-parser", "add-parser-2"]


def test_prd_refs_must_exist() -> None:
    reading = read(BLUEPRINT, BLUEPRINT.example, context={"prd_refs": {"EPIC-1", "US-1-2"}})
    assert reading.error.splitlines()[0] == "write-rows: no such story or epic: US-1-1"


def test_a_bead_without_commands_and_without_a_reason_is_refused() -> None:
    text = BLUEPRINT.example.replace("    testCommandReason: Prose has no automatic test.\n", "")
    assert "testCommandReason is required" in read(BLUEPRINT, text).error


def test_the_order_of_the_winners_beads_stays() -> None:
    before = read(BLUEPRINT, BLUEPRINT.example).value
    assert before is not None
    turned = {"beads": [b.model_dump(mode="json") for b in reversed(before.beads)], "changes": []}
    reading = read(REFINED_BLUEPRINT, json.dumps(turned), context={"before": before})
    assert "must stay: document-export, write-rows" in reading.error or "must stay: write-rows" in reading.error


def expand(change: dict[str, Any], part: dict[str, Any] | None = None) -> Reading[Any]:
    blueprint = read(BLUEPRINT, BLUEPRINT.example).value
    assert blueprint is not None
    added = {"labels": ["x"], "targetFiles": ["a.py"], "dependencies": {"blocked_by": []}} | (part or {})
    lines = [bead.model_dump(mode="json") | added for bead in blueprint.beads]
    lines[1] |= change
    text = "\n".join(json.dumps(line) for line in lines)
    return read(EXPANSION, text, context={"blueprint": blueprint})


def test_drift_in_copied_fields_is_restored_from_the_blueprint() -> None:
    reading = expand({"description": "Something else", "tests": ["Another"]})
    assert reading.value is not None
    assert (reading.value[1].description, reading.value[1].tests) == (
        "Add a section to the README.",
        ("Read the section",),
    )
    assert [n.detail for n in reading.interventions] == ["document-export: description", "document-export: tests"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"title": "New"}, "line 2: the title must stay 'Describe the export', not 'New'"),
        ({"prdRefs": ["US-9-9"]}, "line 2: prdRefs must stay ['US-1-1']"),
        (
            {"dependencies": {"blocked_by": ["document-export"]}},
            "document-export: blocked_by 'document-export' is no earlier bead",
        ),
        ({"targetFiles": ["../x"]}, "document-export: not a path inside the repository: ../x"),
        ({"id": "write-rows"}, "the id 'write-rows' is there twice"),
    ],
)
def test_an_expansion_that_changes_the_plan_is_refused(change: dict[str, Any], error: str) -> None:
    reading = expand(change)
    assert (reading.value, reading.error) == (None, error)


def test_an_unchanged_expansion_needs_no_intervention() -> None:
    assert expand({}).interventions == ()


def test_a_missing_line_of_an_expansion_is_refused() -> None:
    blueprint = read(BLUEPRINT, BLUEPRINT.example).value
    reading = read(EXPANSION, EXPANSION.example, context={"blueprint": blueprint})
    assert reading.error == "1 lines for 2 beads; one line per bead, in their order"


def status(**change: Any) -> Reading[Any]:
    checks = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")
    return read(BEAD_STATUS, json.dumps({"bead_id": "b", "status": "done", "checks": checks} | change))


@pytest.mark.parametrize(
    ("word", "wanted"), [("passed", "pass"), ("OK", "pass"), (True, "pass"), ("not run", "fail"), (0, "fail")]
)
def test_words_for_a_check_are_understood(word: object, wanted: str) -> None:
    checks = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), word)
    reading = status(checks=checks)
    assert reading.value is not None
    assert set(reading.value.checks.values()) == {wanted}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"checks": {"tests": "pass"}}, "checks.lint: missing"),
        ({"status": "question"}, "question: empty"),
        ({"status": "error"}, "reason: an error needs one"),
        ({"checks": {"tests": "mostly"}}, "checks.tests: Input should be 'pass' or 'fail'"),
    ],
)
def test_a_marker_that_claims_nothing_clear_is_refused(change: dict[str, Any], error: str) -> None:
    assert status(**change).error.splitlines()[0] == error


def test_unknown_relevance_is_a_hint_and_paths_outside_are_refused() -> None:
    reading = read(RELEVANT_FILES, "files:\n  - path: a.py\n    relevance: vital\n")
    assert reading.value is not None
    assert reading.value.files[0].relevance == "medium"
    assert read(RELEVANT_FILES, "files:\n  - path: /etc/passwd\n").failure == "validation"


def test_the_least_relevant_files_go_first_when_there_are_too_many() -> None:
    rows = [{"path": f"{n}.py", "relevance": "low" if n < 5 else "high"} for n in range(35)]
    reading = read(RELEVANT_FILES, json.dumps({"files": rows}))
    assert reading.value is not None
    assert [f.path for f in reading.value.files] == [f"{n}.py" for n in range(5, 35)]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("actions_required: true", "actions_required: false", "true exactly when there are steps"),
        ("status: partial", "status: ready", "ready means that no step"),
    ],
)
def test_a_setup_plan_must_agree_with_itself(old: str, new: str, error: str) -> None:
    reading = read(SETUP_PLAN, SETUP_PLAN.example.replace(old, new))
    assert error in reading.error


def test_a_quoted_false_does_not_make_a_step_required() -> None:
    reading = read(SETUP_PLAN, SETUP_PLAN.example.replace("    required: true", '    required: "false"'))
    assert reading.value is not None
    assert [step.required for step in reading.value.steps] == [False]


def test_final_test_paths_stay_inside_the_repository() -> None:
    text = FINAL_TEST.example.replace("tests/test_flow.py", "../test_flow.py")
    assert read(FINAL_TEST, text).error.startswith("not a path inside the repository: ../test_flow.py")


@pytest.mark.parametrize(
    ("verdict", "severity", "ok"),
    [("approve", "minor", True), ("LGTM", "note", True), ("approve", "blocker", False), ("unavailable", "note", False)],
)
def test_a_review_must_agree_with_its_findings(verdict: str, severity: str, ok: bool) -> None:
    data = {"verdict": verdict, "summary": "s", "findings": [{"severity": severity, "text": "t", "line": "L4-9"}]}
    assert read(REVIEW, json.dumps(data)).ok is ok


def test_a_file_that_is_not_in_the_candidate_is_left_out_of_its_audit() -> None:
    reading = read(CANDIDATE_AUDIT, CANDIDATE_AUDIT.example, context={"paths": ("export.py",)})
    assert reading.value is not None
    assert [one.path for one in reading.value] == ["export.py"]


def test_a_pull_request_has_a_title_on_one_line() -> None:
    reading = read(PULL_REQUEST, json.dumps({"title": "Export\n lists", "summary": "s"}))
    assert reading.value is not None
    assert reading.value.title == "Export lists"
    assert read(PULL_REQUEST, json.dumps({"title": " ", "summary": "s"})).failure == "validation"


def test_a_context_value_of_the_wrong_type_is_the_callers_bug() -> None:
    with pytest.raises(TypeError):
        read(FILLED_ANSWERS, "answers: []", context={"interview": "A-1"})
