"""Prompts over the API and on the screen: read, edit, preview, take back."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from pages_for_tests import fields, page, text

from beadmill.briefs.source import built_in
from beadmill.operations.ports import Ports

SCAN = "/api/v1/prompts/scan"
WORDS = 'Look around.\n\n{% include "_fresh.md.j2" %}\n{% include "_look.md.j2" %}\n'


async def shown(cli: httpx2.AsyncClient, name: str = "scan") -> Any:
    return (await cli.get(f"/api/v1/prompts/{name}")).json()


async def saved(cli: httpx2.AsyncClient, words: str = WORDS, name: str = "scan") -> httpx2.Response:
    etag = (await shown(cli, name))["sha256"]
    return await cli.put(f"/api/v1/prompts/{name}", json={"text": words}, headers={"If-Match": f'"{etag}"'})


async def test_the_list_begins_with_the_scan_and_ends_with_the_snippets(cli: httpx2.AsyncClient) -> None:
    lines = (await cli.get("/api/v1/prompts")).json()["prompts"]
    assert [line["name"] for line in (lines[0], lines[-1])] == ["scan", "_vote"]
    assert {(line["modified"], line["fault"], line["warnings"] == []) for line in lines} == {(False, None, True)}


async def test_a_prompt_says_what_it_may_be_given_and_what_is_never_dropped(cli: httpx2.AsyncClient) -> None:
    found = await shown(cli, "prd_refine")
    assert found["parts"] == ["ticket_details", "relevant_files", "full_answers", "drafts"]
    assert (found["needs"], found["values"]) == (["ticket_details", "drafts"], ["winner"])
    assert (await shown(cli, "_vote"))["used_by"] == ["beads_vote", "interview_vote", "prd_vote"]


async def test_a_saved_prompt_is_shown_with_its_difference(cli: httpx2.AsyncClient) -> None:
    answer = (await saved(cli)).json()
    assert (answer["text"], answer["modified"], answer["warnings"], answer["built_in_changed"]) == (
        WORDS,
        True,
        [],
        False,
    )
    assert ("+Look around." in answer["diff"], answer["news"]) == (True, "")
    assert await shown(cli) == answer


async def test_a_save_without_or_with_an_old_hash_changes_nothing(cli: httpx2.AsyncClient) -> None:
    old = (await shown(cli))["sha256"]
    await saved(cli)
    bare = await cli.put(SCAN, json={"text": "x"})
    late = await cli.put(SCAN, json={"text": "x"}, headers={"If-Match": f'"{old}"'})
    assert [(a.status_code, a.json()["error"]["code"]) for a in (bare, late)] == [
        (428, "IF_MATCH_REQUIRED"),
        (409, "PROMPT_STALE"),
    ]
    assert (await shown(cli))["text"] == WORDS


async def test_the_same_key_saves_once(cli: httpx2.AsyncClient) -> None:
    headers = {"If-Match": (await shown(cli))["sha256"], "Idempotency-Key": "k"}
    answers = [await cli.put(SCAN, json={"text": WORDS}, headers=headers) for _ in range(2)]
    assert [a.status_code for a in answers] == [200, 200]


async def test_a_text_that_cannot_be_used_is_refused_with_its_line(cli: httpx2.AsyncClient) -> None:
    answer = await saved(cli, "one\n{{ nobody }}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"]["line"]) == (422, "PROMPT_INVALID", 2)
    assert (await shown(cli))["modified"] is False


async def test_a_snippet_that_would_break_an_edited_prompt_is_refused(cli: httpx2.AsyncClient) -> None:
    await saved(cli, built_in("scan") + '{% include "_talk.md.j2" %}')
    answer = await saved(cli, "Batch {{ batch }}, in the form given at the end.", "_talk")
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        422,
        "the prompt _talk cannot be used: the edited prompt scan would break: line 16: 'batch' is undefined",
    )


async def test_what_an_edit_no_longer_does_is_saved_and_warned_of(cli: httpx2.AsyncClient) -> None:
    answer = (await saved(cli, '{% include "_same.md.j2" %}', "repair")).json()
    assert answer["warnings"] == ["It no longer shows {{ error }}.", "It no longer shows {{ reply_cut }}."]
    assert (
        next(p for p in (await cli.get("/api/v1/prompts")).json()["prompts"] if p["name"] == "repair")["warnings"]
        == answer["warnings"]
    )


async def test_a_file_broken_by_hand_is_listed_with_line_and_reason(cli: httpx2.AsyncClient, ports: Ports) -> None:
    folder = ports.settings.home / "prompts"
    folder.mkdir()
    (folder / "scan.md.j2").write_text("{% if %}")
    (folder / "skan.md.j2").write_text("x")
    found = (await cli.get("/api/v1/prompts")).json()
    assert found["prompts"][0]["fault"] == {"line": 1, "reason": "Expected an expression, got 'end of statement block'"}
    assert (found["prompts"][0]["built_in_changed"], found["strangers"]) == (None, ["skan.md.j2"])


async def test_an_upgrade_touches_no_edit_and_the_prompt_says_what_is_new(
    cli: httpx2.AsyncClient, ports: Ports
) -> None:
    await saved(cli)
    base = ports.settings.home / "prompts" / "base" / "scan.md.j2"
    base.write_text("The text of the last release.\n")
    found = await shown(cli)
    assert (found["built_in_changed"], found["text"]) == (True, WORDS)
    assert "-The text of the last release." in found["news"]


async def test_a_reverted_prompt_is_as_built_in_and_the_edit_is_kept(cli: httpx2.AsyncClient, ports: Ports) -> None:
    etag = (await saved(cli)).json()["sha256"]
    late = await cli.post(f"{SCAN}/revert", headers={"If-Match": "0" * 64})
    done = (await cli.post(f"{SCAN}/revert", headers={"If-Match": etag})).json()
    assert (late.status_code, done["text"], done["modified"]) == (409, built_in("scan"), False)
    (kept,) = (ports.settings.home / "prompts" / "reverted").iterdir()
    assert (str(kept), kept.read_text()) == (done["kept"], WORDS)


async def test_a_reset_takes_every_edit_back(cli: httpx2.AsyncClient) -> None:
    await saved(cli)
    await saved(cli, "Begin, in the form given at the end.", "_fresh")
    answer = (await cli.post("/api/v1/prompts/reset")).json()
    assert [p["name"] for p in answer["prompts"] if p["modified"]] == []


async def test_a_preview_is_the_assembled_prompt_and_saves_nothing(cli: httpx2.AsyncClient) -> None:
    made = (await cli.post(f"{SCAN}/preview", json={"text": WORDS})).json()
    assert made["text"].startswith("Beadmill task: scan | ticket: DEMO-1 | ")
    assert ("Look around." in made["text"], "<ticket_details>" in made["text"], made["material"]) == (
        True,
        True,
        "sample",
    )
    assert made["tokens"] == sum(part["tokens"] for part in made["parts"])
    assert (await shown(cli))["modified"] is False


async def test_a_preview_of_a_snippet_shows_the_first_prompt_that_includes_it(cli: httpx2.AsyncClient) -> None:
    made = (await cli.post("/api/v1/prompts/_talk/preview", json={"text": "Chat."})).json()
    assert (made["template"], "Chat." in made["text"]) == ("interview_turn", True)


async def test_a_preview_of_a_broken_text_names_the_line(cli: httpx2.AsyncClient) -> None:
    answer = await cli.post(f"{SCAN}/preview", json={"text": "a\n{% endif %}"})
    assert (answer.status_code, answer.json()["error"]["details"]["line"]) == (422, 2)


async def test_an_unknown_prompt_is_not_found(cli: httpx2.AsyncClient) -> None:
    answers = [await cli.get("/api/v1/prompts/poem"), await cli.post("/api/v1/prompts/poem/preview")]
    assert [a.status_code for a in answers] == [404, 404]


async def test_every_change_leaves_an_event(cli: httpx2.AsyncClient) -> None:
    etag = (await saved(cli)).json()["sha256"]
    await cli.post(f"{SCAN}/revert", headers={"If-Match": etag})
    events = (await cli.get("/api/v1/events?topics=all&since=0", headers={"Accept": "application/json"})).json()[
        "events"
    ]
    assert [e["kind"] for e in events if e["kind"].startswith("prompt.")] == ["prompt.saved", "prompt.reverted"]


# --- on the screen ------------------------------------------------------------------------------------------------
async def test_an_edit_on_the_screen_is_saved_and_stands_in_the_list(signed_in: httpx2.AsyncClient) -> None:
    address = "/settings/prompts/scan"
    hidden = fields(await page(signed_in, address), address)
    answer = await signed_in.post(address, data={**hidden, "text": WORDS})
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    assert "Saved text against the built-in one" in text(await page(signed_in, address))
    assert "scan finds the files that matter to the ticket edited" in text(await page(signed_in, "/settings/prompts"))


async def test_a_refused_edit_keeps_what_was_typed(signed_in: httpx2.AsyncClient) -> None:
    address = "/settings/prompts/scan"
    hidden = fields(await page(signed_in, address), address)
    answer = await signed_in.post(address, data={**hidden, "text": "mine\n{{ nobody }}"})
    assert (answer.status_code, ">mine\n{{ nobody }}</textarea>" in answer.text) == (422, True)
    assert "the prompt scan cannot be used: line 2: 'nobody' is undefined" in text(answer.text)


async def test_two_windows_do_not_overwrite_each_other(signed_in: httpx2.AsyncClient) -> None:
    address = "/settings/prompts/scan"
    windows = [fields(await page(signed_in, address), address) for _ in range(2)]
    await signed_in.post(address, data={**windows[0], "text": WORDS})
    late = await signed_in.post(address, data={**windows[1], "text": "Other words."})
    assert (late.status_code, ">Other words.</textarea>" in late.text, "+Look around." in text(late.text)) == (
        409,
        True,
        False,
    )
    again = await signed_in.post(address, data={**fields(late.text, address), "text": "Other words."})
    assert again.status_code == 303


async def test_a_preview_on_the_screen_keeps_the_text_and_shows_the_prompt(signed_in: httpx2.AsyncClient) -> None:
    address = "/settings/prompts/scan"
    hidden = fields(await page(signed_in, address), address)
    answer = await signed_in.post(f"{address}/preview", data={**hidden, "text": WORDS, "run": ""})
    assert ("The whole prompt" in text(answer.text), fields(answer.text, address)["etag"]) == (True, hidden["etag"])


async def test_one_prompt_and_then_all_are_taken_back_on_the_screen(
    signed_in: httpx2.AsyncClient, cli: httpx2.AsyncClient
) -> None:
    for name in ("scan", "coding"):
        await saved(cli, built_in(name) + "\nMore.", name)
    address = "/settings/prompts/scan/revert"
    await signed_in.post(address, data=fields(await page(signed_in, "/settings/prompts/scan"), address))
    assert [(await shown(cli, name))["modified"] for name in ("scan", "coding")] == [False, True]
    reset = "/settings/prompts/reset"
    await signed_in.post(reset, data=fields(await page(signed_in, "/settings/prompts"), reset))
    assert (await shown(cli, "coding"))["modified"] is False


@pytest.mark.parametrize("path", ["/settings", "/settings/prompts/_vote"])
async def test_the_pages_lead_to_the_list(signed_in: httpx2.AsyncClient, path: str) -> None:
    assert 'href="/settings/prompts"' in await page(signed_in, path)
