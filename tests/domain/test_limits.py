"""Gate etags, coverage loops, budgets."""

from __future__ import annotations

import pytest

from beadmill.domain.budget import Spent, spent
from beadmill.domain.coverage import Verdict, after_document_pass, after_interview_pass, follow_up_budget
from beadmill.domain.gate import etag
from beadmill.domain.values import ArtifactRef, Sha
from beadmill.settings import BudgetSettings

PRD = ArtifactRef("prd", Sha("a" * 64), 7)
BEADS = ArtifactRef("beads", Sha("b" * 64), 8)


def test_an_etag_is_the_same_in_any_order_of_what_is_shown() -> None:
    assert etag("g", [PRD, BEADS]) == etag("g", [BEADS, PRD])


def test_an_etag_is_the_digest_of_id_and_sorted_references() -> None:
    assert etag("g", [PRD]) == "41454e62e26456847b6daf4951fb765dc213cc1ef7e0efdae228b75b3f234dc7"


@pytest.mark.parametrize(
    ("gate", "shows"),
    [
        ("h", [PRD]),
        ("g", []),
        ("g", [PRD, BEADS]),
        ("g", [ArtifactRef("prd", Sha("a" * 64), 8)]),
        ("g", [ArtifactRef("prd", Sha("c" * 64), 7)]),
        ("g", [ArtifactRef("prc", Sha("a" * 64), 7)]),
    ],
)
def test_an_etag_changes_with_everything_it_binds(gate: str, shows: list[ArtifactRef]) -> None:
    assert etag(gate, shows) != etag("g", [PRD])


@pytest.mark.parametrize(
    ("questions", "percent", "expected"), [(50, 20, 10), (50, 0, 0), (0, 20, 0), (50, -1, 0), (3, 10, 1), (9, 50, 4)]
)
def test_the_follow_up_budget_is_a_part_of_the_questions(questions: int, percent: int, expected: int) -> None:
    assert follow_up_budget(questions, percent) == expected


@pytest.mark.parametrize(
    ("number", "gaps", "expected"),
    [
        (1, 0, Verdict("approve", "clean")),
        (5, 0, Verdict("approve", "clean")),
        (4, 2, Verdict("revise")),
        (5, 2, Verdict("approve", "coverage_pass_limit_reached")),
    ],
)
def test_a_document_is_revised_until_clean_or_the_passes_are_spent(number: int, gaps: int, expected: Verdict) -> None:
    assert after_document_pass(number=number, limit=5, gaps=gaps) == expected


@pytest.mark.parametrize(
    ("number", "gaps", "follow_ups", "left", "expected"),
    [
        (1, 0, 0, 10, Verdict("approve", "clean")),
        (1, 0, 1, 10, Verdict("ask")),
        (1, 2, 2, 10, Verdict("ask")),
        (2, 2, 2, 10, Verdict("approve", "coverage_pass_limit_reached")),
        (1, 2, 2, 0, Verdict("approve", "follow_up_budget_exhausted")),
        (1, 2, 0, 10, Verdict("approve", "follow_up_generation_failed")),
    ],
)
def test_an_interview_asks_while_it_may(number: int, gaps: int, follow_ups: int, left: int, expected: Verdict) -> None:
    verdict = after_interview_pass(number=number, limit=2, gaps=gaps, follow_ups=follow_ups, budget_left=left)
    assert verdict == expected


@pytest.mark.parametrize(
    ("budget", "usd", "tokens", "minutes", "expected"),
    [
        ({}, 5.0, 100, 10, Spent()),
        ({"usd": 10}, None, 0, 0, Spent()),
        ({"usd": 10}, 7.9, 0, 0, Spent("ok", "usd", 0.79)),
        ({"usd": 10}, 8.0, 0, 0, Spent("warn", "usd", 0.8)),
        ({"usd": 10}, 10.0, 0, 0, Spent("over", "usd", 1.0)),
        ({"usd": 10, "tokens": 100}, 1.0, 90, 0, Spent("warn", "tokens", 0.9)),
        ({"minutes": 30, "tokens": 100}, None, 50, 60, Spent("over", "minutes", 2.0)),
        ({"usd": 10}, None, 5, 0, Spent("warn", "usd", 0.0, unpriced=True)),
        ({"usd": 10, "tokens": 10}, None, 9, 0, Spent("warn", "tokens", 0.9, unpriced=True)),
    ],
)
def test_the_limit_that_is_furthest_along_decides(
    budget: dict[str, float], usd: float | None, tokens: int, minutes: float, expected: Spent
) -> None:
    assert spent(BudgetSettings.model_validate(budget), usd, tokens, minutes) == expected
