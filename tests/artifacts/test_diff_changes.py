"""Claimed changes against the real difference (lifecycle §2.5)."""

from __future__ import annotations

from typing import Any

from beadmill.artifacts.council import Change, Inspiration
from beadmill.artifacts.diff import changes, difference
from beadmill.artifacts.interview import Question, Questions
from beadmill.artifacts.prd import Epic, Prd, Product, Story


def questions(*texts: str) -> Questions:
    rows = [Question(id=f"Q{n:02}", phase="Foundation", question=text) for n, text in enumerate(texts, 1) if text]
    return Questions(questions=tuple(rows))


def claim(name: str, kind: Any = "modified", draft: int | None = None) -> Change:
    inspiration = None if draft is None else Inspiration(draft=draft)
    attribution: Any = "inspired" if inspiration else "model_unattributed"
    return Change(type=kind, item_type="question", id=name, inspiration=inspiration, attribution=attribution)


def told(found: tuple[Change, ...]) -> list[tuple[str, str, str]]:
    return [(c.type, c.id, c.attribution) for c in found]


BEFORE, AFTER = questions("a", "b", "c"), questions("a", "B", "", "d")


def test_the_real_difference_names_added_modified_and_removed_items() -> None:
    assert [(c.type, c.id, c.before, c.after) for c in difference(BEFORE, AFTER)] == [
        ("modified", "Q02", "b", "B"),
        ("added", "Q04", "", "d"),
        ("removed", "Q03", "c", ""),
    ]


def test_equal_documents_have_no_difference() -> None:
    assert changes(BEFORE, BEFORE, ()) == ((), ())


def test_a_claim_lends_its_inspiration_to_the_real_change() -> None:
    found, _ = changes(BEFORE, AFTER, [claim("Q02", draft=3)])
    assert found[0].inspiration == Inspiration(draft=3)


def test_a_difference_that_nobody_explained_is_said_to_be_so() -> None:
    found, notes = changes(BEFORE, AFTER, [claim("Q02", draft=3), claim("Q04", "added")])
    assert told(found) == [
        ("modified", "Q02", "inspired"),
        ("added", "Q04", "model_unattributed"),
        ("removed", "Q03", "synthesized_unattributed"),
    ]
    assert [n.category for n in notes] == ["synthesized"]


def test_a_claim_without_a_difference_is_dropped() -> None:
    found, notes = changes(BEFORE, BEFORE, [claim("Q01")])
    assert (found, [n.title for n in notes]) == ((), ["claimed change is no difference"])


def test_two_claims_that_disagree_lose_their_inspiration() -> None:
    found, _ = changes(questions("a"), questions("A"), [claim("Q01", draft=2), claim("Q01", draft=3)])
    assert [(c.attribution, c.inspiration) for c in found] == [("invalid_unattributed", None)]


def test_two_equal_claims_count_once() -> None:
    found, notes = changes(questions("a"), questions("A"), [claim("Q01", draft=2), claim("Q01", draft=2)])
    assert (told(found), [n.title for n in notes]) == ([("modified", "Q01", "inspired")], ["two changes for one item"])


def test_a_wrong_kind_of_change_is_corrected() -> None:
    found, notes = changes(questions("a"), questions("A"), [claim("Q01", "added")])
    assert (told(found)[0][0], notes[0].detail) == ("modified", "Q01: added → modified")


def test_a_claim_without_an_id_is_found_by_its_label() -> None:
    nameless = Change(type="added", item_type="question", id="", after="d")
    found, _ = changes(BEFORE, AFTER, [nameless])
    assert found[1].attribution == "model_unattributed"


def prd(title: str, *, risks: tuple[str, ...] = (), story: str = "S") -> Prd:
    epic = Epic(id="EPIC-1", title=title, user_stories=(Story(id="US-1-1", title=story),))
    return Prd(product=Product(problem_statement="p"), epics=(epic,), risks=risks)


def test_a_story_changes_without_its_epic_and_sections_are_named() -> None:
    found = difference(prd("E"), prd("E", risks=("r",), story="T"))
    assert [(c.item_type, c.id) for c in found] == [("user_story", "US-1-1"), ("section", "risks")]


def test_stamps_of_beadmill_are_no_change() -> None:
    assert difference(prd("E"), prd("E").model_copy(update={"ticket_id": "A-1", "status": "approved"})) == ()
