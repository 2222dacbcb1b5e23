"""The token machine: which visits start, and which are superseded, when a visit ends or a run is sent back.

A visit that is done (or kept by a rerun) puts one token on every next edge of its outcome. A node that has no living
visit starts

- join ``all``: when it has a token and no further edge into it can still deliver one;
- join ``any``: at its first token; later ones are absorbed. After a send back it waits for the branches being redone,
  or else the old branch would start it again and the redone one would be absorbed.

Way back is by supersession only, so a node never has two living visits, and a token counts while its visit lives and
the node it leads to does not. That is all the state there is: everything is derived from the visits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from beadmill.domain.machine import VisitState
from beadmill.domain.sop import Edge, Graph, reach
from beadmill.errors import Conflict, NotFound

Key: TypeAlias = tuple[str, int]  # node, n


@dataclass(frozen=True, slots=True)
class Past:
    """One visit as the journal has it. ``came_from`` are the visits whose tokens it consumed."""

    node: str
    n: int
    state: VisitState
    outcome: str = ""
    came_from: tuple[Key, ...] = ()

    @property
    def key(self) -> Key:
        return self.node, self.n


@dataclass(frozen=True, slots=True)
class Start:
    """A visit to insert."""

    node: str
    n: int
    came_from: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Moves:
    """What to write. ``supersede`` names visits that are open (stop them first) or done. ``exhausted`` is the rework
    edge that gave up: nothing starts and the run has not ended, a person decides."""

    start: tuple[Start, ...] = ()
    supersede: tuple[Key, ...] = ()
    ended: bool = False
    exhausted: Edge | None = None


def begin(graph: Graph) -> Moves:
    return _Marking(graph, ()).fire()


def advance(graph: Graph, past: Sequence[Past], done: Key, outcome: str) -> Moves:
    """``past`` already shows ``done`` as DONE with ``outcome``. A superseded ``done`` moves nothing of its own."""
    visit = next((p for p in past if p.key == done), None)
    if visit is None:
        raise NotFound(f"visit {done[0]}.{done[1]} is not among the visits of the run")
    if visit.state.counts:
        for edge in graph.rework_from(visit.node, outcome):
            if edge.max_visits and _next_n(past, edge.target) > edge.max_visits:
                return Moves(exhausted=edge)
            return _restart(graph, past, edge.target)
    return _Marking(graph, past).fire()


def send_back(graph: Graph, past: Sequence[Past], target: str) -> Moves:
    """Supersedes ``target`` and everything downstream of it, and starts the target again. Not limited by max_visits:
    a person decided. Raises NotFound for an unknown node, Conflict for one that the run has not reached."""
    if target not in graph.nodes:
        raise NotFound(f"the SOP has no node {target!r}", next=f"Send back to one of: {', '.join(graph.nodes)}.")
    cleared, _ = _supersede(graph, past, target)
    if not _Marking(graph, cleared).may_start(target):
        raise Conflict(
            f"the run has not reached {target!r}: what it waits for is not done",
            code="NOT_REACHED",
            kept="Nothing was changed.",
            next="Send back to a node that was visited.",
        )
    return _restart(graph, past, target)


def kept(graph: Graph, past: Sequence[Past], target: str) -> tuple[Key, ...]:
    """The living, finished visits upstream of ``target``: what a rerun from there copies (same node and n). Feed the
    copies to ``send_back`` of the new run."""
    before = graph.upstream(target) - {target}
    return tuple(p.key for p in past if p.node in before and p.state.counts)


def sealed_by(graph: Graph, past: Sequence[Past], target: str) -> str:
    """The sealing node downstream of ``target`` that was already started: people may not send back past it. "" = none."""
    after = graph.downstream(target)
    started = {p.node for p in past if p.state.open or p.state.counts}
    return next((n.id for n in graph.nodes.values() if n.seals and n.id in after & started), "")


def targets(graph: Graph, past: Sequence[Past]) -> tuple[str, ...]:
    """Where a person may send this run back to, in the order of the SOP."""
    alive = {p.node for p in past if p.state.open or p.state.counts}
    return tuple(node for node in graph.nodes if node in alive and not sealed_by(graph, past, node))


def stuck(graph: Graph, past: Sequence[Past]) -> tuple[Key, ...]:
    """Living visits whose rework gave up: the run waits for a person."""
    return tuple(p.key for p in past if _stuck(graph, p))


def _stuck(graph: Graph, visit: Past) -> bool:
    # A rework that did fire has superseded the visit it came from.
    return visit.state is VisitState.DONE and bool(graph.rework_from(visit.node, visit.outcome))


def _next_n(past: Iterable[Past], node: str) -> int:
    return max((p.n for p in past if p.node == node), default=0) + 1


def _supersede(graph: Graph, past: Sequence[Past], target: str) -> tuple[tuple[Past, ...], tuple[Key, ...]]:
    region = graph.downstream(target) | {target}
    gone = tuple(p.key for p in past if p.node in region and (p.state.open or p.state.counts))
    cleared = tuple(replace(p, state=VisitState.SUPERSEDED) if p.key in gone else p for p in past)
    return cleared, gone


def _restart(graph: Graph, past: Sequence[Past], target: str) -> Moves:
    cleared, gone = _supersede(graph, past, target)
    return replace(_Marking(graph, cleared).fire(first=target), supersede=gone)


class _Marking:
    """Where the tokens are. Started visits are added as READY, so one pass sees what the pass before started."""

    def __init__(self, graph: Graph, past: Sequence[Past]) -> None:
        self.graph = graph
        self.visits = list(past)
        self.starts: list[Start] = []

    def fire(self, *, first: str = "") -> Moves:
        """Starts ``first`` in any case, then everything that may start, until nothing changes."""
        if first:
            self._start(first)
        while ready := [node for node in self.graph.nodes if self.may_start(node)]:
            for node in ready:
                self._start(node)
        still = any(p.state.open or _stuck(self.graph, p) for p in self.visits)
        return Moves(tuple(self.starts), ended=not still)

    def may_start(self, node: str) -> bool:
        if node in self._living:
            return False
        if node == self.graph.start:
            return True
        if not self._tokens(node):
            return False
        if self.graph.nodes[node].join == "any":
            return not self._being_redone(node)
        return not any(self._may_run(edge.source) for edge in self.graph.next_into(node))

    def _start(self, node: str) -> None:
        begun = Start(node, _next_n(self.visits, node), self._tokens(node))
        self.starts.append(begun)
        self.visits.append(Past(begun.node, begun.n, VisitState.READY, "", begun.came_from))
        self.__dict__.pop("_living", None)

    @cached_property
    def _living(self) -> frozenset[str]:
        """Nodes that will not start on a token. A canceled visit is over for good: it delivers and restarts nothing."""
        return frozenset(p.node for p in self.visits if p.state is not VisitState.SUPERSEDED)

    def _tokens(self, node: str) -> tuple[Key, ...]:
        edges = {(e.source, e.outcome) for e in self.graph.next_into(node)}
        return tuple(sorted(p.key for p in self.visits if p.state.counts and (p.node, p.outcome) in edges))

    def _may_run(self, node: str) -> bool:
        """Is it running, or could it still be started by what runs or waits now?"""
        moving = {p.node for p in self.visits if p.state.open or _stuck(self.graph, p)}
        waiting = {n for n in self.graph.nodes if n not in self._living and self._tokens(n)}
        return node in moving | waiting | self._ahead(moving | waiting)

    def _ahead(self, nodes: Iterable[str]) -> frozenset[str]:
        """What may start after ``nodes``: a living node on the way absorbs what comes."""
        return reach(nodes, lambda n: (e.target for e in self.graph.next_from(n) if e.target not in self._living))

    def _being_redone(self, node: str) -> bool:
        if not any(p.node == node for p in self.visits):
            return False
        by_key = {p.key: p for p in self.visits}

        def redone(visit: Past) -> bool:
            return visit.n > 1 or any(redone(by_key[key]) for key in visit.came_from if key in by_key)

        return node in self._ahead({p.node for p in self.visits if p.state.open and redone(p)})
