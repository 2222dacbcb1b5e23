"""The token machine by example."""

from __future__ import annotations

import pytest

from beadmill.domain.flow import Moves, Past, Start, advance, after, begin, kept, sealed_by, send_back, stuck, targets
from beadmill.domain.machine import VisitState
from beadmill.domain.sop import Edge, Graph, NodeDef
from beadmill.errors import Conflict, NotFound
from tests.domain.flow_world import World, graph

DIAMOND = ("a ok b", "a ok c", "b ok d", "c ok d")
OK = dict.fromkeys("abcdex", "ok")


def world(*edges: str, join: dict[str, str] | None = None) -> World:
    return World(graph(*edges, join=join), OK).begin()


def test_a_run_begins_at_the_start_node() -> None:
    assert begin(graph("a ok b")) == Moves((Start("a", 1),))


def test_a_fork_starts_every_target_of_the_outcome() -> None:
    assert world(*DIAMOND).finish("a") == Moves((Start("b", 1, (("a", 1),)), Start("c", 1, (("a", 1),))))


def test_a_join_waits_for_all_and_names_whom_it_came_from() -> None:
    w = world(*DIAMOND)
    w.finish("a")
    assert w.finish("c") == Moves()
    assert w.finish("b") == Moves((Start("d", 1, (("b", 1), ("c", 1))),))


def test_a_join_does_not_wait_for_a_branch_that_went_elsewhere() -> None:
    w = world(*DIAMOND)
    w.finish("a")
    w.finish("c")
    assert w.finish("b", "other") == Moves((Start("d", 1, (("c", 1),)),))


def test_a_join_waits_for_a_branch_that_is_still_far_away() -> None:
    w = world("a ok b", "a ok c", "b ok e", "e ok d", "c ok d")
    w.finish("a")
    assert w.finish("c") == Moves()
    w.finish("b")
    assert w.finish("e") == Moves((Start("d", 1, (("e", 1), ("c", 1))),))


def test_join_any_starts_at_the_first_token_and_absorbs_the_next() -> None:
    w = world(*DIAMOND, join={"d": "any"})
    w.finish("a")
    assert w.finish("c") == Moves((Start("d", 1, (("c", 1),)),))
    assert w.finish("b") == Moves()
    assert w.finish("d") == Moves(ended=True)


def test_join_any_waits_for_the_branch_that_was_sent_back() -> None:
    w = world(*DIAMOND, join={"d": "any"})
    for node in "acb":
        w.finish(node)
    assert w.send_back("b") == Moves((Start("b", 2, (("a", 1),)),), supersede=(("b", 1), ("d", 1)))
    assert w.finish("b") == Moves((Start("d", 2, (("b", 2), ("c", 1))),))


def test_join_any_waits_for_the_first_visits_of_a_branch_that_was_sent_back() -> None:
    w = world("a ok b", "a ok c", "b ok e", "e ok d", "c ok d", join={"d": "any"})
    w.finish("a")
    w.finish("c")
    w.send_back("b")
    assert w.finish("b") == Moves((Start("e", 1, (("b", 2),)),))
    assert w.finish("e") == Moves((Start("d", 2, (("e", 1), ("c", 1))),))


def test_a_join_does_not_wait_for_a_token_that_a_race_will_absorb() -> None:
    w = world("a ok b", "a ok c", "a ok x", "b ok e", "c ok e", "e ok d", "x ok d", join={"e": "any"})
    w.finish("a")
    w.finish("b")
    w.finish("e", "other")
    assert w.finish("x") == Moves((Start("d", 1, (("x", 1),)),))
    assert w.open() == ["c", "d"]


def test_join_any_can_itself_be_sent_back_while_another_branch_is_redone() -> None:
    w = world(*DIAMOND, join={"d": "any"})
    w.finish("a")
    w.send_back("a")
    w.finish("a")
    w.finish("b")
    assert w.send_back("d") == Moves((Start("d", 2, (("b", 2),)),), supersede=(("d", 1),))


def test_the_end_of_the_last_branch_ends_the_run() -> None:
    w = world("a ok b", "a ok c")
    w.finish("a")
    assert not w.finish("b").ended
    assert w.finish("c") == Moves(ended=True)


def test_rework_supersedes_what_is_downstream_of_its_target_and_starts_it_again() -> None:
    w = world("a ok b", "b ok c", "c no b 3")
    w.finish("a")
    w.finish("b")
    assert w.finish("c", "no") == Moves((Start("b", 2, (("a", 1),)),), supersede=(("b", 1), ("c", 1)))


def test_rework_stops_a_branch_that_is_still_open() -> None:
    w = world("a ok b", "a ok c", "b no a 3")
    w.finish("a")
    assert w.finish("b", "no").supersede == (("a", 1), ("b", 1), ("c", 1))
    assert w.open() == ["a"]


def test_a_join_after_rework_takes_the_new_visit_and_the_untouched_one() -> None:
    w = world(*DIAMOND, "d no b 3")
    for node in "abc":
        w.finish(node)
    w.finish("d", "no")
    assert w.finish("b") == Moves((Start("d", 2, (("b", 2), ("c", 1))),))


def test_rework_never_fires_a_join_on_a_stale_token() -> None:
    w = world(*DIAMOND, "d no b 3")
    for node in "abc":
        w.finish(node)
    w.finish("d", "no")
    assert w.finish("b", "other") == Moves((Start("d", 2, (("c", 1),)),))


def test_a_change_of_what_a_node_stands_for_restarts_what_follows_and_not_the_node() -> None:
    w = World(graph("a ok b", "b ok c"), {"a": "ok", "b": "ok", "c": "ok"}).begin()
    w.finish("a")
    w.finish("b")
    assert after(w.graph, w.past, "a") == Moves((Start("b", 2, (("a", 1),)),), supersede=(("b", 1), ("c", 1)))


def test_rework_gives_up_when_its_visits_are_spent_and_a_person_may_still_send_back() -> None:
    w = world("a ok b", "b no a 2")
    w.finish("a")
    w.finish("b", "no")
    w.finish("a")
    assert w.finish("b", "no") == Moves(exhausted=Edge("b", "no", "a", rework=True, max_visits=2))
    assert stuck(w.graph, w.past) == (("b", 2),)
    assert w.send_back("a").start == (Start("a", 3),)
    assert stuck(w.graph, w.past) == ()


def test_a_rework_edge_without_a_limit_goes_round() -> None:
    g = Graph("a", {"a": NodeDef("a", "kind")}, (Edge("a", "no", "a", rework=True),))
    past = [Past("a", n, VisitState.SUPERSEDED) for n in range(1, 9)] + [Past("a", 9, VisitState.DONE, "no")]
    assert advance(g, past, ("a", 9), "no") == Moves((Start("a", 10),), supersede=(("a", 9),))


def test_rework_to_a_node_that_was_never_reached_waits_for_a_person() -> None:
    w = world("a ok d", "a big b", "b ok d", "d no b 3")
    w.finish("a")
    assert w.finish("d", "no") == Moves(exhausted=w.graph.edges[-1])


def test_a_join_does_not_pass_a_rework_that_gave_up() -> None:
    w = world(*DIAMOND, "b no a 1")
    w.finish("a")
    assert w.finish("b", "no").exhausted is not None
    assert w.finish("c") == Moves()


def test_a_canceled_visit_neither_delivers_nor_starts_again() -> None:
    w = world(*DIAMOND)
    w.finish("a")
    w.set(("b", 1), VisitState.CANCELED)
    assert w.finish("c") == Moves((Start("d", 1, (("c", 1),)),))


def test_a_superseded_visit_that_ends_late_takes_no_way_back() -> None:
    w = world("a ok b", "b no a 3")
    w.finish("a")
    w.send_back("b")
    assert advance(w.graph, w.past, ("b", 1), "no") == Moves()


def test_nothing_moves_on_a_visit_that_is_not_there() -> None:
    with pytest.raises(NotFound, match=r"visit b\.1 is not among"):
        advance(graph("a ok b"), [], ("b", 1), "ok")


def test_an_outcome_that_leads_to_an_unknown_node_ends_the_branch() -> None:
    g = Graph("a", {"a": NodeDef("a", "kind")}, (Edge("a", "ok", "gone"),))
    assert advance(g, [Past("a", 1, VisitState.DONE, "ok")], ("a", 1), "ok") == Moves(ended=True)


def test_send_back_to_an_unknown_node_names_the_known_ones() -> None:
    with pytest.raises(NotFound) as caught:
        send_back(graph("a ok b"), [], "z")
    assert caught.value.next == "Send back to one of: a, b."


def test_send_back_forward_is_refused() -> None:
    w = world("a ok b", "b ok c")
    with pytest.raises(Conflict) as caught:
        w.send_back("c")
    assert (caught.value.code, caught.value.kept) == ("NOT_REACHED", "Nothing was changed.")


def test_a_rerun_starts_its_target_and_the_branches_that_were_not_kept() -> None:
    g = graph(*DIAMOND)
    past = [Past("a", 1, VisitState.KEPT, "ok")]
    assert send_back(g, past, "b") == Moves((Start("b", 1, (("a", 1),)), Start("c", 1, (("a", 1),))))


def test_a_rerun_from_the_start_keeps_nothing() -> None:
    w = world("a ok b")
    w.finish("a")
    assert kept(w.graph, w.past, "a") == ()
    assert send_back(w.graph, [], "a") == Moves((Start("a", 1),))


def test_kept_leaves_out_what_is_open_superseded_or_beside() -> None:
    w = world(*DIAMOND)
    w.finish("a")
    w.finish("c")
    w.send_back("c")
    assert kept(w.graph, w.past, "d") == (("a", 1),)


def sealed() -> Graph:
    g = graph("a ok b", "b ok c")
    return Graph("a", {**g.nodes, "b": NodeDef("b", "kind", seals=True)}, g.edges)


def test_a_seal_closes_the_way_back_once_it_was_started() -> None:
    w = World(sealed(), OK).begin()
    assert targets(w.graph, w.past) == ("a",)
    w.finish("a")
    assert sealed_by(w.graph, w.past, "a") == "b"
    assert targets(w.graph, w.past) == ("b",)


def test_a_superseded_seal_is_open_again() -> None:
    w = World(sealed(), OK).begin()
    w.finish("a")
    w.send_back("a")
    assert sealed_by(w.graph, w.past, "a") == ""
