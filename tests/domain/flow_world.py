"""A run in memory for the flow tests: applies moves as the journal does, and draws graphs that the lint accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st

from beadmill.domain.flow import Key, Moves, Past, advance, begin, send_back
from beadmill.domain.machine import VISIT, VisitState
from beadmill.domain.sop import Edge, Graph, NodeDef

FLOW = settings(max_examples=150, deadline=None, database=None, derandomize=True)


@dataclass
class World:
    """``script`` says how a node ends; a node in ``reworks`` goes back so many times first."""

    graph: Graph
    script: dict[str, str]
    reworks: Counter[str] = field(default_factory=Counter)
    past: list[Past] = field(default_factory=list)
    last: Moves = field(default_factory=Moves)

    def begin(self) -> World:
        self.apply(begin(self.graph))
        return self

    def apply(self, moves: Moves) -> None:
        for key in moves.supersede:
            self.set(key, VisitState.SUPERSEDED)
        for start in moves.start:
            assert (start.node, start.n) not in {p.key for p in self.past}
            self.past.append(Past(start.node, start.n, VisitState.READY, "", start.came_from))
        self.last = moves

    def set(self, key: Key, state: VisitState, outcome: str = "") -> None:
        at = [p.key for p in self.past].index(key)
        now = self.past[at]
        if state is VisitState.DONE:
            assert now.state.open
        else:
            assert state in VISIT[now.state]
        self.past[at] = replace(now, state=state, outcome=outcome or now.outcome)

    def finish(self, node: str, outcome: str = "") -> Moves:
        """Ends the living visit of ``node``."""
        key = self.living()[node].key
        if not outcome and self.reworks[node] > 0:
            self.reworks[node] -= 1
            outcome = "back"
        outcome = outcome or self.script[node]
        self.set(key, VisitState.DONE, outcome)
        self.apply(advance(self.graph, self.past, key, outcome))
        return self.last

    def send_back(self, target: str) -> Moves:
        self.apply(send_back(self.graph, self.past, target))
        return self.last

    def open(self) -> list[str]:
        return [p.node for p in self.past if p.state.open]

    def living(self) -> dict[str, Past]:
        alive = [p for p in self.past if p.state.open or p.state.counts]
        assert len({p.node for p in alive}) == len(alive), "a node has two living visits"
        return {p.node: p for p in alive}

    def run(self, pick: Callable[[Sequence[str]], str], *, check: Callable[[World], None] = lambda _: None) -> World:
        check(self)
        while going := self.open():
            self.finish(pick(going))
            check(self)
        return self

    def end(self) -> dict[str, str]:
        return {node: visit.outcome for node, visit in sorted(self.living().items())}


def graph(*edges: str, join: dict[str, str] | None = None, start: str = "a") -> Graph:
    """``graph("a ok b", "b no a 3")``: a number makes it a rework edge."""
    made = []
    for text in edges:
        source, outcome, target, *limit = text.split()
        made.append(Edge(source, outcome, target, bool(limit), int(limit[0]) if limit else 0))
    names = dict.fromkeys([start, *(n for e in made for n in (e.source, e.target))])
    nodes = {n: NodeDef(n, "kind", join="any" if (join or {}).get(n) == "any" else "all") for n in names}
    return Graph(start, nodes, tuple(made))


def downstream(g: Graph, node: str) -> set[str]:
    """The closure the slow way (edges until nothing changes), independent of the product's."""
    found = {node}
    while new := {e.target for e in g.edges if not e.rework and e.source in found} - found:
        found |= new
    return found


def upstream(g: Graph, node: str) -> set[str]:
    return {other for other in g.nodes if other != node and node in downstream(g, other)}


def expected_end(g: Graph, script: dict[str, str]) -> dict[str, str]:
    """What must live when everything has been done: what the final outcomes lead to."""
    found = {g.start}
    while new := {e.target for e in g.edges if e.source in found and e.outcome == script[e.source]} - found:
        found |= new
    return {node: script[node] for node in sorted(found)}


@st.composite
def worlds(draw: st.DrawFn, *, racing: bool = False) -> World:
    """2-7 nodes in topological order, forks, both joins, two outcomes per node, ways back that are used.

    ``racing`` also draws ways back over a join any: there the target may not have been reached when the edge is taken,
    and the run then waits for a person.
    """
    names = "abcdefg"[: draw(st.integers(2, 7))]
    edges: list[Edge] = []
    for at, node in enumerate(names[1:], 1):
        for source in draw(st.sets(st.sampled_from(names[:at]), min_size=1, max_size=3)):
            outcomes = draw(st.sampled_from(["x", "y", "xy"]))
            edges += [Edge(source, outcome, node) for outcome in outcomes]
    several = {n for n in names if len({e.source for e in edges if e.target == n}) > 1}
    nodes = {
        n: NodeDef(n, "kind", join=draw(st.sampled_from(["all", "any"])) if n in several else "all") for n in names
    }
    script = {n: draw(st.sampled_from("xy")) for n in names}
    forward = Graph("a", nodes, tuple(edges))
    ways = _ways_back(forward, script, racing=racing)
    back = draw(st.lists(st.sampled_from(ways), max_size=3, unique_by=lambda way: way[0]))
    reworks = Counter({source: draw(st.integers(1, 2)) for source, _ in back})
    edges += [Edge(source, "back", target, rework=True, max_visits=1000) for source, target in back]
    return World(Graph("a", nodes, tuple(edges)), script, reworks)


def _ways_back(g: Graph, script: dict[str, str], *, racing: bool) -> list[tuple[str, str]]:
    visited = expected_end(g, script).keys()
    found = [(node, node) for node in visited]
    for source in visited:
        for target in upstream(g, source) & visited:
            between = downstream(g, target) & (upstream(g, source) | {source}) - {target}
            if racing or all(g.nodes[n].join == "all" for n in between):
                found.append((source, target))
    return sorted(found)


def copy(world: World) -> World:
    return World(world.graph, world.script, Counter(world.reworks), list(world.past), world.last)
