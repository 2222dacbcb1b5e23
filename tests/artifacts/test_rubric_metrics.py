"""Five categories per domain, and the counts beside a draft."""

from __future__ import annotations

import pytest

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BLUEPRINT, PRD, QUESTIONS
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.rubric import MEANINGS, RUBRICS, Domain, metrics


@pytest.mark.parametrize("domain", ["interview", "prd", "beads"])
def test_each_domain_has_five_different_categories_with_a_meaning_each(domain: Domain) -> None:
    assert (len(set(RUBRICS[domain])), len(set(MEANINGS[domain]))) == (5, 5)


def test_a_list_of_questions_counts_its_questions() -> None:
    document = read(QUESTIONS, QUESTIONS.example).value
    assert document is not None
    assert metrics(document) == {"questions": 3}


def test_a_prd_counts_epics_stories_and_criteria() -> None:
    document = read(PRD, PRD.example).value
    assert document is not None
    assert metrics(document) == {"epics": 1, "user_stories": 1, "acceptance_criteria": 1}


def test_a_blueprint_counts_beads_tests_and_criteria() -> None:
    document = read(BLUEPRINT, BLUEPRINT.example).value
    assert document is not None
    assert metrics(document) == {"beads": 2, "tests": 2, "acceptance_criteria": 2}


def test_other_documents_have_no_metrics() -> None:
    assert metrics(RelevantFiles()) == {}
