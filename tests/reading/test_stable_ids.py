"""A refined list that was numbered anew keeps the ids of what survived, when that can be proved."""

from __future__ import annotations

import json
from typing import Any

from beadmill.artifacts.interview import Question, Questions
from beadmill.artifacts.reading import Reading, read
from beadmill.artifacts.reading.shapes import BLUEPRINT, REFINED_BLUEPRINT, REFINED_QUESTIONS


def asked(*pairs: tuple[str, str]) -> Questions:
    return Questions(questions=tuple(Question(id=i, phase="Foundation", question=q) for i, q in pairs))


BEFORE = asked(("Q01", "Who?"), ("Q02", "What?"))


def refine(after: Questions, *changes: dict[str, Any], before: Questions = BEFORE) -> Reading[Any]:
    data = after.model_dump(mode="json") | {"changes": list(changes)}
    return read(REFINED_QUESTIONS, json.dumps(data), context={"before": before})


def pairs(reading: Reading[Any]) -> list[tuple[str, str]]:
    return [(q.id, q.question) for q in reading.value.document.questions] if reading.value else []


def test_a_new_item_that_took_a_survivors_id_gives_it_back() -> None:
    claim = {"type": "added", "item_type": "question", "id": "Q01", "after": "Why?"}
    reading = refine(asked(("Q01", "Why?"), ("Q02", "Who?"), ("Q03", "What?")), claim)
    assert pairs(reading) == [("Q03", "Why?"), ("Q01", "Who?"), ("Q02", "What?")]
    assert reading.value is not None
    assert [(c.type, c.id, c.attribution) for c in reading.value.changes] == [("added", "Q03", "model_unattributed")]


def test_ids_that_did_not_move_stay() -> None:
    after = asked(("Q01", "Who is it?"), ("Q02", "What?"), ("Q03", "Why?"))
    assert pairs(refine(after)) == [(q.id, q.question) for q in after.questions]


def test_a_text_that_occurs_twice_proves_nothing() -> None:
    after = asked(("Q01", "Why?"), ("Q02", "Who?"), ("Q03", "Who?"))
    assert pairs(refine(after)) == [(q.id, q.question) for q in after.questions]


def test_two_survivors_that_changed_places_get_their_ids_back() -> None:
    reading = refine(asked(("Q01", "What?"), ("Q02", "Who?")))
    assert pairs(reading) == [("Q02", "What?"), ("Q01", "Who?")]


def test_a_renamed_bead_with_its_old_title_keeps_its_id() -> None:
    before = read(BLUEPRINT, BLUEPRINT.example).value
    text = REFINED_BLUEPRINT.example.replace("id: write-rows", "id: rows-writer", 1)
    reading = read(REFINED_BLUEPRINT, text, context={"before": before})
    assert reading.value is not None
    assert [bead.id for bead in reading.value.document.beads] == ["write-rows", "document-export"]
