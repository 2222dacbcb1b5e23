"""Every scripted reply is what the stage asks for, needs no repair, and agrees with the replies before it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from beadmill.agents.scenario import Asked, Scenario, parse
from beadmill.artifacts.beads import Blueprint
from beadmill.artifacts.diff import difference
from beadmill.artifacts.interview import Interview, InterviewQuestion, Turn
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading import shapes
from beadmill.artifacts.reading.pipeline import read
from beadmill.artifacts.reading.shape import Shape
from beadmill.demo import material

SEATS = ("alpha", "beta", "gamma")
WINNER = {"interview": "beta", "prd": "alpha", "beads": "gamma"}
DRAFT: dict[str, Shape[Any]] = {"interview": shapes.QUESTIONS, "prd": shapes.PRD, "beads": shapes.BLUEPRINT}
BEADS = ("temperature-scales", "batch-reader", "batch-command")


def text(path: str) -> str:
    return (material.SCENARIO / path).read_text(encoding="utf-8")


def understood(shape: Shape[Any], path: str, context: Mapping[str, object] | None = None) -> Any:
    """The document of a reply; a reply that needed any repair or correction is refused."""
    reading = read(shape, text(path), context=context)
    assert (path, reading.failure, reading.error, reading.interventions) == (path, "", "", ())
    return reading.value


PLAIN = [
    (shapes.RELEVANT_FILES, "scan/files.yaml"),
    *((shapes.QUESTIONS, f"interview/draft-{seat}.yaml") for seat in SEATS),
    *((shapes.TURN, f"interview/turn-{n}.yaml") for n in (2, 3)),
    (shapes.COVERAGE, "interview/coverage.yaml"),
    *((shapes.FILLED_ANSWERS, f"prd/answers-{seat}.yaml") for seat in SEATS),
    *((shapes.PRD, f"prd/draft-{seat}.yaml") for seat in SEATS),
    (shapes.COVERAGE, "prd/coverage-gap.yaml"),
    (shapes.COVERAGE, "prd/coverage-clean.yaml"),
    *((shapes.BLUEPRINT, f"beads/draft-{seat}.yaml") for seat in SEATS),
    (shapes.COVERAGE, "beads/coverage.yaml"),
    (shapes.SETUP_PLAN, "setup/plan.yaml"),
    *((shapes.BEAD_STATUS, f"build/{bead}.txt") for bead in BEADS),
    (shapes.BEAD_STATUS, "build/temperature-scales-try-1.txt"),
    (shapes.FINAL_TEST, "delivery/final-test.txt"),
    (shapes.REVIEW, "delivery/review.yaml"),
    (shapes.CANDIDATE_AUDIT, "delivery/audit.yaml"),
    (shapes.PULL_REQUEST, "delivery/pull-request.yaml"),
    (shapes.NOTE, "build/note.txt"),
]


@pytest.mark.parametrize(("shape", "path"), PLAIN, ids=[path for _, path in PLAIN])
def test_a_reply_is_read_without_any_repair(shape: Shape[Any], path: str) -> None:
    assert understood(shape, path) is not None


def test_the_first_batch_asks_the_refined_questions_in_three_types() -> None:
    refined = understood(shapes.REFINED_QUESTIONS, "interview/refined.yaml").document
    reading = read(
        shapes.TURN, text("interview/turn-1.yaml"), context={"compiled_ids": [q.id for q in refined.questions]}
    )
    turn = reading.value
    assert isinstance(turn, Turn)
    assert [(q.id, q.question) for q in turn.questions] == [(q.id, q.question) for q in refined.questions]
    assert [q.answer_type for q in turn.questions] == ["single_choice", "single_choice", "free_text"]


def test_the_answers_fit_the_questions_and_one_is_skipped() -> None:
    options: dict[str, set[str]] = {}
    for n in (1, 2):
        turn = read(shapes.TURN, text(f"interview/turn-{n}.yaml")).value
        assert turn is not None
        options |= {q.id: {option.id for option in q.options} for q in turn.questions}
    said = material.answers()
    assert list(said) == list(options)
    assert [q for q in said if said[q].get("skipped")] == ["Q03"]
    assert [q for q, one in said.items() if not set(one.get("selected_option_ids", [])) <= options[q]] == []


def test_every_seat_fills_the_skipped_answer_in_its_own_way() -> None:
    skipped = InterviewQuestion.model_validate(
        {"id": "Q03", "phase": "Assembly", "prompt": "?", "answer": {"skipped": True}}
    )
    context = {"interview": Interview(ticket_id="DEMO-1", questions=(skipped,))}
    said = {
        understood(shapes.FILLED_ANSWERS, f"prd/answers-{seat}.yaml", context).answers[0].free_text for seat in SEATS
    }
    assert len(said) == len(SEATS)


REFINED: list[tuple[str, Shape[Any], Shape[Any], str]] = [
    ("interview", shapes.QUESTIONS, shapes.REFINED_QUESTIONS, "Q03"),
    ("prd", shapes.PRD, shapes.REFINED_PRD, "US-2-2"),
    ("beads", shapes.BLUEPRINT, shapes.REFINED_BLUEPRINT, "batch-command"),
]


@pytest.mark.parametrize(("domain", "draft", "shape", "item"), REFINED, ids=[row[0] for row in REFINED])
def test_a_refinement_changes_one_item_and_names_the_draft_that_inspired_it(
    domain: str, draft: Shape[Any], shape: Shape[Any], item: str
) -> None:
    winner = WINNER[domain]
    others = [seat for seat in SEATS if seat != winner]  # shown to the winner as Draft 2 and Draft 3
    alternatives = {n: SEATS.index(seat) for n, seat in enumerate(others, 2)}
    before = understood(draft, f"{domain}/draft-{winner}.yaml")
    refined = understood(shape, f"{domain}/refined.yaml", {"before": before, "alternatives": alternatives})
    assert [(c.type, c.id, c.attribution) for c in refined.changes] == [("modified", item, "inspired")]
    source = understood(draft, f"{domain}/draft-{SEATS[refined.changes[0].inspiration.draft]}.yaml")
    assert refined.changes[0].inspiration.item in source.model_dump_json()


def test_the_revision_closes_the_gap_and_nothing_else() -> None:
    before = understood(shapes.REFINED_PRD, "prd/refined.yaml").document
    gaps = understood(shapes.COVERAGE, "prd/coverage-gap.yaml").gaps
    revised = understood(shapes.REVISED_PRD, "prd/revised.yaml", {"before": before, "gaps": gaps})
    assert [(c.type, c.id) for c in revised.changes] == [("modified", "US-2-2")]
    assert [(r.gap, r.action) for r in revised.resolutions] == [(gaps[0], "updated")]


def test_the_expansion_repeats_the_plan_and_leaves_two_beads_independent() -> None:
    plan: Blueprint = understood(shapes.REFINED_BLUEPRINT, "beads/refined.yaml").document
    lines = read(shapes.EXPANSION, text("beads/expanded.jsonl"), context={"blueprint": plan}).value
    assert lines is not None
    assert [line.id for line in lines] == list(BEADS)
    assert [line.dependencies.blocked_by for line in lines] == [(), (), BEADS[:2]]
    names = set(type(plan.beads[0]).model_fields)
    assert [line.model_dump(include=names) for line in lines] == [bead.model_dump() for bead in plan.beads]


def test_the_plan_serves_every_story_of_the_requirements() -> None:
    prd: Prd = understood(shapes.REVISED_PRD, "prd/revised.yaml").document
    plan: Blueprint = understood(shapes.REFINED_BLUEPRINT, "beads/refined.yaml").document
    stories = {story.id for epic in prd.epics for story in epic.user_stories}
    assert {ref for bead in plan.beads for ref in bead.prd_refs} == stories


@pytest.mark.parametrize("domain", ["interview", "prd", "beads"])
def test_the_drafts_of_the_seats_really_differ(domain: str) -> None:
    drafts = [understood(DRAFT[domain], f"{domain}/draft-{seat}.yaml") for seat in SEATS]
    assert [bool(difference(drafts[n], drafts[n - 1])) for n in range(3)] == [True, True, True]


# --- the player picks the right one ---
@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return parse(material.scenario(), folder=material.SCENARIO)


def brief(template: str, body: str = "", *, subject: str = "", seat: str = "1", turn: str = "") -> str:
    return f"Beadmill task: {template} | ticket: DEMO-1 | subject: {subject} | seat: {seat} | turn: {turn}\n\n{body}"


def reply(scenario: Scenario, asked: str, model: str = "alpha") -> str:
    step = scenario.pick(Asked(asked, model))[-1]
    assert step.kind == "reply", step
    return str(step.value)


@pytest.mark.parametrize("domain", ["interview", "prd", "beads"])
@pytest.mark.parametrize("order", [SEATS, SEATS[::-1], ("beta", "alpha", "gamma")], ids="-".join)
@pytest.mark.parametrize("voter", SEATS)
def test_the_same_draft_wins_whatever_the_order(
    scenario: Scenario, domain: str, order: tuple[str, ...], voter: str
) -> None:
    body = "\n\n".join(f"### Draft {n}\n\n{text(f'{domain}/draft-{seat}.yaml')}" for n, seat in enumerate(order, 1))
    scores = read(shapes.VOTES, reply(scenario, brief(f"{domain}_vote", body), voter), context={"domain": domain}).value
    assert scores is not None
    totals = {seat: sum(scores[f"Draft {n}"].categories) for n, seat in enumerate(order, 1)}
    assert max(totals, key=lambda seat: totals[seat]) == WINNER[domain]
    assert len(set(totals.values())) == len({line.reason for line in scores.values()}) == len(SEATS)


def test_a_voter_without_its_own_draft_still_prefers_the_winner(scenario: Scenario) -> None:
    body = f"### Draft 1\n\n{text('prd/draft-gamma.yaml')}\n\n### Draft 2\n\n{text('prd/draft-alpha.yaml')}"
    scores = read(shapes.VOTES, reply(scenario, brief("prd_vote", body), "beta"), context={"domain": "prd"}).value
    assert scores is not None
    assert sum(scores["Draft 2"].categories) > sum(scores["Draft 1"].categories)


@pytest.mark.parametrize(("document", "status"), [("prd/refined.yaml", "gaps"), ("prd/revised.yaml", "clean")])
def test_the_requirements_are_found_wanting_until_the_gap_is_closed(
    scenario: Scenario, document: str, status: str
) -> None:
    found = read(shapes.COVERAGE, reply(scenario, brief("prd_coverage", text(document)))).value
    assert found is not None
    assert found.status == status


def test_only_the_first_try_of_the_first_bead_slips(scenario: Scenario) -> None:
    def writes(subject: str) -> dict[str, str]:
        steps = scenario.pick(Asked(brief("coding", subject=subject), "alpha"))
        return {step.value["path"]: step.value["content"] for step in steps if step.kind == "write"}

    slip, right, again = (writes(f"temperature-scales try {n}") for n in (1, 2, 3))
    assert [path for path in right if slip[path] != right[path]] == ["units/temperature.py"]
    assert right == again


def test_the_expanded_beads_name_exactly_the_files_that_are_written(scenario: Scenario) -> None:
    for line in map(json.loads, text("beads/expanded.jsonl").splitlines()):
        steps = scenario.pick(Asked(brief("coding", subject=f"{line['id']} try 2"), "alpha"))
        written = {step.value["path"] for step in steps if step.kind == "write"}
        assert written == {*line["targetFiles"], *line["testFiles"]}


def test_the_audit_decides_on_every_file_of_the_change() -> None:
    audited = {one.path for one in understood(shapes.CANDIDATE_AUDIT, "delivery/audit.yaml")}
    written = set(re.findall(r'"path": "([^"]+)"', (material.SCENARIO / "scenario.json").read_text(encoding="utf-8")))
    assert audited == written


def test_no_step_needs_more_than_files_and_a_shell(scenario: Scenario) -> None:
    """Every agent that can write files and run a command can act the scenario out, the real CLIs too."""
    kinds = {step.kind for reply in scenario.replies for step in reply.steps}
    assert kinds == {"write", "shell", "reply", "vote"}


def test_every_file_of_the_scenario_is_used() -> None:
    used = set(re.findall(r'"(?:file|reply_file)": "([^"]+)"', text("scenario.json"))) | {"scenario.json"}
    there = {
        str(p.relative_to(material.SCENARIO))
        for p in material.SCENARIO.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert there == used
