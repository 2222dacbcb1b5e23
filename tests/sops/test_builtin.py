"""The built-in SOPs: sound, as the design draws them, and readable by a person after an edit."""

from __future__ import annotations

import pytest

from beadmill.domain.flow import Start, begin
from beadmill.domain.sop import Graph, KindSpec
from beadmill.errors import NotFound
from beadmill.sops import NAMES, builtin, checked, edit


def kind(outcomes: str, reads: str = "", writes: str = "") -> KindSpec:
    return KindSpec(frozenset(outcomes.split()), frozenset(reads.split()), frozenset(writes.split()))


SPECS = {
    "scan": kind("ok", writes="relevant_files"),
    "interview": kind("approved", "relevant_files", "interview"),
    "prd": kind("approved", "interview", "prd"),
    "beads": kind("approved", "prd", "beads"),
    "preflight": kind("ok", "beads", "preflight_report"),
    "setup": kind("ready", "beads", "execution_setup_profile workspace"),
    "build": kind("ok", "beads workspace"),
    "verify": kind("ok failed", "beads", "final_test_report"),
    "integrate": kind("ok conflict", "final_test_report", "integration_report"),
    "pull_request": kind("merged closed changes_requested checks_failed", "integration_report", "merge_report"),
    "cleanup": kind("done", "merge_report", "cleanup_report"),
    "script": kind("ok failed"),
    "gate": kind("approved rejected"),
}


def graph(name: str) -> Graph:
    return checked(builtin(name), name=name, specs=SPECS).graph


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_sop_is_sound_and_survives_a_round_trip(name: str) -> None:
    assert begin(graph(name)).start == (Start(graph(name).start, 1),)
    assert edit(builtin(name), lambda _: None) == builtin(name)


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
        "verify ok -> integrate",
        "integrate ok -> pull_request",
        "pull_request merged -> cleanup",
        "pull_request closed -> cleanup",
    ]


def test_deliver_goes_back_to_build_five_times_at_most() -> None:
    back = [(str(e), e.max_visits) for e in graph("deliver").edges if e.rework]
    assert back == [
        ("verify failed -> build", 5),
        ("integrate conflict -> build", 5),
        ("pull_request changes_requested -> build", 5),
        ("pull_request checks_failed -> build", 5),
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
    assert caught.value.next == "Built in are: deliver, hello."
