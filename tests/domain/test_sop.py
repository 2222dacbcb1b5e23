"""The lint: every way in which a graph must not run, and nothing about one that may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from beadmill.domain.sop import Edge, Graph, KindSpec, NodeDef, Problem, lint
from tests.domain.flow_world import graph

SPECS = {"kind": KindSpec(frozenset({"ok", "no"}))}


def found(g: Graph, specs: dict[str, KindSpec] = SPECS) -> list[tuple[str, str]]:
    return [(p.code, p.message) for p in lint(g, specs)]


def ending(g: Graph, **ends: tuple[str, ...]) -> Graph:
    """``g`` whose nodes end at every outcome without an edge, but for the nodes named."""
    led = {(e.source, e.outcome) for e in g.edges}
    nodes = {}
    for name, node in g.nodes.items():
        rest = tuple(o for o in ("ok", "no") if (name, o) not in led)
        nodes[name] = replace(node, ends=ends.get(name, rest))
    return replace(g, nodes=nodes)


def test_a_sound_graph_has_no_problem() -> None:
    assert found(ending(graph("a ok b", "b no a 3"))) == []


def test_an_unknown_start_is_named() -> None:
    g = ending(graph("a ok b"))
    assert ("unknown_start", "start: there is no node 'z'") in found(replace(g, start="z"))


def test_an_unknown_kind_names_the_known_ones() -> None:
    g = Graph("a", {"a": NodeDef("a", "magic")})
    assert found(g) == [("unknown_kind", "node 'a': there is no kind 'magic'; known: kind")]


def test_a_second_definition_is_a_duplicate() -> None:
    g = replace(ending(graph("a ok b")), duplicates=(NodeDef("b", "kind"),))
    assert found(g) == [("duplicate_id", "node 'b' is defined twice")]


@pytest.mark.parametrize(
    ("edge", "problem"),
    [
        (Edge("a", "no", "z"), ("edge_to_nowhere", "edge a no -> z: there is no node 'z'")),
        (Edge("z", "no", "a"), ("edge_from_nowhere", "edge z no -> a: there is no node 'z'")),
        (Edge("a", "ok", "b"), ("duplicate_edge", "edge a ok -> b is there twice")),
        (Edge("a", "maybe", "b"), ("unknown_outcome", "edge a maybe -> b: kind has no outcome 'maybe'; it has no, ok")),
        (
            Edge("a", "no", "b", max_visits=3),
            ("limit_without_rework", "edge a no -> b: max_visits belongs to rework edges"),
        ),
    ],
)
def test_an_edge_that_cannot_be_is_named(edge: Edge, problem: tuple[str, str]) -> None:
    g = graph("a ok b")
    assert problem in found(ending(replace(g, edges=(*g.edges, edge))))


def test_an_outcome_that_leads_nowhere_must_say_that_it_ends() -> None:
    text = "node 'b': outcome 'no' leads nowhere; add an edge, or name it under ends"
    assert found(ending(graph("a ok b"), b=("ok",))) == [("open_outcome", text)]


def test_an_outcome_cannot_end_and_lead_on() -> None:
    g = ending(graph("a ok b"), a=("ok", "no"))
    assert found(g) == [("ends_and_leads", "node 'a': outcome 'ok' is under ends and has an edge")]


def test_an_end_must_be_an_outcome_of_the_kind() -> None:
    g = ending(graph("a ok b"), a=("no", "never"))
    assert found(g) == [("unknown_outcome", "node 'a' ends: kind has no outcome 'never'; it has no, ok")]


def test_a_rework_edge_without_a_limit_is_an_unbounded_loop() -> None:
    g = ending(graph("a ok b", "b no a 0"))
    assert found(g) == [("unbounded_loop", "rework edge b no -> a has no max_visits: it could go round for ever")]


def test_a_rework_edge_goes_back() -> None:
    g = ending(graph("a ok b", "a no b 3"))
    assert found(g) == [("rework_forward", "rework edge a no -> b does not go back: 'b' is not upstream")]


def test_a_node_may_go_back_to_itself() -> None:
    assert found(ending(graph("a no a 3"))) == []


def test_the_outcome_of_a_rework_edge_has_no_other_edge() -> None:
    g = ending(graph("a ok b", "b no a 3", "b no c"))
    assert found(g) == [("rework_and_more", "rework edge b no -> a: outcome 'no' may have no other edge")]


def test_an_unreachable_node_is_named() -> None:
    g = ending(graph("a ok b", "c ok b"))
    assert found(g) == [("unreachable", "node 'c' cannot be reached from 'a'")]


def test_a_cycle_without_rework_is_told_once_with_its_path() -> None:
    g = ending(graph("a ok b", "b ok c", "c ok b"))
    text = "loop without a limit: b -> c -> b; make the edge that goes back a rework edge"
    assert found(g) == [("unbounded_loop", text)]


def test_a_long_way_round_is_found_past_dead_ends() -> None:
    g = ending(graph("a ok b", "a no c", "b ok d", "b no c", "d no b", "d ok a"))
    loops = [message for code, message in found(g) if code == "unbounded_loop"]
    assert loops == ["loop without a limit: a -> b -> d -> a; make the edge that goes back a rework edge"]


def test_join_any_on_one_source_is_misuse() -> None:
    g = ending(graph("a ok b", "a no b", join={"b": "any"}))
    assert found(g) == [("join_misuse", "node 'b': join any needs edges from two nodes or more")]


def test_an_input_must_be_written_upstream() -> None:
    specs = {
        "writer": KindSpec(frozenset({"ok"}), writes=frozenset({"prd"})),
        "reader": KindSpec(frozenset({"ok"}), reads=frozenset({"prd", "beads"})),
    }
    nodes = {"a": NodeDef("a", "writer"), "b": NodeDef("b", "reader", ends=("ok",))}
    g = Graph("a", nodes, (Edge("a", "ok", "b"), Edge("x", "ok", "b")))
    inputs = [p for p in found(g, specs) if p[0] == "missing_input"]
    assert inputs == [("missing_input", "node 'b' reads 'beads', which no node before it writes")]


def test_problems_come_in_the_order_of_the_file_with_their_place() -> None:
    nodes = {"a": NodeDef("a", "kind", line=9, column=5), "b": NodeDef("b", "magic", ends=(), line=4, column=5)}
    problems = lint(Graph("a", nodes, ()), SPECS)
    assert [(p.code, p.line) for p in problems] == [
        ("unknown_kind", 4),
        ("unreachable", 4),
        ("open_outcome", 9),
        ("open_outcome", 9),
    ]
    assert str(problems[1]) == "line 4, column 5: node 'b' cannot be reached from 'a'"
    assert str(Problem("x", "no place")) == "no place"


# --- approved together --------------------------------------------------------------------------------------------
def approving(**config: dict[str, object]) -> list[tuple[str, str]]:
    g = ending(graph("a ok b", "b ok c"))
    nodes = {name: replace(node, config=config.get(name, {})) for name, node in g.nodes.items()}
    return found(replace(g, nodes=nodes))


def test_what_is_approved_later_is_approved_by_a_node_behind_it() -> None:
    assert approving(a={"approve": "later"}, c={"together": ["kind"]}) == []


def test_what_is_approved_later_by_nobody_is_named() -> None:
    text = "node 'c': approve: later, yet no node behind it names 'kind' under together"
    assert approving(c={"approve": "later"}) == [("never_approved", text)]


def test_a_node_that_waits_for_what_nobody_puts_off_is_named() -> None:
    text = "node 'c': together names 'kind', which no node before it has under approve: later"
    assert approving(c={"together": ["kind"]}) == [("approval_missing", text)]
