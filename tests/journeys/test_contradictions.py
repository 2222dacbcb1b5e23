"""A contradiction that only the person can settle: asked, decided, carried out, kept; then the approved text is edited."""

from __future__ import annotations

from typing import Any

from tests.journeys.small_world import CLEAN, PRD, Small, says
from tests.journeys.test_ways import NO_QUESTIONS, newest, visits

GAP = "The ticket says Goodbye, the interview says Bye."
GAPS = {"status": "gaps", "gaps": [GAP], "follow_up_questions": []}
DECIDED = "The person decided: Goodbye, as in the ticket"


def revised(action: str, **changed: Any) -> dict[str, Any]:
    resolution = {"gap": GAP, "action": action, "rationale": "Which word is it?", "affected_items": []}
    return {**PRD, **changed, "changes": [], "gap_resolutions": [resolution]}


def once_decided(template: str, said: Any) -> dict[str, Any]:
    """A reply to a brief that carries the person's words."""
    return {**says(template, said), "match": {"template": template, "text": DECIDED}}


def contradictory(small: Small) -> str:
    """A ticket at the gate of its requirements, with one contradiction open."""
    small.script(
        once_decided("prd_coverage", CLEAN),
        says("prd_coverage", GAPS),
        once_decided("prd_revise", revised("updated", risks=["Bye is not understood"])),
        says("prd_revise", revised("left_unresolved")),
    )
    key = small.ticket(*NO_QUESTIONS, "--set", "gates.interview=off")
    assert small.asked(key)["node"] == "prd"
    return key


def test_a_contradiction_goes_where_the_person_decides_and_never_by_a_plain_yes(small: Small) -> None:
    key = contradictory(small)
    refused = small.cli("gate", "approve", key)
    assert (refused.code, refused.err.splitlines()[:2]) == (4, ["error: 1 is open:", f"  1. {GAP}"])
    unsaid = small.cli("gate", "decide", key, stdin="")
    assert (unsaid.code, f"1. {GAP}" in unsaid.err) == (2, True)
    assert small.cli("gate", "decide", key, "--say", "1=Goodbye, as in the ticket").code == 0
    gate = small.asked(key)
    assert (gate["choices"], gate["detail"]["decided"][0]["answer"]) == (["approve"], "Goodbye, as in the ticket")
    said = small.cli("run", "trail", key).out
    assert f"    {GAP} → Goodbye, as in the ticket" in said.splitlines()

    assert small.cli("gate", "approve", key).code == 0
    assert small.asked(key)["id"].startswith(f"{key}-r1/beads.1/")
    prd = newest(small, key, "prd")
    file = small.root / "prd.yaml"
    text = small.cli("artifact", "show", str(prd["row"])).out
    file.write_text(text.replace("Nobody can say goodbye", "Nobody says goodbye"), encoding="utf-8")
    edited = small.cli("artifact", "edit", str(prd["row"]), "--file", str(file), "--approve")
    assert (edited.code, edited.out.splitlines()[-1]) == (0, "beads.2 begins; what was made before stays readable.")
    states = [("scan.1", "done"), ("interview.1", "done"), ("prd.1", "done"), ("beads.1", "superseded")]
    assert visits(small, key)[:-1] == states
