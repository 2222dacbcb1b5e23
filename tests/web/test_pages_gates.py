from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from house_for_tests import CLASH, GAP, OWNER, Starter, gappy, opened, until
from pages_for_tests import cost, fields, page, text
from questions_for_tests import batch, interviewed, question, stored
from questions_for_tests import opened as asking

from beadmill.artifacts.interview import Interview, InterviewSummary
from beadmill.operations import artifacts, gates, runs
from beadmill.operations.ports import Ports


@pytest.fixture
async def gate(ports: Ports, started: Starter) -> Any:
    """The open gate of a ticket whose PRD waits for approval."""
    ticket = await started()
    return await gates.show(ports, ticket.current.gates[0].id, actor=OWNER)


def address(gate: Any, act: str = "answer") -> str:
    return f"/gates/{quote(gate.id)}/{act}"


async def answered(client: httpx2.AsyncClient, gate: Any, act: str = "answer", **more: str) -> httpx2.Response:
    """Fills the form of the gate's own page and sends it."""
    hidden = fields(await page(client, f"/gates/{quote(gate.id)}"), address(gate, act))
    return await client.post(address(gate, act), data={**hidden, **more})


async def test_a_gate_is_answered_by_its_form_and_leads_back_to_the_ticket(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    answer = await answered(signed_in, gate, choice="approve", note="well done")
    assert (answer.status_code, answer.headers["location"]) == (303, "/tickets/API-1")
    decision = (await gates.show(ports, gate.id, actor=OWNER)).decision
    assert decision
    assert (decision.choice, decision.note, decision.door) == ("approve", "well done", "web")


async def test_the_second_answer_is_refused_with_who_was_first_and_the_words_are_kept(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    hidden = fields(await page(signed_in, f"/gates/{quote(gate.id)}"), address(gate))
    await gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=OWNER)
    answer = await signed_in.post(address(gate), data={**hidden, "choice": "approve", "note": "my own words"})
    said = text(answer.text)
    assert answer.status_code == 409
    assert "already answered: approve by user:owner" in said
    assert "What you had written note my own words" in said


async def test_a_stale_answer_shows_the_new_version_with_the_words_in_the_field(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    hidden = fields(await page(signed_in, f"/gates/{quote(gate.id)}"), address(gate))
    shown = await artifacts.show(ports, gate.shows[0].row, actor=OWNER)
    edited = shown.text.replace("Adding", "Adding numbers")
    await artifacts.edit(ports, shown.row, etag=shown.sha256, text=edited, actor=OWNER)
    answer = await signed_in.post(address(gate), data={**hidden, "choice": "approve", "note": "my own words"})
    assert (answer.status_code, "Adding numbers" in answer.text) == (409, True)
    assert ">my own words</textarea>" in answer.text
    again = await signed_in.post(address(gate), data={**fields(answer.text, address(gate)), "choice": "approve"})
    assert again.status_code == 303


async def test_an_answer_without_what_was_seen_is_refused(signed_in: httpx2.AsyncClient, gate: Any) -> None:
    answer = await signed_in.post(address(gate), data={"choice": "approve", "key": "k"})
    assert (answer.status_code, "IF_MATCH_REQUIRED" in answer.text) == (428, True)


async def test_a_contradiction_is_a_field_and_its_words_go_into_the_decision(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    second = await gappy(ports, gate)
    said = text(await page(signed_in, f"/gates/{quote(second.id)}"))
    assert f"Only you can settle this {CLASH} Which one? Your decision" in said
    assert "Revise it by my decisions Approve with its gaps" in said
    answer = await answered(signed_in, second, choice="fix_gaps", **{"decision.1": "Staff.\nOnly."})
    decision = (await gates.show(ports, second.id, actor=OWNER)).decision
    assert decision
    assert (answer.status_code, decision.payload) == (303, {"decisions": {CLASH: "Staff.\nOnly."}})


async def test_an_approval_with_gaps_shows_on_the_page_and_in_the_history_what_it_acknowledged(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    second = await gappy(ports, gate)
    await answered(signed_in, second, choice="approve_with_gaps", note="we know")
    receipt = text(await page(signed_in, f"/gates/{quote(second.id)}"))
    assert f"we know Approved with these open: {GAP} {CLASH}" in receipt
    history = text(await page(signed_in, "/tickets/API-1/history"))
    assert (
        f"Approve with its gaps · Approve we know with this open: {GAP} with this open: {CLASH} owner (web)" in history
    )


async def test_what_policy_decided_says_so_and_why(signed_in: httpx2.AsyncClient, ports: Ports, gate: Any) -> None:
    second = await opened(ports, gate, auto="approve", why="auto_when_clean: no gaps")
    assert "Decided by policy: auto_when_clean: no gaps" in text(await page(signed_in, f"/gates/{quote(second.id)}"))
    third = await opened(ports, gate, name="third", detail={"asked_because": ["1 warning"]})
    assert "The policy leaves this to you: 1 warning" in text(await page(signed_in, f"/gates/{quote(third.id)}"))


async def test_a_double_click_answers_once(signed_in: httpx2.AsyncClient, gate: Any) -> None:
    hidden = fields(await page(signed_in, f"/gates/{quote(gate.id)}"), address(gate))
    clicks = [await signed_in.post(address(gate), data={**hidden, "choice": "approve"}) for _ in range(2)]
    assert [one.status_code for one in clicks] == [303, 303]


async def test_the_way_back_leads_to_a_page_of_ours_only(signed_in: httpx2.AsyncClient, gate: Any) -> None:
    answer = await answered(signed_in, gate, choice="approve", back="//elsewhere.example/")
    assert answer.headers["location"] == "/tickets/API-1"


async def test_send_back_starts_the_step_again_with_the_comment(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    answer = await answered(signed_in, gate, "send-back", target="write", comment="shorter, please")
    assert answer.status_code == 303
    await until(ports, "API-1", lambda found: found.waits > 0 and found.current.visits[-1].n == 2)
    visits = (await runs.show(ports, gate.run, actor=OWNER)).visits
    assert (visits[-1].node, visits[-1].comment) == ("write", "shorter, please")


async def test_a_blocked_gate_says_what_happened_what_was_kept_and_every_way_on(
    signed_in: httpx2.AsyncClient, started: Starter
) -> None:
    await started(title="Block")
    said = text(await page(signed_in, "/tickets/API-1"))
    assert "What happened it does not work yet What was kept" in said
    for way in ("Retry", "Note for the next try", "Send it back", "Cancel the ticket", "Diagnostics NO_LUCK"):
        assert way in said


async def test_a_live_ticket_page_leaves_its_gates_to_the_browser(signed_in: httpx2.AsyncClient, gate: Any) -> None:
    live = await signed_in.get("/tickets/API-1", headers={"HX-Request": "true"})
    assert (f"{gate.id}@{gate.etag}" in live.text, "Approve the PRD</h2>" in live.text) == (True, False)
    region = await signed_in.get("/tickets/API-1/gates", headers={"HX-Request": "true"})
    assert f'data-gate="{gate.id}" data-etag="{gate.etag}"' in region.text


async def test_the_notice_says_who_answered(signed_in: httpx2.AsyncClient, ports: Ports, gate: Any) -> None:
    await gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=OWNER)
    said = text(await page(signed_in, f"/gates/{quote(gate.id)}/notice"))
    assert said.startswith("This was answered meanwhile: Approve · owner (cli) ·")


async def test_a_question_counts_down_until_somebody_begins_to_answer_it(
    signed_in: httpx2.AsyncClient, cli: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    asked = await asking(ports, await started(), "question-1", question())
    shown = await page(signed_in, f"/gates/{quote(asked.id)}")
    assert (f'data-hold="{asked.id}"' in shown, "It stops as soon as you begin to answer." in shown) == (True, True)
    held = await cli.post(f"/api/v1/gates/{quote(asked.id)}/hold")
    shown = await page(signed_in, f"/gates/{quote(asked.id)}")
    assert (held.status_code, held.json()["lapse_at"], "data-hold" in shown) == (200, None, False)
    assert "The clock is stopped: the agent waits for your answer." in text(shown)


# --- inbox --------------------------------------------------------------------------------------------------------
async def test_an_empty_inbox_says_so(signed_in: httpx2.AsyncClient) -> None:
    assert "Nothing waits for you." in text(await page(signed_in, "/gates"))


@pytest.mark.parametrize("count", [1, 30])
async def test_the_inbox_costs_the_same_however_full_it_is(ports: Ports, started: Starter, count: int) -> None:
    for _ in range(count):
        await started()
    shown, statements = await cost(ports.settings.home, "/gates")
    assert (shown.count('class="inline"'), statements) == (count, 3)


# --- editing what a gate shows ------------------------------------------------------------------------------------
async def test_an_edit_that_is_no_document_names_the_line_and_keeps_the_text(
    signed_in: httpx2.AsyncClient, gate: Any
) -> None:
    row = gate.shows[0].row
    hidden = fields(await page(signed_in, f"/artifacts/{row}?edit=1"), f"/artifacts/{row}")
    answer = await signed_in.post(f"/artifacts/{row}", data={**hidden, "text": "product:\n  nonsense: [\n"})
    assert (answer.status_code, 'data-line="' in answer.text) == (422, True)
    assert ">\nproduct:\n  nonsense: [\n</textarea>" in answer.text


async def test_an_edit_is_a_new_version_that_the_gate_shows_and_that_can_be_compared(
    signed_in: httpx2.AsyncClient, ports: Ports, gate: Any
) -> None:
    row = gate.shows[0].row
    hidden = fields(await page(signed_in, f"/artifacts/{row}?edit=1"), f"/artifacts/{row}")
    before = (await artifacts.show(ports, row, actor=OWNER)).text
    answer = await signed_in.post(f"/artifacts/{row}", data={**hidden, "text": before.replace("Adding", "Sums")})
    assert (answer.status_code, answer.headers["location"]) == (303, "/tickets/API-1")
    now = (await gates.show(ports, gate.id, actor=OWNER)).shows[0]
    assert (now.version, now.author) == (2, "user:owner")
    compared = text(await page(signed_in, f"/artifacts/{now.row}"))
    assert "Against v1" in compared


async def test_skipping_the_rest_of_an_interview_takes_changed_earlier_answers_along(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    asked = await batch(ports, await started(), interviewed())
    change = {"e.Q01.here": "1", "e.Q01.text": "they pay", "e.Q01.option": "customers"}
    answer = await answered(signed_in, asked, choice="skip_all", note="no time", **{"q.Q03.text": "Nothing"}, **change)
    assert answer.status_code == 303
    decision = (await gates.show(ports, asked.id, actor=OWNER)).decision
    assert decision
    assert decision.payload["edits"] == {"Q01": {"free_text": "they pay", "selected_option_ids": ["customers"]}}
    assert decision.payload["answers"]["Q03"] == {"free_text": "Nothing"}


async def test_an_interview_is_shown_with_what_its_answers_say(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    summary = InterviewSummary(goals=("Staff export lists.",), non_goals=("No PDF.",))
    ticket = await started()
    row = await stored(ports, ticket, Interview(ticket_id="API-1", summary=summary))
    said = text(await page(signed_in, f"/artifacts/{row}"))
    assert "Goals Staff export lists." in said
    assert "Left out on purpose No PDF." in said
    assert "Constraints" not in said
