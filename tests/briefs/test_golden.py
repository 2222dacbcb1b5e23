"""Every template, assembled with sample parts, against a committed file. After a wanted change:
``UPDATE_GOLDEN=1 pytest tests/briefs/test_golden.py``, then read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beadmill.artifacts.reading import shapes
from beadmill.briefs import SHEETS, Briefs, PartText, samples
from beadmill.operations._forms import form

GOLDEN = Path(__file__).parent / "golden"


def assembled(template: str) -> str:
    values = samples.values(template)[template == "beads_coverage"]  # of that one the last pass
    brief = Briefs().write(template, samples.material(template), **samples.HEADS, shape=form(template), **values)
    return brief.text


@pytest.mark.parametrize("template", sorted(SHEETS))
def test_the_assembled_prompt_is_the_committed_one(template: str) -> None:
    path = GOLDEN / f"{template}.md"
    text = assembled(template)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_turns_after_the_first_are_the_committed_ones() -> None:
    for kind in ("next", "resume"):
        values = next(v for v in samples.values("interview_turn") if v["kind"] == kind)
        parts = [PartText("answers" if kind == "next" else "session", "Q01: Who?\n  answer: Staff")]
        text = Briefs().write("interview_turn", parts, shape=shapes.TURN, **values).text
        path = GOLDEN / f"interview_turn.{kind}.md"
        if os.environ.get("UPDATE_GOLDEN") == "1":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_behind() -> None:
    known = {f"{name}.md" for name in SHEETS} | {"interview_turn.next.md", "interview_turn.resume.md"}
    assert {path.name for path in GOLDEN.iterdir()} == known
