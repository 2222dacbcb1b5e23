"""A plan that turns out wrong while it is built is put right from the terminal, and the build goes on."""

from __future__ import annotations

import json
from typing import Any

from tests.journeys.small_world import CODING, Small
from tests.journeys.test_agent_trouble import UNTIL_PLAN

STEPS: list[dict[str, Any]] = list(CODING["steps"])  # type: ignore[arg-type]
OFF = (*UNTIL_PLAN, "--set", "gates.beads=off", "--set", "build.attempts=1")


def blocked(small: Small) -> str:
    """A ticket whose bead cannot pass its own command."""
    key = small.ticket(*OFF)
    assert small.asked(key)["detail"]["code"] == "BEAD_RETRY_BUDGET_EXHAUSTED"
    return key


def test_a_blocked_bead_is_edited_tried_again_and_delivered(small: Small) -> None:
    broken = {**CODING, "steps": [*STEPS[:1], STEPS[-1]]}  # without the test that the bead names
    small.script(broken)
    key = blocked(small)
    fields = small.root / "fields.yaml"
    fields.write_text("description: Write tests/test_goodbye.py, too. 也写测试。\n", encoding="utf-8")
    said = small.cli("bead", "edit", key, "goodbye", "--file", str(fields), "--note", "it forgot the test")
    assert (said.code, said.out.splitlines()[-1].partition(".")[0]) == (0, "The plan is changed")
    small.script()
    assert small.cli("run", "retry", key).code == 0
    assert small.asked(key)["kind"] == "merge"
    bead = small.cli("bead", "show", key, "goodbye", "--json").json
    assert [(t["state"], t["current"]) for t in bead["tries"]] == [("failed", False), ("done", True)]


def test_a_change_that_cannot_be_says_why_and_leaves_the_plan(small: Small) -> None:
    small.script({**CODING, "steps": [STEPS[-1]]})
    key = blocked(small)
    before = small.cli("bead", "list", key).out
    bad = small.root / "bad.yaml"
    bad.write_text("- title: half\n", encoding="utf-8")
    said = small.cli("bead", "edit", key, "goodbye", "--file", str(bad))
    assert (said.code, "does not hold a mapping of fields" in said.err) == (2, True)
    said = small.cli("bead", "split", key, "goodbye", "--file", str(bad))
    assert (said.code, "into" in said.err) == (2, True)
    said = small.cli("bead", "skip", key, "nothing", "--json")
    assert (said.code, json.loads(said.out)["error"]["code"]) == (3, "BEAD_NOT_FOUND")
    assert small.cli("bead", "list", key).out == before
