from __future__ import annotations

import pytest

from beadmill.nodes._pr_body import _cost
from beadmill.store.journal.facts import Cost


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (Cost(1200, 1.2, 90, 3), "1,200 tokens, $1.20 + 3 unpriced turns, 1.5 minutes of agent work."),
        (Cost(1200, None, 90, 2), "1,200 tokens, 2 unpriced turns, 1.5 minutes of agent work."),
        (Cost(1200, 0.5, 90), "1,200 tokens, $0.50, 1.5 minutes of agent work."),
    ],
)
def test_the_pull_request_says_what_its_cost_does_not_hold(cost: Cost, said: str) -> None:
    assert _cost(cost).splitlines()[-1] == said
