"""The built-in SOPs: sound, as the design draws them, and readable by a person after an edit."""

from __future__ import annotations

import pytest

from beadmill.domain.flow import Start, begin
from beadmill.domain.sop import Graph
from beadmill.errors import NotFound
from beadmill.nodes.beads import BeadsNode
from beadmill.nodes.build import BuildNode
from beadmill.nodes.cleanup import CleanupNode
from beadmill.nodes.gate import GateNode
from beadmill.nodes.integrate import IntegrateNode
from beadmill.nodes.interview import InterviewNode
from beadmill.nodes.prd import PrdNode
from beadmill.nodes.preflight import PreflightNode
from beadmill.nodes.pull_request import PullRequestNode
from beadmill.nodes.qa import QaNode
from beadmill.nodes.scan import ScanNode
from beadmill.nodes.script import ScriptNode
from beadmill.nodes.setup import SetupNode
from beadmill.nodes.verify import VerifyNode
from beadmill.sops import NAMES, builtin, checked, edit, kind_specs

NODES = (
    ScanNode,
    InterviewNode,
    PrdNode,
    BeadsNode,
    PreflightNode,
    SetupNode,
    BuildNode,
    VerifyNode,
    QaNode,
    IntegrateNode,
    PullRequestNode,
    CleanupNode,
    ScriptNode,
    GateNode,
)
KINDS = {node.spec.kind: node.spec for node in NODES}
SPECS = kind_specs(KINDS.values())


def test_the_small_sop_is_deliver_with_other_planning() -> None:
    lite, whole = graph("deliver-lite"), graph("deliver")
    assert [str(e) for e in lite.edges] == [str(e) for e in whole.edges]
    changed = {n.id: dict(n.config) for n in lite.nodes.values() if n.config != whole.nodes[n.id].config}
    assert changed == {
        "interview": {"mode": "solo", "questions": 5, "passes": 1, "policy": "auto_when_clean"},
        "prd": {"mode": "solo", "passes": 2, "approve": "later"},
        "beads": {"mode": "solo", "passes": 2, "together": ["prd"]},
        "qa": {"by_default": False},
    }


def graph(name: str) -> Graph:
    return checked(builtin(name), name=name, specs=SPECS).graph


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_sop_is_sound_and_survives_a_round_trip(name: str) -> None:
    assert begin(graph(name)).start == (Start(graph(name).start, 1),)
    assert edit(builtin(name), lambda _: None) == builtin(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_node_takes_the_config_its_sop_gives_it(name: str) -> None:
    nodes = graph(name).nodes.values()
    taken = [type(KINDS[node.kind].config(**node.config)) for node in nodes]
    assert taken == [KINDS[node.kind].config for node in nodes]


def test_deliver_leads_from_the_ticket_to_the_merged_change() -> None:
    forward = [str(e) for e in graph("deliver").edges if not e.rework]
    assert forward == [
        "scan ok -> interview",
        "interview approved -> prd",
        "prd approved -> beads",
        "beads approved -> preflight",
        "preflight ok -> setup",
        "setup ready -> build",
        "build ok -> verify",
        "verify ok -> qa",
        "qa passed -> integrate",
        "qa waived -> integrate",
        "qa skipped -> integrate",
        "integrate ok -> pull_request",
        "pull_request merged -> cleanup",
        "pull_request closed -> cleanup",
    ]


def test_deliver_goes_back_to_build_five_times_at_most() -> None:
    back = [(str(e), e.max_visits) for e in graph("deliver").edges if e.rework]
    assert back == [
        ("verify failed -> build", 5),
        ("qa fixes -> build", 5),
        ("integrate conflict -> build", 5),
        ("pull_request changes_requested -> build", 5),
        ("pull_request checks_failed -> build", 5),
        ("pull_request base_moved -> integrate", 20),
    ]


def test_deliver_closes_the_way_back_to_planning_at_preflight() -> None:
    assert [n.id for n in graph("deliver").nodes.values() if n.seals] == ["preflight"]


def test_hello_is_a_script_and_a_gate_that_can_send_it_back() -> None:
    hello = graph("hello")
    assert [(n.id, n.kind) for n in hello.nodes.values()] == [("greet", "script"), ("review", "gate")]
    assert [(str(e), e.rework, e.max_visits) for e in hello.edges] == [
        ("greet ok -> review", False, 0),
        ("review rejected -> greet", True, 3),
    ]


def test_an_unknown_built_in_names_the_known_ones() -> None:
    with pytest.raises(NotFound) as caught:
        builtin("magic")
    assert caught.value.next == "Built in are: deliver, deliver-lite, hello."
