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


def test_a_contradiction_is_never_approved_by_a_plain_yes_and_goes_where_the_person_decides(small: Small) -> None:
    key = contradictory(small)
    refused = small.cli("gate", "approve", key)
    assert (refused.code, refused.err.splitlines()[:2]) == (4, ["1 is open:", f"  1. {GAP}"])
    unsaid = small.cli("gate", "decide", key, stdin="")
    assert (unsaid.code, f"1. {GAP}" in unsaid.err) == (2, True)
    assert small.cli("gate", "decide", key, "--say", "1=Goodbye, as in the ticket").code == 0
    gate = small.asked(key)
    assert (gate["choices"], gate["detail"]["decided"][0]["answer"]) == (["approve"], "Goodbye, as in the ticket")
    assert newest(small, key, "prd")["version"] == 2
    said = small.cli("run", "trail", key).out
    assert f"fix_gaps: Approve the requirements of {key}" in said
    assert f"    {GAP} → Goodbye, as in the ticket" in said


def test_approved_with_gaps_and_then_edited_the_plan_begins_anew_from_the_edit(small: Small) -> None:
    key = contradictory(small)
    approved = small.cli("gate", "approve", key, "--with-gaps", "--note", "we ask later", "--json").json
    assert (approved["decision"]["acknowledged"], small.asked(key)["node"]) == ([GAP], "beads")
    prd = newest(small, key, "prd")
    file = small.root / "prd.yaml"
    text = small.cli("artifact", "show", str(prd["row"])).out
    file.write_text(text.replace("Nobody can say goodbye", "Nobody says goodbye"), encoding="utf-8")
    edit = ("artifact", "edit", str(prd["row"]), "--file", str(file))
    assert small.cli(*edit).err.splitlines()[-1].startswith("next: save and approve it in one action")
    edited = small.cli(*edit, "--approve", "--note", "shorter")
    assert (edited.code, edited.out.splitlines()[-1]) == (0, "beads.2 begins; what was made before stays readable.")
    assert small.asked(key)["id"].startswith(f"{key}-r1/beads.2/")
    states = [("scan.1", "done"), ("interview.1", "done"), ("prd.1", "done"), ("beads.1", "superseded")]
    assert visits(small, key) == [*states, ("beads.2", "parked")]
    assert small.cli(*edit, "--approve").code == 4
