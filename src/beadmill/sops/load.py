"""YAML text → Sop: a graph whose nodes and edges know their line and column."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from ruamel.yaml.comments import CommentedMap

from beadmill.domain.sop import Edge, Graph, KindSpec, NodeDef, Problem, lint
from beadmill.engine.port import NodeSpec
from beadmill.errors import Invalid
from beadmill.sops.models import SopModel
from beadmill.sops.text import invalid, parse, place, plain


@dataclass(frozen=True, slots=True)
class Sop:
    """``body`` is the text a run pins. ``version`` counts stored versions; 0 = not stored (built in)."""

    name: str
    title: str
    description: str
    graph: Graph
    body: str
    version: int = 0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body.encode()).hexdigest()


def load(text: str, *, name: str, version: int = 0) -> Sop:
    """The SOP as written, problems of the graph included (``lint`` finds those). Raises Invalid with line and column
    when the text is not YAML or has not the shape of an SOP."""
    tree = parse(text, name=name)
    model = _model(tree, name=name)
    return Sop(name, model.title, model.description, _graph(model, tree), text, version)


def checked(text: str, *, name: str, specs: Mapping[str, KindSpec], version: int = 0) -> Sop:
    """What may run: ``load``, and Invalid with every problem under ``details.problems`` when the lint finds one."""
    sop = load(text, name=name, version=version)
    problems = lint(sop.graph, specs)
    if not problems:
        return sop
    listed = [_as_json(p) for p in problems]
    first, more = problems[0], len(problems) - 1
    raise Invalid(
        f"SOP {name}, {first}" + (f" (and {more} more)" if more else ""),
        code="SOP_INVALID",
        details={"line": first.line, "column": first.column, "problems": listed},
        next="Correct the lines and load it again.",
    )


def kind_specs(nodes: Iterable[NodeSpec]) -> dict[str, KindSpec]:
    """What the lint needs, from the specs of the installed node kinds."""
    return {
        spec.kind: KindSpec(
            spec.outcomes, frozenset(d.kind for d in spec.reads), frozenset(d.kind for d in spec.writes)
        )
        for spec in nodes
    }


def _as_json(problem: Problem) -> dict[str, str | int]:
    return {
        "code": problem.code,
        "message": problem.message,
        "node": problem.node,
        "line": problem.line,
        "column": problem.column,
    }


def _model(tree: CommentedMap, *, name: str) -> SopModel:
    try:
        return SopModel.model_validate(plain(tree))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = first["loc"]
        where = ".".join(str(part) for part in path)
        message = first["msg"].removeprefix("Value error, ")
        raise invalid(name, f"{where}: {message}", place(tree, path)) from error
    except ValueError as error:
        raise invalid(name, str(error), place(tree, ())) from error


def _graph(model: SopModel, tree: CommentedMap) -> Graph:
    nodes: dict[str, NodeDef] = {}
    duplicates: list[NodeDef] = []
    for i, n in enumerate(model.nodes):
        at = place(tree, ("nodes", i))
        node = NodeDef(
            n.id,
            n.kind,
            n.config,
            n.join,
            n.title,
            tuple(n.ends),
            n.seals,
            n.not_acted_on,
            line=at.line,
            column=at.column,
        )
        if nodes.setdefault(n.id, node) is not node:
            duplicates.append(node)
    return Graph(model.start, nodes, _edges(model, tree), tuple(duplicates))


def _edges(model: SopModel, tree: CommentedMap) -> tuple[Edge, ...]:
    found = []
    for i, e in enumerate(model.edges):
        at = place(tree, ("edges", i))
        edge = Edge(e.source, e.outcome, e.target, e.kind == "rework", e.max_visits, line=at.line, column=at.column)
        found.append(edge)
    return tuple(found)
