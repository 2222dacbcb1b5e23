"""An SOP as a graph: nodes, edges, and the lint that says why a graph must not run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, TypeVar

from beadmill.domain.values import Json

Join = Literal["all", "any"]
H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Edge:
    """``source`` ending with ``outcome`` leads to ``target``. A rework edge goes back: it supersedes everything
    downstream of its target, and gives up when the target would be visited more than ``max_visits`` times."""

    source: str
    outcome: str
    target: str
    rework: bool = False
    max_visits: int = 0
    line: int = field(default=0, compare=False)  # 1-based place in the YAML; 0 = not from a file
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.source} {self.outcome} -> {self.target}"


@dataclass(frozen=True, slots=True)
class NodeDef:
    """``ends`` names the outcomes that lead nowhere on purpose. ``seals`` closes the way back for people: once such
    a node was started, a node before it is no longer a target of send back (a rerun is)."""

    id: str
    kind: str
    config: Mapping[str, Json] = field(default_factory=dict)
    join: Join = "all"
    title: str = ""
    ends: tuple[str, ...] = ()
    seals: bool = False
    not_acted_on: tuple[str, ...] = ()  # fields of the node format that are set and that this release does not know
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Graph:
    """``duplicates`` are definitions whose id was taken already: kept for the lint, never run."""

    start: str
    nodes: Mapping[str, NodeDef]
    edges: tuple[Edge, ...] = ()
    duplicates: tuple[NodeDef, ...] = ()

    def next_from(self, node: str) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.source == node and not e.rework)

    def next_into(self, node: str) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.target == node and not e.rework)

    def rework_from(self, node: str, outcome: str) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.source == node and e.outcome == outcome and e.rework)

    def downstream(self, node: str) -> frozenset[str]:
        """Everything that next edges lead to from ``node``; not the node itself unless it is on a cycle."""
        return reach((node,), lambda n: (e.target for e in self.next_from(n)))

    def upstream(self, node: str) -> frozenset[str]:
        return reach((node,), lambda n: (e.source for e in self.next_into(n)))


@dataclass(frozen=True, slots=True)
class KindSpec:
    """What the lint knows about a node kind: its outcomes, the document kinds it reads and writes."""

    outcomes: frozenset[str]
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Problem:
    """``code`` is stable; ``line`` and ``column`` are 1-based, 0 when the graph does not come from a file."""

    code: str
    message: str
    node: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.message}"


def reach(origins: Iterable[H], following: Callable[[H], Iterable[H]]) -> frozenset[H]:
    """What can be reached in one step or more."""
    found: set[H] = set()
    todo = list(origins)
    while todo:
        for other in following(todo.pop()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)


def lint(graph: Graph, specs: Mapping[str, KindSpec]) -> tuple[Problem, ...]:
    """Every reason why the graph must not run, in the order of the file. Empty = it may."""
    found = chain(
        _nodes(graph, specs),
        _edges(graph),
        _outcomes(graph, specs),
        _rework(graph),
        _reachable(graph),
        _cycles(graph),
        _joins(graph),
        _inputs(graph, specs),
        _together(graph),
    )
    return tuple(sorted(found, key=lambda p: (p.line, p.column)))


def _at(code: str, where: NodeDef | Edge, message: str) -> Problem:
    node = where.id if isinstance(where, NodeDef) else where.source
    return Problem(code, message, node, where.line, where.column)


def _nodes(graph: Graph, specs: Mapping[str, KindSpec]) -> Iterator[Problem]:
    if graph.start not in graph.nodes:
        yield Problem("unknown_start", f"start: there is no node {graph.start!r}", graph.start)
    for node in graph.duplicates:
        yield _at("duplicate_id", node, f"node {node.id!r} is defined twice")
    for node in graph.nodes.values():
        if node.kind not in specs:
            known = ", ".join(sorted(specs))
            yield _at("unknown_kind", node, f"node {node.id!r}: there is no kind {node.kind!r}; known: {known}")
        for name in node.not_acted_on:
            yield _at("not_acted_on", node, f"node {node.id!r}: this release does not act on {name!r}; take it out")


def _edges(graph: Graph) -> Iterator[Problem]:
    seen: set[tuple[str, str, str]] = set()
    for edge in graph.edges:
        if edge.source not in graph.nodes:
            yield _at("edge_from_nowhere", edge, f"edge {edge}: there is no node {edge.source!r}")
        if edge.target not in graph.nodes:
            yield _at("edge_to_nowhere", edge, f"edge {edge}: there is no node {edge.target!r}")
        if (key := (edge.source, edge.outcome, edge.target)) in seen:
            yield _at("duplicate_edge", edge, f"edge {edge} is there twice")
        seen.add(key)


def _outcomes(graph: Graph, specs: Mapping[str, KindSpec]) -> Iterator[Problem]:
    for node in graph.nodes.values():
        if (spec := specs.get(node.kind)) is None:
            continue
        out = [e for e in graph.edges if e.source == node.id]
        led = {e.outcome for e in out}
        has = ", ".join(sorted(spec.outcomes))
        for edge in (e for e in out if e.outcome not in spec.outcomes):
            yield _at(
                "unknown_outcome", edge, f"edge {edge}: {node.kind} has no outcome {edge.outcome!r}; it has {has}"
            )
        for name in sorted(set(node.ends) - spec.outcomes):
            yield _at(
                "unknown_outcome", node, f"node {node.id!r} ends: {node.kind} has no outcome {name!r}; it has {has}"
            )
        for name in sorted(spec.outcomes - led - set(node.ends)):
            text = f"node {node.id!r}: outcome {name!r} leads nowhere; add an edge, or name it under ends"
            yield _at("open_outcome", node, text)
        for name in sorted(led & set(node.ends)):
            yield _at("ends_and_leads", node, f"node {node.id!r}: outcome {name!r} is under ends and has an edge")


def _rework(graph: Graph) -> Iterator[Problem]:
    for edge in graph.edges:
        if not edge.rework:
            if edge.max_visits:
                yield _at("limit_without_rework", edge, f"edge {edge}: max_visits belongs to rework edges")
            continue
        if edge.max_visits < 1:
            yield _at("unbounded_loop", edge, f"rework edge {edge} has no max_visits: it could go round for ever")
        if edge.target != edge.source and edge.target not in graph.upstream(edge.source):
            yield _at("rework_forward", edge, f"rework edge {edge} does not go back: {edge.target!r} is not upstream")
        others = [e for e in graph.edges if (e.source, e.outcome) == (edge.source, edge.outcome) and e is not edge]
        if others:
            yield _at("rework_and_more", edge, f"rework edge {edge}: outcome {edge.outcome!r} may have no other edge")


def _reachable(graph: Graph) -> Iterator[Problem]:
    reached = reach((graph.start,), lambda n: (e.target for e in graph.edges if e.source == n)) | {graph.start}
    for node in graph.nodes.values():
        if node.id not in reached:
            yield _at("unreachable", node, f"node {node.id!r} cannot be reached from {graph.start!r}")


def _cycles(graph: Graph) -> Iterator[Problem]:
    told: set[str] = set()
    for node in graph.nodes.values():
        path = () if node.id in told else _way_round(graph, node.id)
        told.update(path)
        if path:
            text = f"loop without a limit: {' -> '.join((*path, node.id))}; make the edge that goes back a rework edge"
            yield _at("unbounded_loop", node, text)


def _way_round(graph: Graph, node: str) -> tuple[str, ...]:
    """A shortest way from ``node`` back to itself over next edges, () when there is none."""
    ways: dict[str, tuple[str, ...]] = {node: (node,)}
    order = [node]
    for at in order:  # grows while it is read: breadth first
        for edge in graph.next_from(at):
            if edge.target == node:
                return ways[at]
            if edge.target not in ways:
                ways[edge.target] = (*ways[at], edge.target)
                order.append(edge.target)
    return ()


def _joins(graph: Graph) -> Iterator[Problem]:
    for node in graph.nodes.values():
        sources = {e.source for e in graph.next_into(node.id)}
        if node.join == "any" and len(sources) < 2:
            yield _at("join_misuse", node, f"node {node.id!r}: join any needs edges from two nodes or more")


def _inputs(graph: Graph, specs: Mapping[str, KindSpec]) -> Iterator[Problem]:
    nothing = KindSpec(frozenset())
    kinds = {node.id: specs.get(node.kind, nothing) for node in graph.nodes.values()}
    for node in graph.nodes.values():
        made = {kind for other in graph.upstream(node.id) if other in kinds for kind in kinds[other].writes}
        for kind in sorted(kinds[node.id].reads - made):
            yield _at("missing_input", node, f"node {node.id!r} reads {kind!r}, which no node before it writes")


def _together(graph: Graph) -> Iterator[Problem]:
    """What is approved later is approved by exactly one node behind it, and no node waits for what nobody puts off."""
    later = {n.id: n.kind for n in graph.nodes.values() if n.config.get("approve") == "later"}
    for node in graph.nodes.values():
        named = node.config.get("together") or ()
        before = {kind for other, kind in later.items() if other in graph.upstream(node.id)}
        for kind in sorted({str(one) for one in named} - before):
            text = f"node {node.id!r}: together names {kind!r}, which no node before it has under approve: later"
            yield _at("approval_missing", node, text)
    for name, kind in later.items():
        behind = [n for n in graph.nodes.values() if name in graph.upstream(n.id)]
        if not any(kind in (n.config.get("together") or ()) for n in behind):
            text = f"node {name!r}: approve: later, yet no node behind it names {kind!r} under together"
            yield _at("never_approved", graph.nodes[name], text)
