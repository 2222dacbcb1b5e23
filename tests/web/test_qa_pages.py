"""The page of a checklist, and its routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from house_for_tests import OWNER, Starter, served
from pages_for_tests import fields, page, text
from qa_for_tests import FIRST, KEY, PNG, SECOND, AskingNode

from beadmill import app
from beadmill.operations import gates, qa
from beadmill.operations.ports import Ports
from beadmill.web import security

ADDRESS = f"/tickets/{KEY}/qa"
API = f"/api/v1/tickets/{KEY}"
UPLOAD = f"{API}/qa/items/{FIRST}/evidence"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[app.House]:
    async with served(tmp_path / "home", AskingNode()) as built:
        yield built


@pytest.fixture(autouse=True)
async def asked(started: Starter) -> Any:
    return await started()


def results(**more: str) -> dict[str, str]:
    here = {f"r.{item}.here": "1" for item in (FIRST, SECOND)}
    return {**here, f"r.{FIRST}.outcome": "pass", f"r.{SECOND}.outcome": "pending", **more}


async def test_the_page_says_what_to_do_and_what_to_expect(signed_in: httpx2.AsyncClient) -> None:
    said = text(await page(signed_in, ADDRESS))
    assert (
        "qa-v1-002 · optional Look at qa-v1-002 It is 中文 and readable. Before A file Do Start it Look Expect" in said
    )
    assert "Watch : The edge." in said.replace("Watch:", "Watch :")
    assert "Acceptance criteria: 1 covered, 0 partially, 0 not, 0 not by hand" in said
    assert "0 passed · 0 failed · 0 waived · 0 to be improved · 2 open" in said


async def test_the_ticket_leads_to_the_checklist(signed_in: httpx2.AsyncClient) -> None:
    shown = await page(signed_in, f"/tickets/{KEY}")
    assert f'href="{ADDRESS}"' in shown
    assert "Required items: 1." in text(shown)


async def test_the_form_is_saved_and_sent_with_one_click(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    hidden = fields(await page(signed_in, ADDRESS), ADDRESS)
    sent = {**hidden, **results(), f"r.{FIRST}.links": "https://example.org/x the log", "choice": "submit"}
    answer = await signed_in.post(ADDRESS, data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/tickets/{KEY}")
    view = await qa.show(ports, KEY, actor=OWNER)
    assert (view.gate, view.results[0]["links"][0]) == (None, {"url": "https://example.org/x", "details": "the log"})


async def test_what_cannot_be_submitted_comes_back_with_everything_that_was_typed(
    signed_in: httpx2.AsyncClient,
) -> None:
    hidden = fields(await page(signed_in, ADDRESS), ADDRESS)
    more = {f"r.{FIRST}.outcome": "fail", f"r.{FIRST}.note": "half a thought", "choice": "submit"}
    answer = await signed_in.post(ADDRESS, data={**hidden, **results(**more)})
    assert answer.status_code == 422
    assert f"{FIRST}: say what you saw instead" in text(answer.text)
    assert "half a thought</textarea>" in answer.text


async def test_a_form_over_results_that_were_saved_elsewhere_keeps_its_words(
    signed_in: httpx2.AsyncClient, ports: Ports
) -> None:
    hidden = fields(await page(signed_in, ADDRESS), ADDRESS)
    await qa.save(ports, KEY, {SECOND: {"outcome": "pass"}}, revision=0, actor=OWNER)
    more = {f"r.{FIRST}.note": "mine", "choice": "submit"}
    answer = await signed_in.post(ADDRESS, data={**hidden, **results(**more)})
    assert (answer.status_code, "mine</textarea>" in answer.text) == (409, True)
    assert "saved elsewhere in the meantime" in text(answer.text)


async def test_the_draft_of_the_form_is_saved_by_revision(signed_in: httpx2.AsyncClient) -> None:
    form = {**results(), "revision": "0"}
    first = await signed_in.post(f"{ADDRESS}/draft", data=form)
    second = await signed_in.post(f"{ADDRESS}/draft", data=form)
    assert (first.status_code, first.json()["revision"]) == (200, 1)
    assert (second.status_code, second.json()["error"]["code"]) == (409, "DRAFT_STALE")


async def test_the_rest_is_skipped_with_a_reason(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    hidden = fields(await page(signed_in, ADDRESS), ADDRESS)
    sent = {**hidden, **results(), "skip.reason": "Friday.", "choice": "skip"}
    assert (await signed_in.post(ADDRESS, data=sent)).status_code == 303
    (line,) = (await gates.listing(ports, kind="qa", state="answered", actor=OWNER)).items
    decision = (await gates.show(ports, line.id, actor=OWNER)).decision
    assert decision
    assert (decision.choice, decision.note) == ("skip", "Friday.")


async def test_only_the_ticked_changes_of_the_worktree_are_taken_along(
    signed_in: httpx2.AsyncClient, ports: Ports
) -> None:
    await test_the_rest_is_skipped_with_a_reason(signed_in, ports)
    async for _ in ports.store.events.subscribe():
        if (view := await qa.show(ports, KEY, actor=OWNER)).drift:
            break
    assert view.drift
    hidden = fields(await page(signed_in, ADDRESS), f"{ADDRESS}/drift")
    sent = await signed_in.post(f"{ADDRESS}/drift", data={**hidden, "path": "a.py", "choice": "include"})
    decision = (await gates.show(ports, view.drift.id, actor=OWNER)).decision
    assert decision
    assert (sent.status_code, decision.choice, decision.payload) == (303, "include", {"paths": ["a.py"]})


# --- routes -----------------------------------------------------------------------------------------------------------
async def test_a_submission_without_its_etag_is_428_and_with_another_409(cli: httpx2.AsyncClient) -> None:
    saved = await cli.put(f"{API}/qa", json={"results": {FIRST: {"outcome": "pass"}}, "revision": 0})
    body, etag = {"revision": saved.json()["revision"]}, saved.json()["gate"]["etag"]
    tags: list[dict[str, str]] = [{}, {"If-Match": "other"}, {"If-Match": etag}]
    answers = [await cli.post(f"{API}/qa/submit", json=body, headers=tag) for tag in tags]
    assert [answer.status_code for answer in answers] == [428, 409, 200]


async def test_a_file_larger_than_a_body_goes_up_and_a_page_is_only_ever_downloaded(cli: httpx2.AsyncClient) -> None:
    data = b"<script>alert(1)</script>" + bytes(security.BODY)
    made = await cli.post(UPLOAD, params={"name": "bericht 中.html"}, content=data)
    assert (made.status_code, made.json()["size"]) == (201, len(data))
    got = await cli.get(f"{API}/evidence/{made.json()['id']}")
    assert got.content == data
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''bericht%20%E4%B8%AD.html"
    assert (got.headers["x-content-type-options"], got.headers["cache-control"]) == ("nosniff", "no-store")
    assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_a_picture_is_shown_in_the_page(cli: httpx2.AsyncClient, signed_in: httpx2.AsyncClient) -> None:
    made = (await cli.post(UPLOAD, params={"name": "seen.png"}, content=PNG)).json()
    got = await cli.get(f"{API}/evidence/{made['id']}")
    assert (got.headers["content-type"], got.headers["content-disposition"][:6]) == ("image/png", "inline")
    assert f'<img src="{API}/evidence/{made["id"]}" alt="seen.png"' in await page(signed_in, ADDRESS)


async def test_nothing_else_may_be_larger_than_a_body(cli: httpx2.AsyncClient) -> None:
    data = bytes(security.BODY + 1)
    for address in (f"{API}/qa/submit", f"{API}/qa/items/{FIRST}/evidence/x", f"{API}/evidence/x"):
        assert (await cli.post(address, content=data)).status_code == 413


async def test_a_file_of_another_ticket_is_not_found(cli: httpx2.AsyncClient) -> None:
    made = (await cli.post(UPLOAD, params={"name": "seen.png"}, content=PNG)).json()
    assert (await cli.get(f"/api/v1/tickets/API-2/evidence/{made['id']}")).status_code == 404
    assert (await cli.post(UPLOAD, params={"name": "../up"}, content=PNG)).status_code == 400
