"""YAML to graph: shape errors with their place, problems with their line, text that survives an edit."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.comments import CommentedMap

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.prd import Prd
from beadmill.domain.sop import Edge, KindSpec, NodeDef, lint
from beadmill.engine.port import NodeSpec
from beadmill.errors import Invalid
from beadmill.sops import checked, dump, edit, kind_specs, load
from beadmill.sops.text import MAX_BYTES, parse

SPECS = {"script": KindSpec(frozenset({"ok"}))}
SMALL = dedent("""\
    title: Two steps   # shown on the page
    start: one
    nodes:
      # the first
      - id: one
        kind: script
        config: {script: 'echo "1"'}
      - id: two
        kind: script
        title: "Second"
        join: all
        seals: true
        ends: [ok]
        position: {x: 1, y: 2.5}
    edges:
      - {from: one, outcome: ok, to: two}
      - {from: two, outcome: no, to: one, kind: rework, max_visits: 3}
    """)


def refused(text: str) -> tuple[int, int, str]:
    with pytest.raises(Invalid) as caught:
        load(text, name="mine")
    details = caught.value.details
    assert caught.value.message.startswith("SOP mine")
    assert caught.value.code == "SOP_INVALID"
    return details["line"], details["column"], details["message"]


def test_an_sop_becomes_a_graph() -> None:
    sop = load(SMALL, name="two-steps", version=4)
    one = NodeDef("one", "script", {"script": 'echo "1"'})
    two = NodeDef("two", "script", title="Second", ends=("ok",), seals=True)
    assert (sop.name, sop.title, sop.description, sop.version) == ("two-steps", "Two steps", "", 4)
    assert (sop.graph.start, sop.graph.nodes) == ("one", {"one": one, "two": two})
    assert sop.graph.edges == (Edge("one", "ok", "two"), Edge("two", "no", "one", rework=True, max_visits=3))


def test_a_graph_holds_plain_values_not_those_of_the_parser() -> None:
    text = SMALL.replace("config: {script: 'echo \"1\"'}", "config: {a: 1, b: 1.5, c: true, d: null, e: [x, 'y']}")
    config = load(text, name="x").graph.nodes["one"].config
    assert config == {"a": 1, "b": 1.5, "c": True, "d": None, "e": ["x", "y"]}
    assert [type(value) for value in config.values()] == [int, float, bool, type(None), list]


def test_nodes_and_edges_know_their_line_and_column() -> None:
    graph = load(SMALL, name="x").graph
    assert [(n.line, n.column) for n in graph.nodes.values()] == [(5, 5), (8, 5)]
    assert [(e.line, e.column) for e in graph.edges] == [(16, 5), (17, 5)]


def test_the_digest_is_of_the_bytes_a_run_pins() -> None:
    assert load(SMALL, name="x").sha256 == load(SMALL, name="y").sha256 != load(SMALL + "\n", name="x").sha256


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: [", (1, 9, "not YAML: expected the node content, but found '<stream end>'")),
        ("", (1, 1, "an SOP is a mapping with title, start, nodes and edges")),
        ("- title", (1, 1, "an SOP is a mapping with title, start, nodes and edges")),
        ("a: 1\na: 2\n", (2, 1, 'not YAML: found duplicate key "a" with value "2" (original value: "1")')),
        ("a: \x00", (1, 1, "not YAML: unacceptable character #x0000: special characters are not allowed")),
    ],
)
def test_text_that_is_not_the_yaml_of_an_sop_says_where(text: str, expected: tuple[int, int, str]) -> None:
    assert refused(text) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("start: one\n", "", (1, 1, "start: Field required")),
        ("join: all", "join: most", (11, 5, "nodes.1.join: Input should be 'all' or 'any'")),
        ("id: two", "id: Two", (8, 5, "nodes.1.id: String should match pattern '^[a-z][a-z0-9_-]{0,63}$'")),
        ("seals: true", "sealed: true", (12, 5, "nodes.1.sealed: Extra inputs are not permitted")),
        ("max_visits: 3", "max_visits: three", (17, 53, "edges.1.max_visits: Input should be a valid integer")),
        ("join: all", "timeout: 5m", (11, 5, "nodes.1.timeout: Input should be a valid number")),
        ("ends: [ok]", "ends: !list [ok]", (1, 1, "!list is not a plain value")),
        (
            "  # the first\n  - id: one",
            "  - 7\n  - id: one",
            (4, 5, "nodes.0: Input should be a valid dictionary or instance of NodeModel"),
        ),
        ("position: {x: 1, y: 2.5}", "config: {at: 2020-01-01}", (1, 1, "date is not a plain value")),
        ("position: {x: 1, y: 2.5}", "config: {at: !thing x}", (1, 1, "TaggedScalar is not a plain value")),
    ],
)
def test_a_wrong_shape_says_where(old: str, new: str, expected: tuple[int, int, str]) -> None:
    assert old in SMALL
    assert refused(SMALL.replace(old, new)) == expected


@pytest.mark.parametrize(
    "field",
    [
        "inputs: [{name: report, from: one.report}]",
        "outputs: [{name: report, kind: file, path: report.md}]",
        "when: ticket.priority < 3",
        "timeout: 300",
        "retries: {max: 2, backoff: 5}",
        "on_failure: {goto: one, max_visits: 2}",
        "concurrency: browser",
        "env: {LANG: C}",
        "secrets: [TOKEN]",
        "notify: [team]",
    ],
)
def test_a_field_of_the_format_that_nothing_acts_on_yet_is_read_and_refused_never_ignored(field: str) -> None:
    sop = load(SMALL.replace("join: all", field), name="mine")

    found = [p for p in lint(sop.graph, {}) if p.code == "not_acted_on"]
    assert [(p.node, p.line, p.message) for p in found] == [
        ("two", 8, f"node 'two': this release does not act on {field.partition(':')[0]!r}; take it out")
    ]


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(Invalid, match=f"larger than {MAX_BYTES} bytes"):
        load("#" * (MAX_BYTES + 1), name="mine")


def test_aliases_that_unfold_without_end_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for old, new in zip("abcd", "bcde", strict=True):
        bomb += f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    assert refused(bomb) == (1, 1, "more than 20000 values")


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@ \n\t0", max_size=60))
def test_any_text_is_loaded_or_refused_as_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        load(text, name="fuzz")


def test_a_checked_sop_has_no_problem() -> None:
    specs = {"script": KindSpec(frozenset({"ok", "no"}))}
    text = SMALL.replace("id: one\n", "id: one\n    ends: [no]\n")
    assert checked(text, name="x", specs=specs).graph == load(text, name="x").graph


def test_a_checked_sop_lists_every_problem_with_its_line() -> None:
    text = SMALL.replace("id: two", "id: one").replace("to: two", "to: three")
    with pytest.raises(Invalid) as caught:
        checked(text, name="mine", specs=SPECS)
    listed = [(p["code"], p["line"], p["node"]) for p in caught.value.details["problems"]]
    assert listed == [
        ("duplicate_id", 8, "one"),
        ("edge_to_nowhere", 16, "one"),
        ("edge_from_nowhere", 17, "two"),
        ("rework_forward", 17, "two"),
    ]
    assert caught.value.message == "SOP mine, line 8, column 5: node 'one' is defined twice (and 3 more)"


def test_a_single_problem_is_told_without_a_count() -> None:
    with pytest.raises(Invalid) as caught:
        checked(SMALL, name="mine", specs={"script": KindSpec(frozenset({"ok"}))})
    expected = "SOP mine, line 17, column 5: edge two no -> one: script has no outcome 'no'; it has ok"
    assert caught.value.message == expected


@dataclass(frozen=True)
class Config:
    reads: ClassVar[int] = 0


def test_the_specs_of_nodes_become_those_of_the_lint() -> None:
    spec = NodeSpec("beads", Config, frozenset({"approved"}), reads=(Prd,), writes=(Beads,))
    assert kind_specs([spec]) == {"beads": KindSpec(frozenset({"approved"}), frozenset({"prd"}), frozenset({"beads"}))}


def test_an_edit_keeps_comments_quotes_and_order() -> None:
    def rename(tree: CommentedMap) -> None:
        tree["nodes"][1]["title"] = "Last"
        tree["edges"][1]["max_visits"] = 5

    expected = SMALL.replace("Second", "Last").replace("max_visits: 3", "max_visits: 5")
    assert edit(SMALL, rename) == expected


def test_a_node_can_be_added_by_an_edit() -> None:
    def add(tree: CommentedMap) -> None:
        tree["nodes"].append({"id": "three", "kind": "script"})

    text = edit(SMALL, add, name="mine")
    assert list(load(text, name="mine").graph.nodes) == ["one", "two", "three"]
    assert "# the first" in text


def test_what_is_dumped_is_what_was_parsed() -> None:
    assert dump(parse(SMALL, name="x")) == SMALL
