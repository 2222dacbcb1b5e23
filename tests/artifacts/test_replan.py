"""Changing a plan that is being built: pure."""

from __future__ import annotations

from typing import Any

import pytest

from beadmill.artifacts.beads import Bead, Beads, Dependencies
from beadmill.artifacts.replan import Add, Change, Edit, Order, Skip, Split, Unskip, replanned
from beadmill.errors import BeadmillError


def bead(name: str, *after: str, **more: Any) -> Bead:
    fields: dict[str, Any] = {
        "id": name, "title": f"Make {name}", "acceptance_criteria": ("it is there",), "tests": ("t",),
        "test_command_reason": "none", "target_files": (f"{name}.py",),
        "dependencies": Dependencies(blocked_by=after), "priority": 1,
    }  # fmt: skip
    return Bead(**fields | more)


PLAN = Beads(
    beads=(
        bead("a", dependencies=Dependencies(blocks=("b",))),
        bead("b", priority=2, dependencies=Dependencies(blocked_by=("a",), blocks=("c",))),
        bead("c", "b", priority=3),
    )
)
NEW = {
    "id": "d",
    "title": "More",
    "acceptanceCriteria": ["x"],
    "tests": ["t"],
    "testCommandReason": "none",
    "targetFiles": ["d"],
}


def made(*changes: Change, done: tuple[str, ...] = ("a",)) -> dict[str, tuple[str, ...]]:
    """Id → what it waits for, in order."""
    plan = replanned(PLAN, changes, done=done)
    assert [one.priority for one in plan.beads] == list(range(1, len(plan.beads) + 1))
    return {one.id: tuple(one.blocked_by) for one in plan.beads}


def refused(*changes: Change, done: tuple[str, ...] = ("a",)) -> str:
    with pytest.raises(BeadmillError) as caught:
        replanned(PLAN, changes, done=done)
    return caught.value.code


def test_a_split_bead_makes_room_for_its_parts_and_what_waited_for_it_waits_for_all() -> None:
    change = Split(do="split", bead="b", into=({"title": "First half"}, {"id": "rest", "title": "Rest"}))
    assert made(change) == {"a": (), "b-1": ("a",), "rest": ("a",), "c": ("b-1", "rest")}


def test_a_part_is_as_the_whole_where_it_says_nothing() -> None:
    plan = replanned(PLAN, [Split(do="split", bead="b", into=({"title": "One"}, {"targetFiles": ["z.py"]}))], done=())
    assert [(x.title, x.target_files) for x in plan.beads[1:3]] == [("One", ("b.py",)), ("Make b", ("z.py",))]


def test_an_added_bead_stands_before_the_named_one_or_at_the_end() -> None:
    assert list(made(Add(do="add", fields=NEW, before="c"))) == ["a", "b", "d", "c"]
    assert list(made(Add(do="add", fields=NEW))) == ["a", "b", "c", "d"]


def test_beads_take_each_others_places() -> None:
    assert list(made(Order(do="order", beads=("c", "b")))) == ["a", "c", "b"]


def test_an_edit_replaces_fields_and_neither_id_nor_place() -> None:
    plan = replanned(PLAN, [Edit(do="edit", bead="b", fields={"title": "New", "id": "x", "priority": 9})], done=())
    assert [(x.id, x.title, x.priority) for x in plan.beads[1:2]] == [("b", "New", 2)]


def test_a_skipped_bead_can_be_taken_up_again() -> None:
    skipped = replanned(PLAN, [Skip(do="skip", bead="b")], done=())
    again = replanned(skipped, [Unskip(do="unskip", bead="b")], done=())
    assert [(x.skipped, y.skipped) for x, y in zip(skipped.beads, again.beads, strict=True)] == [
        (False, False), (True, False), (False, False),
    ]  # fmt: skip


def test_edges_both_ways_are_written_anew() -> None:
    plan = replanned(PLAN, [Edit(do="edit", bead="c", fields={"dependencies": {"blocked_by": ["a"]}})], done=())
    assert {x.id: x.dependencies.blocks for x in plan.beads} == {"a": ("b", "c"), "b": (), "c": ()}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Skip(do="skip", bead="a"), "BEAD_DONE"),
        (Edit(do="edit", bead="a", fields={"title": "x"}), "BEAD_DONE"),
        (Order(do="order", beads=("a", "b")), "BEAD_DONE"),
        (Skip(do="skip", bead="zz"), "BEAD_NOT_FOUND"),
        (Add(do="add", fields=NEW, before="zz"), "BEAD_NOT_FOUND"),
        (Edit(do="edit", bead="b", fields={"title": "Make b"}), "NOT_CHANGED"),
        (Edit(do="edit", bead="b", fields={"dependencies": {"blocked_by": ["c"]}}), "DOCUMENT_INVALID"),
        (Add(do="add", fields=NEW | {"id": "b"}), "DOCUMENT_INVALID"),
        (Add(do="add", fields={"id": "d"}), "DOCUMENT_INVALID"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_by_its_own_code(change: Change, code: str) -> None:
    assert refused(change) == code


def test_all_of_it_or_nothing() -> None:
    assert refused(Skip(do="skip", bead="b"), Skip(do="skip", bead="zz")) == "BEAD_NOT_FOUND"
