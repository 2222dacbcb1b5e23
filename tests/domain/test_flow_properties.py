"""Properties of the token machine over drawn graphs and drawn interleavings."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from beadmill.domain.flow import Past, advance, kept, stuck
from beadmill.domain.machine import VisitState
from beadmill.domain.sop import KindSpec, lint
from tests.domain.flow_world import FLOW, World, copy, downstream, expected_end, upstream, worlds

KIND = {"kind": KindSpec(frozenset({"x", "y", "back"}))}
ALLOWED = {"open_outcome", "unreachable"}  # an outcome that ends the branch, a node that only such an outcome reaches


def tokens(world: World, node: str) -> set[tuple[str, int]]:
    """The tokens that lie before ``node``: finished living visits whose outcome leads to it."""
    leads = {(e.source, e.outcome) for e in world.graph.edges if e.target == node and not e.rework}
    return {p.key for p in world.past if p.state.counts and (p.node, p.outcome) in leads}


def sound(world: World) -> None:
    """What must hold after every move."""
    living = world.living()
    assert world.last.ended == (not world.open() and not stuck(world.graph, world.past))
    for visit in living.values():
        assert set(visit.came_from) <= {p.key for p in living.values()}, "a living visit came from a stale one"
    for start in world.last.start:
        if start.node != world.graph.start:
            assert set(start.came_from) == tokens(world, start.node) != set()


@FLOW
@given(worlds())
def test_the_drawn_graphs_are_ones_the_lint_accepts(world: World) -> None:
    assert {p.code for p in lint(world.graph, KIND)} <= ALLOWED


@FLOW
@given(worlds(), st.data())
def test_any_interleaving_of_completions_gives_the_same_end(world: World, data: st.DataObject) -> None:
    first = copy(world).begin().run(lambda going: data.draw(st.sampled_from(going)), check=sound)
    second = copy(world).begin().run(lambda going: going[-1], check=sound)
    assert first.end() == second.end() == expected_end(world.graph, world.script)


@FLOW
@given(worlds(), st.data())
def test_at_the_end_every_token_was_taken_exactly_once(world: World, data: st.DataObject) -> None:
    world.begin().run(lambda going: data.draw(st.sampled_from(going)), check=sound)
    living = world.living()
    for node, visit in living.items():
        taken = set(visit.came_from)
        assert len(taken) == len(visit.came_from)
        if world.graph.nodes[node].join == "all" and node != world.graph.start:
            assert taken == tokens(world, node)
    assert all(node in living for node in world.graph.nodes if tokens(world, node))


@FLOW
@given(worlds(), st.data())
def test_send_back_supersedes_exactly_what_is_downstream(world: World, data: st.DataObject) -> None:
    world.begin()
    for _ in range(data.draw(st.integers(0, 8))):
        if world.open():
            world.finish(data.draw(st.sampled_from(world.open())))
    before = world.living()
    target = data.draw(st.sampled_from(sorted(before)))
    moves = world.send_back(target)
    region = downstream(world.graph, target)
    assert set(moves.supersede) == {p.key for node, p in before.items() if node in region}
    assert [s.node for s in moves.start] == [target]
    assert moves.start[0].n == before[target].n + 1
    world.run(lambda going: data.draw(st.sampled_from(going)), check=sound)
    assert world.end() == expected_end(world.graph, world.script)


@FLOW
@given(worlds(), st.data())
def test_kept_is_exactly_upstream_and_a_rerun_over_it_reaches_the_same_end(world: World, data: st.DataObject) -> None:
    world.begin().run(lambda going: data.draw(st.sampled_from(going)))
    living = world.living()
    target = data.draw(st.sampled_from(sorted(living)))
    copied = kept(world.graph, world.past, target)
    assert set(copied) == {living[node].key for node in upstream(world.graph, target) & living.keys()}
    rerun = World(world.graph, world.script, past=[as_kept(p) for p in world.past if p.key in copied])
    assert target in [s.node for s in rerun.send_back(target).start]
    rerun.run(lambda going: data.draw(st.sampled_from(going)), check=sound)
    assert rerun.end() == expected_end(world.graph, world.script)


def as_kept(visit: Past) -> Past:
    return replace(visit, state=VisitState.KEPT)


@FLOW
@given(worlds(), st.data())
def test_a_superseded_visit_that_still_ends_starts_nothing(world: World, data: st.DataObject) -> None:
    world.begin()
    while len(world.open()) < 2 and world.open():
        world.finish(world.open()[0])
    if not world.open():
        return
    late = data.draw(st.sampled_from(world.open()))
    key = world.living()[late].key
    world.send_back(late)
    quiet = advance(world.graph, world.past, key, data.draw(st.sampled_from(["x", "y", "back"])))
    assert (quiet.start, quiet.supersede, quiet.exhausted) == ((), (), None)


@FLOW
@given(worlds(racing=True), st.data())
def test_a_race_over_a_way_back_ends_or_waits_for_a_person(world: World, data: st.DataObject) -> None:
    world.begin().run(lambda going: data.draw(st.sampled_from(going)), check=sound)
    waiting = stuck(world.graph, world.past)
    assert bool(waiting) != world.last.ended
    assert waiting or world.end() == expected_end(world.graph, world.script)
