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
    edge that gave up, because its visits are spent or its target was never reached: nothing starts and the run has not
    ended, a person decides."""

    start: tuple[Start, ...] = ()
    supersede: tuple[Key, ...] = ()
    ended: bool = False
    exhausted: Edge | None = None


def begin(graph: Graph) -> Moves:
    return _fire(graph, ())


def advance(graph: Graph, past: Sequence[Past], done: Key, outcome: str) -> Moves:
    """``past`` already shows ``done`` as DONE with ``outcome``. A superseded ``done`` moves nothing of its own. Raises
    NotFound when ``past`` does not have it."""
    visit = next((p for p in past if p.key == done), None)
    if visit is None:
        raise NotFound(f"visit {done[0]}.{done[1]} is not among the visits of the run")
    edge = next(iter(graph.rework_from(visit.node, outcome)), None) if visit.state.counts else None
    if edge is None:
        return _fire(graph, past)
    reached = any(p.node == edge.target and _living(p) for p in past)
    if not reached or (edge.max_visits and _next_n(past, edge.target) > edge.max_visits):
        return Moves(exhausted=edge)
    return _restart(graph, past, edge.target)


def send_back(graph: Graph, past: Sequence[Past], target: str) -> Moves:
    """Supersedes ``target`` and everything downstream of it, and starts the target again. Not limited by max_visits:
    a person decided. Raises NotFound for an unknown node, Conflict for one that the run has not reached."""
    if target not in graph.nodes:
        raise NotFound(f"the SOP has no node {target!r}", next=f"Send back to one of: {', '.join(graph.nodes)}.")
    cleared, gone = _supersede(graph, past, target)
    if all(node != target for node, _ in gone) and not _Marking(graph, cleared).may_start(target):
        raise Conflict(
            f"the run has not reached {target!r}: what it waits for is not done",
            code="NOT_REACHED",
            kept="Nothing was changed.",
            next="Send back to a node that was visited.",
        )
    return _restart(graph, past, target)


def after(graph: Graph, past: Sequence[Past], node: str) -> Moves:
    """What ``node`` stands for has changed: everything downstream is superseded and begins again, ``node`` itself is not
    done again."""
    cleared, gone = _clear(past, graph.downstream(node) - {node})
    return replace(_fire(graph, cleared), supersede=gone)


def kept(graph: Graph, past: Sequence[Past], target: str) -> tuple[Key, ...]:
    """The living, finished visits upstream of ``target``: what a rerun from there copies, as KEPT, with node, n, outcome
    and came_from. ``send_back`` over the copies then starts the new run."""
    before = graph.upstream(target) - {target}
    return tuple(p.key for p in past if p.node in before and p.state.counts)


def sealed_by(graph: Graph, past: Sequence[Past], target: str) -> str:
    """The sealing node after ``target`` that was started: people may not send back past it. "" = none."""
    after = graph.downstream(target) & {p.node for p in past if _living(p)}
    return next((n.id for n in graph.nodes.values() if n.seals and n.id in after), "")


def targets(graph: Graph, past: Sequence[Past]) -> tuple[str, ...]:
    """Where a person may send this run back to, in the order of the SOP."""
    alive = {p.node for p in past if _living(p)}
    return tuple(node for node in graph.nodes if node in alive and not sealed_by(graph, past, node))


def stuck(graph: Graph, past: Sequence[Past]) -> tuple[Key, ...]:
    """Living visits whose rework gave up: the run waits for a person."""
    return tuple(p.key for p in past if _is_stuck(graph, p))


def _is_stuck(graph: Graph, visit: Past) -> bool:
    # A rework that did fire has superseded the visit it came from.
    return visit.state is VisitState.DONE and bool(graph.rework_from(visit.node, visit.outcome))


def _living(visit: Past) -> bool:
    return visit.state.open or visit.state.counts


def _next_n(past: Iterable[Past], node: str) -> int:
    return max((p.n for p in past if p.node == node), default=0) + 1


def _supersede(graph: Graph, past: Sequence[Past], target: str) -> tuple[tuple[Past, ...], tuple[Key, ...]]:
    return _clear(past, graph.downstream(target) | {target})


def _clear(past: Sequence[Past], region: frozenset[str]) -> tuple[tuple[Past, ...], tuple[Key, ...]]:
    gone = tuple(p.key for p in past if p.node in region and _living(p))
    cleared = tuple(replace(p, state=VisitState.SUPERSEDED) if p.key in gone else p for p in past)
    return cleared, gone


def _restart(graph: Graph, past: Sequence[Past], target: str) -> Moves:
    cleared, gone = _supersede(graph, past, target)
    return replace(_fire(graph, cleared, first=target), supersede=gone)


def _fire(graph: Graph, past: Sequence[Past], *, first: str = "") -> Moves:
    """Starts ``first`` in any case, then whatever may start, until nothing changes."""
    visits = list(past)
    starts: list[Start] = []
    marking = _Marking(graph, visits)
    ready = [first] if first else marking.ready()
    while ready:
        begun = [Start(node, _next_n(visits, node), marking.tokens.get(node, ())) for node in ready]
        starts += begun
        visits += [Past(s.node, s.n, VisitState.READY, "", s.came_from) for s in begun]
        marking = _Marking(graph, visits)
        ready = marking.ready()
    return Moves(tuple(starts), ended=not marking.moving)


class _Marking:
    """Where the tokens are at one moment."""

    def __init__(self, graph: Graph, visits: Sequence[Past]) -> None:
        self.graph = graph
        self.visits = visits
        # A canceled visit is over for good: it neither delivers nor starts again.
        self.taken = frozenset(p.node for p in visits if p.state is not VisitState.SUPERSEDED)
        self.tokens = self._tokens()
        self.moving = frozenset(p.node for p in visits if p.state.open or _is_stuck(graph, p))
        origins = self.moving | (self.tokens.keys() - self.taken)
        self.may_run = origins | self._ahead(origins)

    def ready(self) -> list[str]:
        return [node for node in self.graph.nodes if self.may_start(node)]

    def may_start(self, node: str) -> bool:
        if node in self.taken:
            return False
        if node == self.graph.start:
            return True
        if node not in self.tokens:
            return False
        if self.graph.nodes[node].join == "any":
            return not self._being_redone(node)
        return not any(edge.source in self.may_run for edge in self.graph.next_into(node))

    def _tokens(self) -> dict[str, tuple[Key, ...]]:
        """By the node they lead to, in the order of the edges."""
        done = {(p.node, p.outcome): p.key for p in self.visits if p.state.counts}
        found: dict[str, dict[Key, None]] = {}
        for edge in self.graph.edges:
            if not edge.rework and edge.target in self.graph.nodes and (key := done.get((edge.source, edge.outcome))):
                found.setdefault(edge.target, {})[key] = None
        return {node: tuple(keys) for node, keys in found.items()}

    def _ahead(self, nodes: Iterable[str]) -> frozenset[str]:
        """What may start after ``nodes``: a node on the way that is taken absorbs what comes."""
        return reach(nodes, lambda n: (e.target for e in self.graph.next_from(n) if e.target not in self.taken))

    def _being_redone(self, node: str) -> bool:
        """Was it superseded, and does a branch that was sent back still run towards it?"""
        if all(p.node != node for p in self.visits):
            return False
        parents = {p.key: p.came_from for p in self.visits}

        def redone(key: Key) -> bool:
            return any(n > 1 for _, n in {key} | reach((key,), lambda k: parents.get(k, ())))

        running = {p.node for p in self.visits if p.state.open and redone(p.key)}
        waiting = {n for n, keys in self.tokens.items() if n not in self.taken and any(redone(k) for k in keys)}
        return node in self._ahead(running | waiting)
